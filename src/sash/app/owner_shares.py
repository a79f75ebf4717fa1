"""Fair shares: how many expensive requests of one owner run at a time, so that other owners are not delayed.

A request past its owner's share waits in the owner's line. A request past the line is refused at once.
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
        self._lines: dict[tuple[str, Work], deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def use(self, owner: str, work: Work) -> AsyncIterator[None]:
        """Run a block within the owner's share. Wait for a place, or raise `TooManyRequests`."""
        key, share = (owner, work), SHARES[work]
        if self._running[key] < share.running:
            self._running[key] += 1
        else:
            await self._wait_in_line(key, share)
        try:
            yield
        finally:
            self._pass_on(key)

    async def _wait_in_line(self, key: tuple[str, Work], share: Share) -> None:
        line = self._lines.setdefault(key, deque())
        if len(line) >= share.waiting:
            raise TooManyRequests(
                f"you have {share.running + share.waiting} requests of this kind ({key[1]}) under way, the "
                "maximum: try again when one of them has ended",
                limit=share.running + share.waiting,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(key)  # The place was given to this request at the same moment.
            elif turn in line:
                line.remove(turn)
            raise

    def _pass_on(self, key: tuple[str, Work]) -> None:
        """Give a free place to the first request in line."""
        line = self._lines.get(key)
        while line:
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._lines.pop(key, None)
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
