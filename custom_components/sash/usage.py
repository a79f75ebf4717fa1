"""The use of a config entry: tokens and money of the day, the last turn, and open turns."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, override

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers.debounce import Debouncer
from homeassistant.helpers.event import async_track_time_change
from homeassistant.helpers.update_coordinator import DataUpdateCoordinator, UpdateFailed
from homeassistant.util import dt as dt_util

from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import ContinuationNotFound, SashError, SessionNotFound
from sash.stores.sqlite.store import SqliteStore
from sash.values.stats import Stats

from .const import DOMAIN
from .store_counts import TurnKey, count_open_turns, find_last_turn
from .turn_signal import follow_turns

# Many turns may end at the same time. The store is read at once, and then at most this often.
COOLDOWN_S = 5.0

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of all owners together. `today` begins at `day_start`, midnight in the home's time zone.

    `last_turn_ms` and `window_fill` (in percent) are those of the last turn and of its session. They are None
    before the first turn. `window_fill` is also None if the window has no limit.
    """

    today: Stats
    day_start: datetime
    open_turns: int
    last_turn_ms: int | None = None
    window_fill: float | None = None


class UsageCoordinator(DataUpdateCoordinator[Usage]):
    """Reads the use from the store after each change of a turn, and at midnight."""

    config_entry: ConfigEntry

    def __init__(self, hass: HomeAssistant, entry: ConfigEntry, runtime: Runtime, store: SqliteStore) -> None:
        debouncer: Debouncer[Any] = Debouncer(hass, _LOGGER, cooldown=COOLDOWN_S, immediate=True)
        super().__init__(
            hass,
            _LOGGER,
            config_entry=entry,
            name=f"usage of {entry.title}",
            request_refresh_debouncer=debouncer,
            always_update=False,
        )
        self._runtime = runtime
        self._store = store
        self.data = Usage(Stats(), dt_util.start_of_local_day(), 0)

    @callback
    def open(self) -> CALLBACK_TYPE:
        """Follow the turns and the clock. Return a function that stops this."""

        async def refresh(_: object) -> None:
            await self.async_refresh()

        stop_turns = follow_turns(self.hass, self.config_entry, self._on_turn)
        stop_clock = async_track_time_change(self.hass, refresh, hour=0, minute=0, second=0)

        @callback
        def close() -> None:
            stop_turns()
            stop_clock()

        return close

    @callback
    def _on_turn(self, _: ContinuationResult) -> None:
        self.config_entry.async_create_background_task(
            self.hass, self.async_request_refresh(), f"{self.name} after a turn"
        )

    @override
    async def _async_update_data(self) -> Usage:
        day_start = dt_util.start_of_local_day()
        try:
            turns = await self._store.turn_stats(None, day_start)
            open_turns, last = await count_open_turns(self._store), await find_last_turn(self._store)
            last_turn_ms, window_fill = (None, None) if last is None else await self._read_turn(last)
        except SashError as error:
            raise UpdateFailed(
                translation_domain=DOMAIN,
                translation_key="failed",
                translation_placeholders={"message": error.message},
            ) from error
        return Usage(_sum(turns), day_start, open_turns, last_turn_ms, window_fill)

    async def _read_turn(self, key: TurnKey) -> tuple[int | None, float | None]:
        """Return the duration of a turn, and how full the window of its session is."""
        duration = None
        try:
            turn = await self._store.get_continuation(*key)
            duration = None if turn.stats is None else turn.stats.duration_ms
            session = await self._runtime.get_session(turn.session_id, owner=turn.owner)
            window = await self._runtime.window_stats(session)
        except ContinuationNotFound, SessionNotFound:  # It was deleted meanwhile.
            return duration, None
        return duration, None if window.max_tokens is None else round(window.utilization, 1)

    async def sum_errors(self, days: int) -> dict[str, int]:
        """Return how often turns failed in the last days, by code of the error."""
        since = dt_util.start_of_local_day() - timedelta(days=days - 1)
        turns = await self._store.turn_stats(None, since)
        return _sum(turns).errors


def _sum(turns: Iterable[tuple[datetime, Stats]]) -> Stats:
    return sum((stats for _, stats in turns), Stats())
