"""Fair shares: how many expensive requests of one owner run at a time, so that other owners are not delayed.

A request past its owner's share waits in the owner's queue. A request past the queue is refused at once.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypeVar

from sash.errors import TooManyRequests

T = TypeVar("T")
Work = Literal["request", "wait", "search", "transfer", "import", "upload", "report", "tool"]


class Share(NamedTuple):
    """How many requests of one kind may run and wait, for each owner."""

    running: int
    waiting: int


# Every request is a request until its response has ended, but not while it waits for a turn or for events.
# A transfer is an export, an import or a copy of a whole session, or a deletion. An export runs until the
# client has read it. An import and an upload of another large body run until the response has ended.
SHARES: dict[Work, Share] = {
    "request": Share(32, 4000),
    "wait": Share(1000, 0),
    "search": Share(1, 8),
    "transfer": Share(1, 8),
    "import": Share(1, 2),
    "upload": Share(4, 64),
    "report": Share(2, 16),
    "tool": Share(2, 100),
}


class OwnerShares:
    """The expensive requests of all owners that run or wait."""

    def __init__(self) -> None:
        self._running: Counter[tuple[str, Work]] = Counter()
        self._queues: dict[tuple[str, Work], deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def use(self, owner: str, work: Work) -> AsyncIterator[None]:
        """Run a block within the owner's share. Wait for a place, or raise `TooManyRequests`."""
        key = (owner, work)
        await self.enter(key)
        try:
            yield
        finally:
            self.leave(key)

    async def _wait_in_queue(self, key: tuple[str, Work], share: Share) -> None:
        queue = self._queues.setdefault(key, deque())
        if len(queue) >= share.waiting:
            raise TooManyRequests(
                f"you have {share.running + share.waiting} requests of this kind ({key[1]}) under way, the "
                "maximum: try again when one of them has ended",
                limit=share.running + share.waiting,
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave(key)  # The place was given to this request at the same moment.
            elif place in queue:
                queue.remove(place)
            raise

    async def take_place(self, owner: str) -> "RequestPlace":
        """Return a place for a request of the owner. Wait for one, or raise `TooManyRequests`."""
        await self.enter((owner, "request"))
        return RequestPlace(self, owner)

    async def run_aside(self, owner: str, wait: Callable[[], Awaitable[T]]) -> T:
        """Wait for something that may take long. The current request gives up its place meanwhile."""
        place = _current_place.get()
        async with self.use(owner, "wait"):
            if place is not None:
                place.leave()
            result = await wait()
        if place is not None:
            await place.take_again()
        return result

    async def enter(self, key: tuple[str, Work]) -> None:
        """Take a place. The caller has to free it with `leave`."""
        share = SHARES[key[1]]
        if self._running[key] < share.running:
            self._running[key] += 1
        else:
            await self._wait_in_queue(key, share)

    def leave(self, key: tuple[str, Work]) -> None:
        """Give a free place to the first request in the queue."""
        queue = self._queues.get(key)
        while queue:
            place = queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._queues.pop(key, None)
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]


class RequestPlace:
    """The place of a request among the running requests of its owner. The context frees it at its end."""

    def __init__(self, shares: OwnerShares, owner: str) -> None:
        self._shares = shares
        self._key: tuple[str, Work] = (owner, "request")
        self._is_taken = True
        self._is_over = False

    def __enter__(self) -> None:
        self._token = _current_place.set(self)

    def __exit__(self, *_: object) -> None:
        _current_place.reset(self._token)
        self._is_over = True
        self.leave()

    def leave(self) -> None:
        """Free the place. A second call has no effect."""
        if self._is_taken:
            self._is_taken = False
            self._shares.leave(self._key)

    async def take_again(self) -> None:
        """Take a place after `leave`. A request that has ended takes none."""
        if not self._is_over:
            await self._shares.enter(self._key)
            self._is_taken = True
            if self._is_over:
                self.leave()


_current_place: ContextVar[RequestPlace | None] = ContextVar("current_place", default=None)


def leave_place() -> None:
    """Free the place of the current request, if it has one, before the request has ended."""
    if (place := _current_place.get()) is not None:
        place.leave()
