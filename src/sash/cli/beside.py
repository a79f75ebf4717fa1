"""An event loop in a thread of its own: who reads lines and prints never holds up what runs there.

The main thread stays the one that is interrupted by Ctrl-C, whatever it waits for.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Self, TypeVar

T = TypeVar("T")

_END = object()


class Beside:
    """Runs coroutines beside the thread that waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sash-loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of it; who is interrupted while he waits has it cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    @contextmanager
    def within(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Be within a context of the loop."""
        entered = self.call(_enter(context))
        try:
            yield entered
        finally:
            self.call(_leave(context))

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Give the items as they come, until there are no more or nobody wants them."""
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        reading = asyncio.run_coroutine_threadsafe(_read(items, arrived), self._loop)
        try:
            while (item := arrived.get()) is not _END:
                yield item
            reading.result()
        finally:
            reading.cancel()


async def _enter(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _leave(context: AbstractAsyncContextManager[Any]) -> None:
    await context.__aexit__(None, None, None)


async def _read(items: AsyncIterator[Any], into: queue.SimpleQueue[Any]) -> None:
    try:
        async for item in items:
            into.put(item)
    finally:
        into.put(_END)
