"""Long work leaves the event loop: one thread does it, the shortest first."""

import asyncio
import threading

import pytest

from sash.engine.offload import MAX_INLINE_CHARS, LongWork, offload

WAIT_S = 10


async def test_short_work_runs_at_once_and_long_work_in_a_thread():
    assert await offload(MAX_INLINE_CHARS, threading.get_ident) == threading.get_ident()
    assert await offload(MAX_INLINE_CHARS + 1, threading.get_ident) != threading.get_ident()


async def test_the_error_of_long_work_reaches_the_caller():
    with pytest.raises(ValueError, match="not a number"):
        await offload(MAX_INLINE_CHARS + 1, _fail)
    assert await offload(MAX_INLINE_CHARS + 1, int, "7") == 7


def _fail():
    raise ValueError("not a number")


def test_shorter_work_overtakes_longer_work():
    long_work, may_end, order = LongWork(), threading.Event(), []
    first = long_work.add(1, lambda: may_end.wait(WAIT_S))
    rest = [long_work.add(size, lambda size=size: order.append(size)) for size in (30, 10, 20, 10)]
    assert order == []
    may_end.set()
    for future in (first, *rest):
        future.result(WAIT_S)
    assert order == [10, 10, 20, 30]


def test_cancelled_work_is_not_done_and_the_thread_ends():
    long_work, may_end, done = LongWork(), threading.Event(), []
    first = long_work.add(1, lambda: (may_end.wait(WAIT_S), threading.current_thread())[1])
    cancelled = long_work.add(2, lambda: done.append("cancelled"))
    last = long_work.add(3, lambda: done.append("last"))
    assert cancelled.cancel()
    may_end.set()
    last.result(WAIT_S)
    assert done == ["last"]
    thread = first.result(WAIT_S)
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert long_work.add(1, lambda: "again").result(WAIT_S) == "again"


async def test_a_caller_that_is_cancelled_leaves_the_others_alone():
    may_end = threading.Event()
    blocking = asyncio.create_task(offload(MAX_INLINE_CHARS + 1, may_end.wait, WAIT_S))
    other = asyncio.create_task(offload(MAX_INLINE_CHARS + 2, int, "7"))
    await asyncio.sleep(0)
    blocking.cancel()
    may_end.set()
    async with asyncio.timeout(WAIT_S):
        assert await other == 7
