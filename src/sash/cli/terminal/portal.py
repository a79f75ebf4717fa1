"""Calls from the main thread into the event loop of another thread, through anyio's blocking portal.

The main thread reads lines and prints, so that a slow terminal never blocks the event loop. Ctrl-C interrupts
the main thread only.
"""

from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal

T = TypeVar("T")

_END = object()


def call(portal: BlockingPortal, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop and return its result. Ctrl-C during the wait cancels it."""
    future: Future[T] = portal.start_task_soon(lambda: work)
    try:
        return future.result()
    finally:
        future.cancel()


def iterate(portal: BlockingPortal, items: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items as they arrive. Closing or interrupting the iterator cancels the reading."""
    arrived: SimpleQueue[Any] = SimpleQueue()

    async def read() -> None:
        try:
            async for item in items:
                arrived.put(item)
        finally:
            arrived.put(_END)

    reading = portal.start_task_soon(read)
    try:
        while (item := arrived.get()) is not _END:
            yield item
        reading.result()
    finally:
        reading.cancel()
