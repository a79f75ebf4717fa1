"""Records the events of a home and waits for expected ones."""

import asyncio
from collections.abc import Callable
from typing import Any

from sash.ports.home import Home, HomeEvent


class EventWatcher:
    """Records events. `until` continues after the last event it returned."""

    def __init__(self, home: Home) -> None:
        self.events: list[HomeEvent] = []
        self._looked_at = 0
        self._news = asyncio.Event()
        self.stop = home.subscribe(self._hear)

    async def until(
        self, kind: type[HomeEvent], matches: Callable[[Any], bool] = lambda event: True, within_s: float = 30
    ) -> Any:
        """Return the next matching event. Raises `TimeoutError` if it does not arrive in time."""
        async with asyncio.timeout(within_s):
            while True:
                while self._looked_at < len(self.events):
                    event = self.events[self._looked_at]
                    self._looked_at += 1
                    if isinstance(event, kind) and matches(event):
                        return event
                self._news.clear()
                await self._news.wait()

    def _hear(self, event: HomeEvent) -> None:
        self.events.append(event)
        self._news.set()
