"""Fair shares: how many expensive requests of one owner run at a time, so that other owners are not delayed.

A request past its owner's share waits in the owner's queue. A request past the queue is refused at once.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple

from sash.errors import TooManyRequests

Work = Literal["search", "transfer", "import", "upload", "report"]


class Share(NamedTuple):
    """How many requests of one kind may run and wait, for each owner."""

    running: int
    waiting: int


# A transfer is an export, an import or a copy of a whole session, or a deletion. An export runs until the
# client has read it. An import and an upload of another large body run until the response has ended.
SHARES: dict[Work, Share] = {
    "search": Share(1, 8),
    "transfer": Share(1, 8),
    "import": Share(1, 2),
    "upload": Share(4, 16),
    "report": Share(2, 16),
}


class OwnerShares:
    """The expensive requests of all owners that run or wait."""

    def __init__(self) -> None:
        self._running: Counter[tuple[str, Work]] = Counter()
        self._queues: dict[tuple[str, Work], deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def use(self, owner: str, work: Work) -> AsyncIterator[None]:
        """Run a block within the owner's share. Wait for a place, or raise `TooManyRequests`."""
        key, share = (owner, work), SHARES[work]
        if self._running[key] < share.running:
            self._running[key] += 1
        else:
            await self._wait_in_queue(key, share)
        try:
            yield
        finally:
            self._pass_on(key)

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
                self._pass_on(key)  # The place was given to this request at the same moment.
            elif place in queue:
                queue.remove(place)
            raise

    def _pass_on(self, key: tuple[str, Work]) -> None:
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
