"""A turn that is stopped before it takes its first step leaves nothing that waits for it."""

import asyncio

import pytest

from sash.errors import ContinuationFinal, ModelUnreachable, SessionNotFound
from sash.ports.tools import ToolSpec
from sash.testing import calling
from tests.runtime.talk import WAIT_S, turn


@pytest.fixture
def interrupt(run):
    async def interrupt():
        """Return a runtime with an interrupted turn: its model failed after a tool call."""

        async def look(arguments, context):
            return "a lamp"

        tools = [ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")]
        runtime = await run(calling("look"), ModelUnreachable("no"), "A lamp.", tools=tools)
        result = await turn(runtime, await runtime.start_session())
        assert result.status == "interrupted"
        return runtime, result.continuation

    return interrupt


async def test_waiting_for_a_turn_ends_if_the_runtime_drains_while_it_is_resumed(interrupt):
    runtime, continuation = await interrupt()
    resuming = asyncio.create_task(runtime.resume(continuation.id))
    await asyncio.sleep(0)
    await runtime.drain()
    await asyncio.gather(resuming, return_exceptions=True)
    async with asyncio.timeout(WAIT_S):
        result = await runtime.await_continuation(continuation.id)
    assert result.status in ("interrupted", "completed")
    assert runtime.running_turns == 0


async def test_waiting_for_a_turn_ends_if_it_is_cancelled_before_its_first_step(interrupt):
    runtime, continuation = await interrupt()
    # On the store in memory, the cancellation comes in the same pass of the event loop as the start.
    _, cancelled = await asyncio.gather(
        runtime.resume(continuation.id), runtime.cancel(continuation.id), return_exceptions=True
    )
    async with asyncio.timeout(WAIT_S):
        result = await runtime.await_continuation(continuation.id)
    # On a slow disk, the turn may end before the cancellation.
    assert result.status == ("completed" if isinstance(cancelled, ContinuationFinal) else "cancelled")
    assert runtime.running_turns == 0


async def test_waiting_for_a_turn_ends_if_its_session_is_deleted_before_its_first_step(interrupt):
    runtime, continuation = await interrupt()
    resuming = asyncio.create_task(runtime.resume(continuation.id))
    waiting = asyncio.create_task(runtime.await_continuation(continuation.id))
    await runtime.delete_session(continuation.session_id)
    await asyncio.gather(resuming, return_exceptions=True)
    with pytest.raises(SessionNotFound):
        await runtime.get_session(continuation.session_id)
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(waiting, return_exceptions=True)
    assert runtime.running_turns == 0


async def test_a_turn_that_is_abandoned_before_its_first_step_does_not_run(interrupt):
    runtime, continuation = await interrupt()
    await runtime.resume(continuation.id)
    await runtime.abandon_turns()
    assert runtime.running_turns == 0


async def test_a_resumed_turn_runs_to_its_end(interrupt):
    runtime, continuation = await interrupt()
    await runtime.resume(continuation.id)
    result = await runtime.await_continuation(continuation.id, timeout_s=WAIT_S)
    assert result.response.final_message == "A lamp."
    assert runtime.running_turns == 0
