"""A caller that is cancelled at any of its awaits cancels no work: nothing hangs, is lost, doubled or stuck."""

import asyncio
from contextlib import suppress

import pytest

from sash.errors import ContinuationFinal, NotAwaitingApproval
from tests.attacks.cancelled_world import check_world, opened, run_at_every_suspension
from tests.backends import BACKENDS
from tests.cancelling import CancelPoint


async def send(world, call):
    await call(world.send("look here"))
    return {"completed"}


async def send_to_queue(world, call):
    await world.hang()
    await call(world.send("look here", busy="enqueue"))
    return {"completed"}


async def interrupt(world, call):
    await world.hang()
    await call(world.send("look here", busy="interrupt"))
    return {"completed", "cancelled"}


async def wait(world, call):
    await world.hang()
    waiting = asyncio.create_task(call(_await_open(world)))
    await asyncio.sleep(0)
    world.release.set()
    await waiting
    return {"completed"}


async def _await_open(world):
    for turn in await world.runtime.open_continuations(world.session.id):
        await world.runtime.await_continuation(turn.id)


async def approve(world, call):
    turn = await world.settle("lock it")
    await call(world.runtime.approve(turn.continuation.id, "call"))
    await world.runtime.wait_for_turns()
    with suppress(NotAwaitingApproval):
        await world.runtime.approve(turn.continuation.id, "call")
    return {"completed"}


async def approve_and_cancel(world, call):
    turn = (await world.settle("lock it")).continuation
    queued = await world.send("look here", busy="enqueue")
    await world.runtime.approve(turn.id, "call")
    with suppress(ContinuationFinal):
        await call(world.runtime.cancel(turn.id))
    await world.runtime.await_continuation(queued.id)
    return {"completed", "cancelled"}


async def cancel_running(world, call):
    turn = await world.hang()
    queued = await world.send("look here", busy="enqueue")
    await call(world.runtime.cancel(turn.id))
    with suppress(ContinuationFinal):
        await world.runtime.cancel(turn.id)
    await world.runtime.await_continuation(queued.id)
    assert (await world.runtime.await_continuation(turn.id)).status == "cancelled"
    return {"completed", "cancelled"}


async def cancel_waiting(world, call):
    turn = (await world.settle("lock it")).continuation
    queued = await world.send("look here", busy="enqueue")
    await call(world.runtime.cancel(turn.id))
    with suppress(ContinuationFinal):
        await world.runtime.cancel(turn.id)
    await world.runtime.await_continuation(queued.id)
    return {"completed", "cancelled"}


async def hang_and_die(world):
    """Start a turn whose process seems to die, and return it."""
    await world.hang()
    [turn] = await world.runtime.open_continuations(world.session.id)
    await world.runtime.abandon_turns()
    world.clock.advance(60)
    await world.store.interrupt_lost()
    world.release.set()
    return turn


async def resume(world, call):
    turn = await hang_and_die(world)
    await call(world.runtime.resume(turn.id))
    await world.runtime.wait_for_turns()
    with suppress(ContinuationFinal):
        await world.runtime.resume(turn.id)
    return {"completed"}


async def retry(world, call):
    turn = await hang_and_die(world)
    await call(world.runtime.retry(turn.id))
    await world.runtime.wait_for_turns()
    old = await world.store.get_continuation("local", turn.id)
    retried = [t for t in await world.store.list_continuations("local", world.session.id) if t.retry_of]
    assert (old.status == "cancelled") == bool(retried), "the turn is lost, or may run twice"
    if not retried:
        await world.runtime.resume(turn.id)
    return {"completed", "cancelled"}


async def recover(world, call):
    await world.hang()
    queued = await world.send("look here", busy="enqueue")
    await world.runtime.abandon_turns()
    world.clock.advance(60)
    world.release.set()
    await call(world.runtime.recover())
    await world.runtime.recover()
    await world.runtime.wait_for_turns()
    for turn in await world.runtime.open_continuations(world.session.id):
        await world.runtime.resume(turn.id)
    await world.runtime.await_continuation(queued.id)
    return {"completed"}


async def end_session(world, call):
    await world.hang()
    await world.send("look here", busy="enqueue")
    await call(world.runtime.end_session(world.session.id))
    return {"completed", "cancelled"}


async def record(world, call):
    await call(world.runtime.record_turn(world.session.id, "said elsewhere", "answered"))
    return {"completed"}


async def wait_for_all(world, call):
    await world.hang()
    waiting = asyncio.create_task(call(world.runtime.wait_for_turns()))
    await asyncio.sleep(0)
    world.release.set()
    await waiting
    return {"completed"}


SCENARIOS = {f.__name__: f for f in (send, send_to_queue, interrupt, wait, approve, approve_and_cancel)}
SCENARIOS |= {f.__name__: f for f in (cancel_running, cancel_waiting, resume, retry, recover)}
SCENARIOS |= {f.__name__: f for f in (end_session, record, wait_for_all)}


@pytest.mark.parametrize("is_late", [False, True], ids=["at", "late"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_cancelled_caller_cancels_no_work(kind, scenario, is_late, tmp_path):
    async with opened(kind, tmp_path) as make_world:

        async def run(n):
            point, world, tasks = CancelPoint(n, is_late=is_late), await make_world(), asyncio.all_tasks()
            expected = await scenario(world, point.run)
            await check_world(world, tasks)
            turns = await world.store.list_continuations("local", world.session.id)
            assert {turn.status for turn in turns} <= expected
            return point.is_reached

        await run_at_every_suspension(run)
