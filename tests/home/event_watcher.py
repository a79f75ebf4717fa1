"""Listens to a house, and waits for what a test expects of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from sash.ports.home import Home, HomeEvent


class EventWatcher:
    """Keeps what a house tells. `until` goes on after what it has found before."""

    def __init__(self, home: Home) -> None:
        self.events: list[HomeEvent] = []
        self._looked_at = 0
        self._news = asyncio.Event()
        self.stop = home.subscribe(self._hear)

    async def until(
        self, kind: type[HomeEvent], matches: Callable[[Any], bool] = lambda event: True, within_s: float = 30
    ) -> Any:
        """Return the next event of a kind; the test fails if it does not come."""
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
