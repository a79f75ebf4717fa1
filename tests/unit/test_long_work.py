"""Long work leaves the event loop. Each owner has one thread for it, as long as there is work."""

import asyncio
import threading

import pytest

from sash.engine.long_work import MAX_INLINE_CHARS, LongWork

WAIT_S = 30
LONG = MAX_INLINE_CHARS + 1


async def test_short_work_runs_at_once_and_long_work_in_a_thread():
    long_work = LongWork()
    assert await long_work.run("ann", MAX_INLINE_CHARS, threading.get_ident) == threading.get_ident()
    assert await long_work.run("ann", LONG, threading.get_ident) != threading.get_ident()


async def test_the_error_of_long_work_reaches_the_caller():
    long_work = LongWork()
    with pytest.raises(ValueError, match="invalid literal"):
        await long_work.run("ann", LONG, int, "x")
    assert await long_work.run("ann", LONG, int, "7") == 7


async def test_the_work_of_one_owner_runs_in_order_and_does_not_delay_another_owner():
    long_work, may_end, order = LongWork(), threading.Event(), []
    blocking = asyncio.create_task(long_work.run("ann", LONG, may_end.wait, WAIT_S))
    waiting = [asyncio.create_task(long_work.run("ann", LONG, order.append, n)) for n in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        assert await long_work.run("bob", LONG, int, "7") == 7
        assert order == []
        may_end.set()
        await asyncio.gather(blocking, *waiting)
    assert order == [0, 1, 2]


async def test_cancelled_work_is_not_done_and_the_thread_ends():
    long_work, may_end, done = LongWork(), threading.Event(), []

    def block():
        may_end.wait(WAIT_S)
        return threading.current_thread()

    blocking = asyncio.create_task(long_work.run("ann", LONG, block))
    cancelled = asyncio.create_task(long_work.run("ann", LONG, done.append, "cancelled"))
    last = asyncio.create_task(long_work.run("ann", LONG, done.append, "last"))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0)
    may_end.set()
    async with asyncio.timeout(WAIT_S):
        thread = await blocking
        await last
    assert done == ["last"]
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert await long_work.run("ann", LONG, int, "7") == 7
