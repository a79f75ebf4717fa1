"""`on_turn_change` is told of every turn that begins, pauses and ends."""

from sash.errors import ModelKeyRefused
from sash.testing import calling
from sash.values.steps import Interrupted
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool


async def test_a_turn_is_told_when_it_begins_pauses_goes_on_and_ends(run):
    told = []
    unlock = tool("unlock", lambda arguments, context: "open", action=True)
    runtime = await run(calling("unlock"), "Done.", tools=[unlock], on_turn_change=told.append)
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await turn(runtime, session)
    await runtime.wait_for_turns()
    assert [result.status for result in told] == ["running", "awaiting_approval"]
    assert [call.call_id for call in told[-1].waiting_calls] == ["call"]

    await runtime.approve(waiting.continuation.id, "call")
    await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    await runtime.wait_for_turns()
    assert [result.status for result in told[2:]] == ["running", "completed"]


async def test_a_turn_that_an_error_interrupts_is_told_with_the_code(run):
    told = []
    look = tool("look", lambda arguments, context: "dark")
    lines = (calling("look"), ModelKeyRefused("no"))
    runtime = await run(*lines, tools=[look], on_turn_change=told.append)
    await turn(runtime, await runtime.start_session())
    await runtime.wait_for_turns()
    assert told[-1].status == "interrupted"
    last = told[-1].steps[-1].body
    assert isinstance(last, Interrupted)
    assert last.code == "model_key_refused"


async def test_a_recorded_turn_is_told_once(run):
    told = []
    runtime = await run("ok", on_turn_change=told.append)
    session = await runtime.start_session()
    await runtime.record_turn(session.id, "q", "a")
    assert [result.status for result in told] == ["completed"]


async def test_an_error_of_the_listener_does_not_stop_the_turn(run, caplog):
    def refuse(result):
        raise ValueError("no")

    runtime = await run("ok", on_turn_change=refuse)
    result = await turn(runtime, await runtime.start_session())
    assert result.status == "completed"
    assert f"refuse failed for turn {result.continuation.id}: no" in caplog.text
