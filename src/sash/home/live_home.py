"""Keeps the index of a home up to date from its events."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import tzinfo
from zoneinfo import ZoneInfo

from sash.errors import HomeUnauthorized, HomeUnavailable
from sash.home.index import HomeIndex
from sash.ports.home import (
    Connected,
    Disconnected,
    Home,
    HomeEvent,
    LayoutChanged,
    Service,
    StateChanged,
)

# Seconds to collect changes of the registries, which come in bursts, before the layout is read.
SETTLE_S = 1.0
# Minimum seconds between two reads of the layout.
REST_S = 10.0

_logger = logging.getLogger(__name__)

StateWatcher = Callable[[StateChanged], None]


class LiveHome:
    """Keeps an index of a home. There is no index while the home is not connected."""

    def __init__(self, home: Home, *, settle_s: float = SETTLE_S, rest_s: float = REST_S) -> None:
        self.home = home
        self._settle_s = settle_s
        self._rest_s = rest_s
        self._index: HomeIndex | None = None
        self._services: dict[str, Service] = {}
        self._problem = Disconnected("it is still connecting")
        self._changes_while_reading: list[StateChanged] | None = None
        self._read_task: asyncio.Task[None] | None = None
        self._is_outdated = False
        self._ready = asyncio.Event()
        self._watchers: set[StateWatcher] = set()
        self._time_zone: tzinfo | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Start to connect. This returns at once, even if the home cannot be reached."""
        await self.home.open()
        self._unsubscribe = self.home.subscribe(self._on_event)

    async def close(self) -> None:
        self._unsubscribe()
        self._drop_index(Disconnected("it was closed"))
        await self.home.close()

    @property
    def index(self) -> HomeIndex:
        """The current index. Raise `HomeUnavailable` or `HomeUnauthorized` if the home is not connected."""
        if self._index is None:
            kind = HomeUnauthorized if self._problem.is_token_refused else HomeUnavailable
            raise kind(f"{self.home.name} cannot be reached: {self._problem.reason}")
        return self._index

    @property
    def language(self) -> str | None:
        """The language of the home; None while it is not connected."""
        return None if self._index is None else self._index.language

    @property
    def services(self) -> dict[str, Service]:
        """The services of the home by name. Empty before the first connection."""
        return self._services

    @property
    def time_zone(self) -> tzinfo | None:
        """The time zone of the home. None before the first connection, or if the zone is unknown here."""
        return self._time_zone

    async def wait_until_ready(self) -> HomeIndex:
        """Wait until there is an index, without a time limit, and return it."""
        while self._index is None:
            await self._ready.wait()
        return self._index

    async def wait_briefly(self, timeout_s: float) -> None:
        """Return when there is an index, or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.wait_until_ready()

    def watch(self, watcher: StateWatcher) -> Callable[[], None]:
        """Call `watcher` with every state change, after the index has it. Return a function that ends this.

        A watcher must not block.
        """
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    async def wait_until(self, is_met: Callable[[], bool], entity_ids: set[str], timeout_s: float) -> None:
        """Return when a condition is met, or after the timeout.

        The condition is checked now and after each change of an entity in `entity_ids`.
        """
        changed = asyncio.Event()

        def watch(event: StateChanged) -> None:
            if event.entity_id in entity_ids:
                changed.set()

        unwatch = self.watch(watch)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    while not is_met():
                        changed.clear()
                        await changed.wait()
        finally:
            unwatch()

    def _on_event(self, event: HomeEvent) -> None:
        match event:
            case StateChanged():
                self._apply(event)
            case Connected():
                self._schedule_read(0.0)
            case LayoutChanged():
                self._schedule_read(self._settle_s)
            case Disconnected():
                self._drop_index(event)

    def _apply(self, event: StateChanged) -> None:
        if self._changes_while_reading is not None:
            self._changes_while_reading.append(event)
        if self._index is not None:
            self._index.apply(event.entity_id, event.state)
        for watcher in tuple(self._watchers):
            watcher(event)

    def _drop_index(self, problem: Disconnected) -> None:
        self._problem = problem
        self._index = self._changes_while_reading = None
        self._ready.clear()
        if self._read_task is not None:
            self._read_task.cancel()
            self._read_task = None

    def _schedule_read(self, delay_s: float) -> None:
        """Read layout, states and services after a delay. If a read is running, another read follows it."""
        self._is_outdated = True
        if self._read_task is None:
            self._read_task = asyncio.get_running_loop().create_task(self._read_until_current(delay_s))

    async def _read_until_current(self, delay_s: float) -> None:
        while self._is_outdated:
            await asyncio.sleep(delay_s)
            self._is_outdated, delay_s = False, self._rest_s
            try:
                await self._read()
            except Exception as error:
                self._problem = Disconnected(str(error) or type(error).__name__)
                self._is_outdated = True
                _logger.warning("could not read %s, retrying: %s", self.home.name, self._problem.reason)
        self._read_task = None

    async def _read(self) -> None:
        """Read the home and build a new index in a thread. Apply the changes that arrived meanwhile."""
        self._changes_while_reading = []
        layout, states, services = await asyncio.gather(
            self.home.get_layout(), self.home.get_states(), self.home.get_services()
        )
        index = await asyncio.to_thread(HomeIndex, layout, states)
        self._time_zone = await asyncio.to_thread(_load_zone, layout.time_zone)
        for event in self._changes_while_reading:
            index.apply(event.entity_id, event.state)
        self._index, self._services, self._changes_while_reading = index, services, None
        self._ready.set()


def _load_zone(name: str | None) -> tzinfo | None:
    """Return a time zone. Return None if the name is missing, or unknown on this machine."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        _logger.warning("the time zone %.80s of the home is unknown here", name)
        return None
