"""Budgets of a turn: steps, calls, tokens and time."""

import asyncio
from dataclasses import replace

import pytest

from sash.ports.model import Usage
from sash.testing import ScriptedModel, both, calling
from sash.values.sessions import Budgets
from tests.runtime.policies import OPEN
from tests.runtime.talk import tool_results, turn
from tests.tools import tool


@pytest.mark.parametrize(
    ("budgets", "reached"),
    [
        (Budgets(max_steps=3), "max_steps"),
        (Budgets(max_duration_ms=50), "max_duration_ms"),
        (Budgets(max_tokens_per_turn=2000), "max_tokens_per_turn"),
    ],
)
async def test_a_budget_ends_the_turn_with_what_is_known(run, budgets, reached):
    async def slow(arguments, context):
        if reached == "max_duration_ms":
            await asyncio.Event().wait()
        return "more"

    look = replace(
        calling("look", content="Looking further."), usage=Usage(input_tokens=900, output_tokens=10)
    )
    model = ScriptedModel(look)
    runtime = await run(model=model, tools=[tool("look", slow)])
    session = await runtime.start_session(budgets=budgets)
    result = await turn(runtime, session)
    assert (result.status, result.response.stopped_by) == ("completed", reached)
    expected = {"max_steps": 3, "max_duration_ms": 1, "max_tokens_per_turn": 2}
    assert len(model.requests) == expected[reached]
    reasons = {"max_steps": "steps", "max_duration_ms": "too long", "max_tokens_per_turn": "too much text"}
    assert reasons[reached] in result.response.final_message
    assert reached not in result.response.final_message, "a person does not know the names of settings"
    assert "Looking further." in result.response.final_message
    window = await runtime.store.window("local", session.id)
    calls = {call["id"] for m in window.messages for call in m.tool_calls}
    assert calls == {m.tool_call_id for m in window.messages if m.role == "tool"}


async def test_calls_over_the_budget_are_answered_not_made(run):
    made = []
    calls = both(*(calling("look", f"c{n}") for n in range(3)))
    runtime = await run(calls, calls, "done", tools=[tool("look", lambda a, c: made.append(c.call_id))])
    session = await runtime.start_session(budgets=Budgets(max_tool_calls=3))
    assert (await turn(runtime, session)).status == "completed"
    assert sorted(made) == ["c0", "c1", "c2"]


async def test_an_action_that_the_time_budget_cut_off_is_unknown(run):
    async def hang(arguments, context):
        await asyncio.Event().wait()

    runtime = await run(calling("act"), tools=[tool("act", hang, action=True)])
    session = await runtime.start_session(policy=OPEN, budgets=Budgets(max_duration_ms=1000))
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_duration_ms"
    assert [a.outcome for a in result.response.actions] == ["unknown"]
    assert (await tool_results(runtime, session))[0].startswith("outcome unknown")


async def test_a_session_may_have_more_than_the_default_budget(run):
    async def look(arguments, context):
        return "more"

    model = ScriptedModel(*[calling("look")] * 12, "done")
    runtime = await run(model=model, tools=[tool("look", look, safety="idempotent")])
    session = await runtime.start_session(budgets=Budgets(max_steps=20))
    assert (await turn(runtime, session)).response.final_message == "done"
    assert len(model.requests) == 13


async def test_calls_beyond_the_budget_are_not_made_and_end_the_turn(run):
    made = []

    async def look(arguments, context):
        made.append(context.call_id)

    calls = both(*(calling("look", f"c{n}") for n in range(5)))
    runtime = await run(calls, "never asked", tools=[tool("look", look)])
    session = await runtime.start_session(budgets=Budgets(max_tool_calls=3))
    result = await turn(runtime, session)
    assert (sorted(made), result.response.stopped_by) == (["c0", "c1", "c2"], "max_tool_calls")
