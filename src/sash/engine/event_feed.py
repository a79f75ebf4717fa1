"""The durable events of a session as many read them: each is read from the store once.

A feed keeps the last of them for those who keep up; who is slow, or comes late, reads the store itself.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from typing import Any

from sash.engine.event_hub import Event, EventHub, Subscriber
from sash.ports.store import Store, StoredStep
from sash.values.codec import adapter
from sash.values.continuations import Continuation
from sash.values.steps import Step

KEPT = 64
EVENTS_EVERY_S = 2.0
_PAGE = 100


class EventFeed:
    """The events of one session: `_recent` are all that the store has behind the cursor `_start`.

    It is `over` when no more can come.
    """

    def __init__(self, store: Store, owner: str, session_id: str, news: Subscriber, start: int) -> None:
        self.readers = 0
        self.over = False
        self._store = store
        self._owner = owner
        self._session_id = session_id
        self._news = news.news
        self._news.set()
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._start = start
        self._recent: deque[Event] = deque()

    async def after(self, cursor: int) -> list[Event]:
        """Return the events behind a cursor, or the next of them if there are many."""
        while cursor >= self._start:
            new = list(takewhile(lambda event: (event.cursor or 0) > cursor, reversed(self._recent)))
            if new or not self._is_stale:
                return new[::-1]
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            # All who wait go on at once, and one who goes away takes nothing from the others.
            await asyncio.shield(self._reading)
        return await self._behind(cursor)

    async def news(self, reader: Subscriber) -> None:
        """Wait until there may be something new for a reader."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EVENTS_EVERY_S):
                await reader.news.wait()

    @property
    def _is_stale(self) -> bool:
        """Whether there is news, or another process may have written some."""
        return self._news.is_set() or asyncio.get_running_loop().time() - self._read_at >= EVENTS_EVERY_S

    async def _read(self) -> None:
        """Read what is new, and let go of what is old."""
        self._news.clear()
        end = (self._recent[-1].cursor if self._recent else None) or self._start
        stored = await self._behind_in_store(end)
        over = not stored and await self._is_over()
        if over:
            stored = await self._behind_in_store(end)  # Another process may have ended it between the two.
        self._recent += [await self._event(item) for item in stored]
        while len(self._recent) > KEPT:
            self._start = self._recent.popleft().cursor or self._start
        if stored:
            self._news.set()  # There may be more; and whether it is over is not what somebody waits for.
            return
        self.over = over
        self._read_at = asyncio.get_running_loop().time()

    async def _is_over(self) -> bool:
        """Whether nothing can happen in the session any more."""
        if (await self._store.get_session(self._owner, self._session_id)).status == "active":
            return False
        return not await self._store.list_continuations(self._owner, self._session_id, open_only=True)

    async def _behind(self, cursor: int) -> list[Event]:
        """Read the store for one who has not seen the beginning of what is kept."""
        stored = await self._behind_in_store(cursor)
        if not self._recent and len(stored) < _PAGE:
            # Nothing is where the feed began: those steps were swept.
            self._start = min(self._start, stored[-1].step.cursor if stored else cursor)
        return [await self._event(item) for item in stored]

    async def _behind_in_store(self, cursor: int) -> list[StoredStep]:
        return await self._store.events(self._owner, self._session_id, after=cursor, limit=_PAGE)

    async def _event(self, item: StoredStep) -> Event:
        step, session_id = item.step, self._session_id
        payload: dict[str, Any] = {"step": adapter(Step).dump_python(step, mode="json")}
        if step.final_status is None:
            return Event("step", session_id, item.continuation_id, payload, step.cursor)
        continuation = await self._store.get_continuation(self._owner, item.continuation_id)
        response = adapter(Continuation).dump_python(continuation, mode="json")
        payload["final_response"] = response["response"]
        payload["status"], payload["error"] = response["status"], response["error"]
        return Event("final", session_id, item.continuation_id, payload, step.cursor)


class EventFeeds:
    """The feeds of the sessions that somebody listens to."""

    def __init__(self, store: Store, hub: EventHub) -> None:
        self._store = store
        self._hub = hub
        self._feeds: dict[tuple[str, str], tuple[EventFeed, ExitStack]] = {}

    @contextmanager
    def read(self, owner: str, session_id: str, cursor: int) -> Iterator[EventFeed]:
        """Read a session's feed for as long as the context lasts; the first reader's cursor is its start."""
        key = (owner, session_id)
        if key not in self._feeds:
            subscription = ExitStack()
            news = subscription.enter_context(self._hub.subscribe(session_id))
            self._feeds[key] = (EventFeed(self._store, owner, session_id, news, cursor), subscription)
        feed, subscription = self._feeds[key]
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                del self._feeds[key]
                subscription.close()
