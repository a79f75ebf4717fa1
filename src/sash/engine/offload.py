"""Keeps long work out of the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from heapq import heappop, heappush
from itertools import count
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

MAX_INLINE_CHARS = 16 << 10


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` and return its result. Work on more than `MAX_INLINE_CHARS` runs in a thread.

    `size` is the length of the work's input. Short work runs at once, because a switch of threads costs more.
    """
    if size <= MAX_INLINE_CHARS:
        return work(*args, **kwargs)
    return await asyncio.wrap_future(_long_work.add(size, partial(work, *args, **kwargs)))


class LongWork:
    """Runs long work in one thread, the shortest first. The thread ends when nothing is left.

    Only one thread runs Python code at a time, so more threads would only take time from the event loop.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[tuple[int, int, Future[Any], Callable[[], Any]]] = []
        self._numbers = count()
        self._is_running = False

    def add(self, size: int, work: Callable[[], T]) -> Future[T]:
        """Add work on an input of this size, and return the future of its result."""
        future: Future[T] = Future()
        with self._lock:
            heappush(self._waiting, (size, next(self._numbers), future, work))
            must_start, self._is_running = not self._is_running, True
        if must_start:
            Thread(target=self._run, name="sash-long-work", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_running = False
                    return
                _, _, future, work = heappop(self._waiting)
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)


_long_work = LongWork()
