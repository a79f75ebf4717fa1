"""Starts the work of one owner piece by piece, so that other owners have the event loop in between.

The event loop runs everything that is ready, again and again. The turn of another owner needs about 20 such
rounds. If all requests and turns of an owner went on in one round, each round would take as long as all of
them. Pacing costs a third of the throughput, so it is off while only one owner has work.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

# After a longer round, the owner's next piece of work waits for as long as the round took.
SHORT_ROUND_S = 0.002
# For this long after the work of another owner, the event loop counts as shared.
SHARED_S = 60.0


class OwnerPacing:
    """Lets at most one piece of work of each owner start in a round of the event loop."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        # An owner is here for a round after each start. The work in the queue waits.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_owner: str | None = None
        self._shared_until = float("-inf")

    async def wait(self, owner: str) -> None:
        """Wait until a piece of the owner's work may start. Return at once if no other owner has work."""
        if owner != self._last_owner:
            self._shared_until = self._now() + SHARED_S if self._last_owner is not None else float("-inf")
            self._last_owner = owner
        elif self._now() > self._shared_until:
            return
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The rounds of a loop that has ended go on no more.
            self._loop, self._queues, self._pauses = loop, {}, {}
        queue = self._queues.get(owner)
        if queue is None:
            self._queues[owner] = deque()
            self._watch_round(owner)
            return
        start = loop.create_future()
        queue.append(start)
        await start

    def close(self) -> None:
        """Let all work go on, and leave no timer behind."""
        for pause in self._pauses.values():
            pause.cancel()
        for queue in self._queues.values():
            for start in queue:
                if not start.done():
                    start.set_result(None)
        self._pauses, self._queues = {}, {}

    def _watch_round(self, owner: str) -> None:
        """Start the next piece of work after this round, and after a pause if the round was long."""
        asyncio.get_running_loop().call_soon(self._end_round, owner, self._now())

    def _end_round(self, owner: str, started_at: float) -> None:
        round_s = self._now() - started_at
        if owner not in self._queues:
            return
        if round_s > SHORT_ROUND_S:
            loop = asyncio.get_running_loop()
            self._pauses[owner] = loop.call_later(round_s, self._start_next, owner)
        else:
            self._start_next(owner)

    def _start_next(self, owner: str) -> None:
        self._pauses.pop(owner, None)
        queue = self._queues[owner]
        while queue:
            start = queue.popleft()
            if not start.done():
                start.set_result(None)
                self._watch_round(owner)
                return
        del self._queues[owner]
