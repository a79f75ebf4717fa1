"""The home of the Home Assistant that runs Sash, read from its memory. It needs no network."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from homeassistant.core import HomeAssistant

from sash.errors import HomeUnavailable
from sash.ports.home import (
    HistoryPoint,
    HourlyStatistics,
    Layout,
    Listener,
    LogbookEntry,
    LogRecord,
    Service,
    State,
)
from sash.values.continuations import TurnCaller

from .entity_states import read_state
from .home_events import HomeEvents
from .home_layout import get_layout
from .loop_slices import convert_in_slices
from .recorded_past import RecordedPast
from .service_calls import call_service
from .service_descriptions import ServiceDescriptions


class HassHome:
    """A `Home` over `hass`, on the event loop of Home Assistant. It is connected from `open` to `close`."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._was_opened = False
        self._events = HomeEvents(hass)
        self._services = ServiceDescriptions(hass)
        self._past = RecordedPast(hass)

    @property
    def name(self) -> str:
        return "Home Assistant"

    async def open(self) -> None:
        self._was_opened = True
        self._events.open()

    async def close(self) -> None:
        self._events.close()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._events.subscribe(listener)

    async def get_layout(self) -> Layout:
        self._require_open()
        return await get_layout(self._hass)

    async def get_states(self) -> list[State]:
        self._require_open()
        return await convert_in_slices(self._hass.states.async_all(), read_state)

    async def get_state(self, entity_id: str) -> State | None:
        self._require_open()
        state = self._hass.states.get(entity_id)
        return read_state(state) if state else None

    async def get_services(self) -> dict[str, Service]:
        self._require_open()
        return await self._services.get()

    async def call_service(
        self,
        service: str,
        data: dict[str, Any],
        entity_ids: Collection[str] = (),
        *,
        caller: TurnCaller | None = None,
        turn_id: str | None = None,
        return_response: bool = False,
    ) -> dict[str, Any] | None:
        self._require_open()
        return await call_service(
            self._hass,
            service,
            data,
            entity_ids,
            caller=caller,
            turn_id=turn_id,
            return_response=return_response,
        )

    async def get_history(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HistoryPoint]]:
        self._require_open()
        return await self._past.get_history(entity_ids, start, end)

    async def get_statistics(
        self, entity_ids: Collection[str], start: datetime, end: datetime
    ) -> dict[str, list[HourlyStatistics]]:
        self._require_open()
        return await self._past.get_statistics(entity_ids, start, end)

    async def get_logbook(
        self, start: datetime, end: datetime, entity_ids: Collection[str] = ()
    ) -> list[LogbookEntry]:
        self._require_open()
        return await self._past.get_logbook(start, end, entity_ids)

    async def get_log(self) -> list[LogRecord]:
        self._require_open()
        return await self._past.get_log()

    def _require_open(self) -> None:
        if not self._events.is_open:
            reason = "it was closed" if self._was_opened else "it was not opened"
            raise HomeUnavailable(f"{self.name} cannot be reached: {reason}", reason=reason)
