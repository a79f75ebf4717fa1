"""A tool call works with every id: an empty one, a long one, and one that looks like a secret."""

import pytest

from sash.ports.tools import ToolSpec
from sash.testing import both, calling
from sash.values.steps import ApprovalRequested, ToolCall, ToolResult
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool

LONG = "call_" + "x" * 400
SECRET = "sk-" + "a1" * 20
SHORT_OF_SECRET = "sk-" + "a" * 19  # one letter too short for a secret
ODD_IDS = pytest.mark.parametrize("call_id", ["", LONG, SECRET, SHORT_OF_SECRET, "c1"], ids=ascii)


def bodies(result, kind):
    return [step.body for step in result.steps if isinstance(step.body, kind)]


@ODD_IDS
async def test_calls_with_the_same_id_get_their_own_results(run, call_id):
    async def look(arguments, context):
        return arguments["place"]

    tools = [ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")]
    calls = both(calling("look", call_id, place="attic"), calling("look", call_id, place="cellar"))
    runtime = await run(calls, "I looked.", tools=tools)
    result = await turn(runtime, await runtime.start_session())
    assert result.status == "completed"
    ids = [call.call_id for call in bodies(result, ToolCall)]
    assert len(set(ids)) == 2
    found = {body.call_id: body.content for body in bodies(result, ToolResult)}
    assert [found[key] for key in ids] == ["attic", "cellar"]
    assert SECRET not in str(result)


@ODD_IDS
async def test_a_call_with_any_id_can_be_approved(run, call_id):
    done = []

    unlock = tool("lock.unlock", lambda arguments, context: done.append(arguments), action=True)
    runtime = await run(calling("lock.unlock", call_id), "It is open.", tools=[unlock])
    waiting = await turn(runtime, await runtime.start_session(policy=CAREFUL))
    [request] = bodies(waiting, ApprovalRequested)
    await runtime.approve(waiting.continuation.id, request.call_id)
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert (result.status, len(done)) == ("completed", 1)


async def test_a_tool_name_that_looks_like_a_secret_is_not_stored(run):
    runtime = await run(calling(SECRET, "c1"), "There is no such tool.")
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert [call.name for call in bodies(result, ToolCall)] == ["unnamed"]
    assert SECRET not in str(result)
    assert SECRET not in str(await runtime.list_messages(session.id))
