"""A house as this process knows it: the index, kept fresh by events, and read anew when that has to be."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from sash.errors import HomeUnauthorized, HomeUnavailable
from sash.home.index import Index
from sash.ports.home import (
    Connected,
    Disconnected,
    Home,
    HomeEvent,
    LayoutChanged,
    Service,
    StateChanged,
)

# Registries change in bursts: what comes within this time is read at once.
SETTLE_S = 1.0
# A house that changes all the time is not read all the time.
REST_S = 10.0

_logger = logging.getLogger(__name__)

Watcher = Callable[[StateChanged], None]


class LiveHome:
    """Keeps an index of a house. While the house cannot be asked there is none, and the error says why."""

    def __init__(self, home: Home, *, settle_s: float = SETTLE_S, rest_s: float = REST_S) -> None:
        self.home = home
        self._settle_s = settle_s
        self._rest_s = rest_s
        self._index: Index | None = None
        self._services: dict[str, Service] = {}
        self._reason = "it is still being connected to"
        self._refused = False
        self._missed: list[StateChanged] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._outdated = False
        self._ready = asyncio.Event()
        self._watchers: set[Watcher] = set()
        self._unsubscribe: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Begin to know the house; whether it can be reached or not, this returns at once."""
        await self.home.open()
        self._unsubscribe = self.home.subscribe(self._hear)

    async def close(self) -> None:
        """Let go of the house."""
        self._unsubscribe()
        self._forget("it was closed")
        await self.home.close()

    @property
    def index(self) -> Index:
        """The index; `HomeUnavailable` while the house cannot be asked."""
        if self._index is None:
            kind = HomeUnauthorized if self._refused else HomeUnavailable
            raise kind(f"{self.home.name} cannot be reached: {self._reason}")
        return self._index

    @property
    def services(self) -> dict[str, Service]:
        """What can be done in the house."""
        return self._services

    async def ready(self) -> Index:
        """Wait until the house can be asked."""
        while self._index is None:
            await self._ready.wait()
        return self._index

    async def until(self, entity_ids: set[str], wanted: Callable[[], bool], within_s: float) -> None:
        """Wait until something is so, as states of these entities come in, but not for too long."""
        news = asyncio.Event()

        def watch(event: StateChanged) -> None:
            if event.entity_id in entity_ids:
                news.set()

        self._watchers.add(watch)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    while not wanted():
                        news.clear()
                        await news.wait()
        finally:
            self._watchers.discard(watch)

    def _hear(self, event: HomeEvent) -> None:
        match event:
            case StateChanged():
                self._take(event)
            case Connected():
                self._read(0.0)
            case LayoutChanged():
                self._read(self._settle_s)
            case Disconnected(reason, refused):
                self._forget(reason, refused=refused)

    def _take(self, event: StateChanged) -> None:
        if self._missed is not None:
            self._missed.append(event)
        if self._index is not None:
            self._index.apply(event.entity_id, event.state)
        for watcher in tuple(self._watchers):
            watcher(event)

    def _forget(self, reason: str, *, refused: bool = False) -> None:
        self._reason, self._refused = reason, refused
        self._index = self._missed = None
        self._ready.clear()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _read(self, after_s: float) -> None:
        """Read the house, in a while; if it is being read just now, then once more after that."""
        self._outdated = True
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read_until_known(after_s))

    async def _read_until_known(self, after_s: float) -> None:
        while self._outdated:
            await asyncio.sleep(after_s)
            self._outdated, after_s = False, self._rest_s
            try:
                await self._read_once()
            except Exception as error:
                self._reason = str(error) or type(error).__name__
                self._outdated = True
                _logger.warning("%s could not be read, it is tried again: %s", self.home.name, self._reason)
        self._reading = None

    async def _read_once(self) -> None:
        """Read everything, and then what has changed meanwhile; a large house is indexed off the loop."""
        self._missed = []
        layout, states, services = await asyncio.gather(
            self.home.layout(), self.home.states(), self.home.services()
        )
        index = await asyncio.to_thread(Index, layout, states)
        for event in self._missed:
            index.apply(event.entity_id, event.state)
        self._index, self._services, self._missed = index, services, None
        self._ready.set()
