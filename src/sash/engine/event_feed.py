"""The stored events of a session for many subscribers: each event is read from the store once.

A feed keeps the newest events for subscribers that keep up. A subscriber that is slow or joins later reads
the store itself.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile

from sash.engine.event_hub import EventHub, Subscriber
from sash.ports.store import Store, StoredStep
from sash.values.events import FinalEvent, StepEvent

MAX_KEPT = 64
POLL_S = 2.0
_PAGE = 100

StoredEvent = StepEvent | FinalEvent


class EventFeed:
    """The events of one session. `_recent` holds all stored events after the cursor `_start`.

    `is_over` becomes True when no more events can come.
    """

    def __init__(self, store: Store, owner: str, session_id: str, news: Subscriber, start: int) -> None:
        self.readers = 0
        self.is_over = False
        self._store = store
        self._owner = owner
        self._session_id = session_id
        self._news = news.news
        self._news.set()
        self._last_read_s = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._start = start
        self._recent: deque[StoredEvent] = deque()

    async def after(self, cursor: int) -> list[StoredEvent]:
        """Return the stored events after a cursor, at most one page. Empty if there are none yet.

        All events that were stored before the call count, if the feed was told of them.
        """
        reads = 0
        while cursor >= self._start:
            new = list(takewhile(lambda event: event.cursor > cursor, reversed(self._recent)))
            if new or reads == 2 or not self._is_stale:
                return new[::-1]
            # Only the first read may have begun before this call. There may be news all the time.
            reads += 1
            if self._reading is None or self._reading.done():
                self._reading, reads = asyncio.create_task(self._read()), 2
                self._reading.add_done_callback(_retrieve_error)
            # A subscriber that goes away must not cancel the read of the others.
            reading = self._reading
            await asyncio.wait([reading])
            reading.result()
        return await self._read_behind(cursor)

    async def wait(self, subscriber: Subscriber) -> None:
        """Wait until there may be new events for a subscriber, at most `POLL_S` seconds."""
        if self.is_over:
            return  # The end was found meanwhile: one more read shows whether events came before it.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await subscriber.news.wait()

    @property
    def _is_stale(self) -> bool:
        """Return True if the store may have newer events than `_recent`, from this or another process."""
        is_reading = self._reading is not None and not self._reading.done()
        is_late = asyncio.get_running_loop().time() - self._last_read_s >= POLL_S
        return self._news.is_set() or is_reading or is_late

    async def _read(self) -> None:
        """Read new events from the store, and drop the oldest of the kept events."""
        self._news.clear()
        end = self._recent[-1].cursor if self._recent else self._start
        stored = await self._read_store(end)
        is_over = not stored and await self._is_session_over()
        if is_over:
            stored = await self._read_store(end)  # The last events may be newer than the first read.
        self._recent += [await self._make_event(item) for item in stored]
        while len(self._recent) > MAX_KEPT:
            self._start = self._recent.popleft().cursor
        if stored:
            self._news.set()  # There may be another page.
            return
        self.is_over = is_over
        self._last_read_s = asyncio.get_running_loop().time()

    async def _is_session_over(self) -> bool:
        """Return True if the session takes no more turns and has no open turn."""
        if (await self._store.get_session(self._owner, self._session_id)).status == "active":
            return False
        return not await self._store.list_continuations(self._owner, self._session_id, open_only=True)

    async def _read_behind(self, cursor: int) -> list[StoredEvent]:
        """Return events from the store, for a subscriber whose cursor is before the kept events."""
        stored = await self._read_store(cursor)
        if not self._recent and len(stored) < _PAGE:
            # A sweep has dropped the steps at the start of the feed.
            self._start = min(self._start, stored[-1].step.cursor if stored else cursor)
        return [await self._make_event(item) for item in stored]

    async def _read_store(self, cursor: int) -> list[StoredStep]:
        return await self._store.events(self._owner, self._session_id, after=cursor, limit=_PAGE)

    async def _make_event(self, item: StoredStep) -> StoredEvent:
        if item.step.final_status is None:
            return StepEvent(self._session_id, item.continuation_id, item.step)
        continuation = await self._store.get_continuation(self._owner, item.continuation_id)
        return FinalEvent(self._session_id, item.continuation_id, item.step, continuation)


def _retrieve_error(reading: asyncio.Task[None]) -> None:
    """Mark the error of a read as seen: its subscribers may have gone away before it failed."""
    if not reading.cancelled():
        reading.exception()


class EventFeeds:
    """The feeds of all sessions that have subscribers."""

    def __init__(self, store: Store, hub: EventHub) -> None:
        self._store = store
        self._hub = hub
        self._feeds: dict[tuple[str, str], tuple[EventFeed, ExitStack]] = {}

    @contextmanager
    def open(self, owner: str, session_id: str, cursor: int) -> Iterator[EventFeed]:
        """Share the feed of a session until the context ends. A new feed starts at `cursor`."""
        key = (owner, session_id)
        if key not in self._feeds:
            subscription = ExitStack()
            news = subscription.enter_context(self._hub.subscribe(session_id, reads_store_only=True))
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
