"""Keeps long work out of the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

MAX_INLINE_CHARS = 4 << 10


class LongWork:
    """Runs long work in a thread of its owner, one after the other. The thread ends when nothing is left.

    Python gives all threads the same time. So the work of one owner, however much it is, takes no more time
    than the event loop and the work of each other owner.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def run(self, owner: str, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` and return its result. Work on more than `MAX_INLINE_CHARS` runs in a thread.

        `size` is the length of the work's input. Short work runs at once, because a switch of threads costs
        more.
        """
        if size <= MAX_INLINE_CHARS:
            return work(*args, **kwargs)
        return await asyncio.wrap_future(self._add(owner, partial(work, *args, **kwargs)))

    def _add(self, owner: str, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            is_idle = owner not in self._queues
            self._queues.setdefault(owner, deque()).append((future, work))
        if is_idle:
            Thread(target=self._work_off, args=(owner,), name="sash-long-work", daemon=True).start()
        return future

    def _work_off(self, owner: str) -> None:
        while True:
            with self._lock:
                if not self._queues[owner]:
                    del self._queues[owner]
                    return
                future, work = self._queues[owner].popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
