"""A turn that is stopped before its task has made a step ends for everyone that waits for it."""

import asyncio
from contextlib import suppress

import pytest

from sash.errors import ContinuationFinal, ContinuationNotFound, ShuttingDown
from tests.attacks.cancelled_world import opened
from tests.backends import BACKENDS

WAIT_S = 30


async def begin(world):
    return await world.send("look here")


async def approve(world):
    turn = (await world.settle("lock it")).continuation
    return await world.runtime.approve(turn.id, "call")


async def interrupt(world):
    """Leave a turn that is interrupted and can be resumed."""
    turn = await world.hang()
    await world.runtime.abandon_turns()
    world.clock.advance(60)
    await world.store.interrupt_lost()
    world.release.set()
    return turn


async def resume(world):
    return await world.runtime.resume((await interrupt(world)).id)


async def retry(world):
    return await world.runtime.retry((await interrupt(world)).id)


async def serve_next(world):
    """Start a queued turn by the cancellation of the turn before it."""
    first = await world.hang()
    queued = await world.send("look here", busy="enqueue")
    await world.runtime.cancel(first.id)
    return queued


STARTS = {start.__name__: start for start in (begin, approve, resume, retry, serve_next)}
STOPS = {
    "cancel": lambda world, turn: world.runtime.cancel(turn.id),
    "end_session": lambda world, turn: world.runtime.end_session(world.session.id),
    "delete_session": lambda world, turn: world.runtime.delete_session(world.session.id),
    "erase": lambda world, turn: world.runtime.erase(),
    "close": lambda world, turn: world.runtime.close(),
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_turn_that_is_stopped_at_once_ends(kind, start, stop, tmp_path):
    async with asyncio.timeout(WAIT_S), opened(kind, tmp_path, suspends=False) as make_world:
        world = await make_world()
        turn = await start(world)
        waiting = asyncio.create_task(world.runtime.await_continuation(turn.id))
        with suppress(ContinuationFinal, ContinuationNotFound):
            await stop(world, turn)
        with suppress(ContinuationNotFound, ShuttingDown):
            assert (await waiting).status in ("cancelled", "completed", "interrupted", "awaiting_approval")
        assert world.runtime.running_turns == 0
