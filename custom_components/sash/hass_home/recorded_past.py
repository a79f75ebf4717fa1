"""Reads the past of the home from Home Assistant's recorder, logbook and system log.

The modules of these integrations are imported when they are used. An integration that is not set up may lack
its requirements. One that is set up has already imported the modules, so that the event loop does not wait.
"""

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, TypeVar

from homeassistant.core import HomeAssistant, valid_entity_id
from homeassistant.helpers.recorder import get_instance

from sash.errors import HomeError
from sash.home.home_assistant.home_assistant_json import (
    read_history,
    read_log,
    read_logbook,
    read_statistics,
)
from sash.home.home_assistant.missing_integrations import MISSING_INTEGRATIONS
from sash.ports.home import HistoryPoint, HourlyStatistics, LogbookEntry, LogRecord

from .entity_states import read_layout_state
from .loop_slices import convert_in_slices

_Result = TypeVar("_Result")
_logger = logging.getLogger(__name__)


class RecordedPast:
    """History, statistics, logbook and system log. Raises `HomeError` if they are not set up."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass

    async def get_history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HistoryPoint]]:
        if not entity_ids:
            return {}
        self._require("recorder")
        return await self._ask_recorder(_query_history, self._hass, list(entity_ids), start, end)

    async def get_statistics(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HourlyStatistics]]:
        if not entity_ids:
            return {}
        self._require("recorder")
        return await self._ask_recorder(_query_statistics, self._hass, list(entity_ids), start, end)

    async def get_logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        self._require("logbook")
        from homeassistant.components.logbook import helpers
        from homeassistant.components.logbook.processor import EventProcessor

        named = [entity_id for entity_id in entity_ids if valid_entity_id(entity_id)]
        shown = helpers.async_filter_entities(self._hass, named)
        if entity_ids and not shown:
            return []
        processor = EventProcessor(
            self._hass,
            helpers.async_determine_event_types(self._hass, shown, None),
            shown,
            timestamp=True,
            include_entity_name=False,
        )
        raw = await self._ask_recorder(processor.get_events, start.astimezone(UTC), end.astimezone(UTC))
        states = await convert_in_slices(self._hass.states.async_all(), read_layout_state)
        by_id = {state.entity_id: state for state in states}
        users = await self._list_users()
        return await self._hass.async_add_executor_job(read_logbook, raw, by_id, users)

    async def get_log(self) -> list[LogRecord]:
        # Home Assistant removes the log when it stops.
        if (log := self._hass.data.get("system_log")) is None:
            raise HomeError(MISSING_INTEGRATIONS["system_log"])
        return read_log(log.records.to_list())

    def _require(self, name: str) -> None:
        if name not in self._hass.config.components:
            raise HomeError(MISSING_INTEGRATIONS[name])

    async def _ask_recorder(self, query: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run a query in the recorder's own threads. Raise `HomeError` if it fails."""
        try:
            return await get_instance(self._hass).async_add_executor_job(query, *arguments)
        except Exception as error:
            _logger.warning("the recorder could not answer", exc_info=True)
            raise HomeError(f"Home Assistant's recorder could not answer: {error!s:.200}") from error

    async def _list_users(self) -> dict[str, str]:
        """Return names by user id. A person's name comes before the name of the user's account."""
        users = {user.id: user.name for user in await self._hass.auth.async_get_users() if user.name}
        for person in self._hass.states.async_all("person"):
            if user_id := person.attributes.get("user_id"):
                users[user_id] = person.name
        return users


def _query_history(
    hass: HomeAssistant, entity_ids: list[str], start: datetime, end: datetime
) -> dict[str, list[HistoryPoint]]:
    from homeassistant.components.recorder.history import get_significant_states

    raw: dict[str, Any] = get_significant_states(
        hass,
        start.astimezone(UTC),
        end.astimezone(UTC),
        entity_ids,
        significant_changes_only=False,
        minimal_response=True,
        no_attributes=True,
        compressed_state_format=True,
    )
    return {entity_id: read_history(raw.get(entity_id, []), start) for entity_id in entity_ids}


def _query_statistics(
    hass: HomeAssistant, entity_ids: list[str], start: datetime, end: datetime
) -> dict[str, list[HourlyStatistics]]:
    from homeassistant.components.recorder.statistics import statistics_during_period

    raw = statistics_during_period(
        hass,
        start.astimezone(UTC),
        end.astimezone(UTC),
        set(entity_ids),
        "hour",
        None,
        {"mean", "min", "max", "sum", "change"},
    )
    return {
        entity_id: read_statistics({**row, "start": row["start"] * 1000} for row in raw.get(entity_id, ()))
        for entity_id in entity_ids
    }
