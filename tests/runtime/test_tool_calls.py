"""Tool calls: parallel, failing, odd and large results."""

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime

import pytest

from sash import ActionOutcome
from sash.errors import (
    InvalidInput,
)
from sash.testing import ScriptedModel, both, calling
from tests.runtime.home_actions import FREE
from tests.runtime.talk import WAIT_S, tool_results, transcript, turn
from tests.tools import tool


async def test_a_tool_is_called_and_its_result_goes_back_to_the_model(run):
    seen = []
    lamp = tool("lamp", lambda a, c: seen.append((a, c.key)) or {"is": "on"}, safety="idempotent")
    model = ScriptedModel(calling("lamp", "c1", room="kitchen"), "It is on.")
    runtime = await run(model=model, tools=[lamp])
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert result.response.final_message == "It is on."
    assert seen == [({"room": "kitchen"}, f"{result.continuation.id}:c1")]
    assert [step.type for step in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    assert model.requests[1].messages[-1] == {
        "role": "tool",
        "content": '{"is": "on"}',
        "tool_call_id": "c1",
        "name": "lamp",
    }
    assert model.requests[0].tools[0]["function"]["name"] == "lamp"
    roles = [role for role, _ in await transcript(runtime, session)]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_calls_of_one_step_run_at_once_and_are_kept_in_their_order(run):
    started, go = [], asyncio.Event()

    async def wait(arguments, context):
        started.append(arguments["n"])
        if len(started) == 3:
            go.set()
        await asyncio.wait_for(go.wait(), WAIT_S)
        return arguments["n"]

    calls = both(*(calling("wait", f"c{n}", n=n) for n in range(3)))
    runtime = await run(calls, "done", tools=[tool("wait", wait)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    results = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert results == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (calling("nothing"), "there is no tool nothing"),
        (calling("add", a="x"), "wrong arguments for add"),
        (calling("add", a=1, b="\ud800"), "wrong arguments for add"),
        (calling("add", a=1, b=2), "failed: ValueError: no"),
    ],
)
async def test_a_failing_call_is_a_result_for_the_model(run, call, expected):
    def fail(arguments, context):
        raise ValueError("no")

    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    runtime = await run(call, "I see.", tools=[tool("add", fail, input_schema=schema)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    [result] = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert result.startswith(expected)


async def test_a_result_that_breaks_its_schema_is_passed_on_and_logged(run, caplog):
    schema = {"type": "object", "required": ["on"]}
    lamp = tool("lamp", lambda a, c: {"off": True}, output_schema=schema)
    runtime = await run(calling("lamp"), "done", tools=[lamp])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert ("tool", '{"off": true}') in await transcript(runtime, session)
    assert "the result of tool lamp violates its output schema" in caplog.text
    with pytest.raises(InvalidInput, match="output schema of tool lamp"):
        await run(tools=[tool("lamp", None, output_schema={"type": "nothing"})])


async def test_a_large_result_is_kept_as_an_artifact(run):
    runtime = await run(calling("log"), "done", tools=[tool("log", lambda a, c: "line\n" * 10_000)])
    session = await runtime.start_session()
    result = await turn(runtime, session)
    [ref] = result.continuation.artifacts
    artifact = await runtime.store.get_artifact("local", ref.id)
    assert artifact.data == b"line\n" * 10_000
    [text] = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert len(text) < 2000
    assert json.loads(text)["artifact"] == ref.id


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, GeneratorExit])
async def test_a_tool_that_ends_like_a_task_has_failed(run, error, parallel):
    async def odd(arguments, context):
        raise error

    async def fine(arguments, context):
        return "fine"

    calls = both(calling("odd", "a"), calling("fine", "b")) if parallel else calling("odd", "a")
    runtime = await run(calls, "done", tools=[tool("odd", odd), tool("fine", fine)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert (await tool_results(runtime, session))[
        0
    ] == f"failed: RuntimeError: the call was ended by {error.__name__}"


async def test_results_and_errors_of_any_kind_are_results(run):
    circle = []
    circle.append(circle)
    results = iter([circle, {(1, 2): 3}, None, object, "\ud800 lone", ValueError("x" * 20_000)])

    def odd(arguments, context):
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    calls = [calling("odd", f"c{n}", content="\udfff") for n in range(6)]
    runtime = await run(*calls, "done", tools=[tool("odd", odd)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    texts = await tool_results(runtime, session)
    assert [text[:8] for text in texts[:3]] == ["[[...]]", "{(1, 2):", "null"]
    assert texts[4] == "? lone"
    assert all(len(text) < 2_000 for text in texts)


async def test_a_call_without_a_name_is_answered(run):
    runtime = await run(calling(""), "done")
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert (await tool_results(runtime, session))[0].startswith("there is no tool unnamed")


@dataclass
class Saved:
    """The state of a lamp, as a tool of a program may keep it."""

    state: str


async def test_the_states_of_an_action_are_those_of_the_time_of_its_call(run):
    state = {"lamp": "off"}

    def switch(arguments, context):
        before = dict(state)
        state["lamp"] = arguments["to"]
        return ActionOutcome("done", before=before, after=state)

    calls = calling("switch", "c1", to="on"), calling("switch", "c2", to="dim")
    runtime = await run(*calls, "Done.", tools=[tool("switch", switch, action=True)])
    result = await turn(runtime, await runtime.start_session(policy=FREE))
    assert [(a.before, a.after) for a in result.response.actions] == [
        ({"lamp": "off"}, {"lamp": "on"}),
        ({"lamp": "on"}, {"lamp": "dim"}),
    ]
    results = [step.body.action.after for step in result.steps if step.type == "tool_result"]
    assert results == [{"lamp": "on"}, {"lamp": "dim"}]


async def test_the_states_of_an_action_may_have_any_values(run):
    def switch(arguments, context):
        return ActionOutcome("done", before={"lamp": Saved("off")}, after={"at": datetime(2026, 1, 1)})

    runtime = await run(calling("switch"), "Done.", tools=[tool("switch", switch, action=True)])
    result = await turn(runtime, await runtime.start_session(policy=FREE))
    [action] = result.response.actions
    assert action.before == {"lamp": {"state": "off"}}
    assert action.after == {"at": "2026-01-01 00:00:00"}
