"""Calls that a limit of tokens or money does not allow."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import (
    InvalidInput,
    ModelUnreachable,
)
from sash.models.catalog import Catalog, ModelFacts
from sash.models.fallback import FallbackModel
from sash.ports.model import Answer, Usage
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, both, calling
from sash.values.sessions import Budgets, WindowLimits
from tests.runtime.priced_model import DEAR, DEAR_MODEL, LOOK, ONE_CALL, USED, a_tool_that_waits, saying
from tests.runtime.talk import answer, turn


async def test_tokens_of_a_silent_model_are_bounded_too(run):
    model = ScriptedModel(lambda request: calling("look", f"c{len(request.messages)}"))
    runtime = await run(model=model, tools=[LOOK])
    session = await runtime.start_session(budgets=Budgets(max_tokens_per_turn=1500, max_steps=100))
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_tokens_per_turn"
    assert result.continuation.stats.total_tokens <= 1500
    assert len(model.requests) > 1


async def test_a_call_that_could_pass_the_turn_s_money_is_not_made(run):
    model = ScriptedModel(lambda request: replace(calling("look", f"c{len(request.messages)}"), usage=USED))
    runtime = await run(model=model, tools=[LOOK], catalog=DEAR)
    budgets = Budgets(max_cost_per_turn_usd=2.0, max_steps=100)
    session = await runtime.start_session(budgets=budgets, model=DEAR_MODEL)
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_cost_per_turn_usd"
    assert 0 < len(model.requests) < 4
    assert result.continuation.stats.cost_usd <= 2.0


async def test_an_answer_may_not_be_longer_than_the_money_reaches(run):
    model = ScriptedModel(saying("Hello."))
    runtime = await run(model=model, catalog=DEAR)
    session = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=ONE_CALL), model=DEAR_MODEL)
    result = await turn(runtime, session)
    [request] = model.requests
    counted = result.steps[-1].detail["usage"]["counted_tokens"]
    assert request.config.max_output_tokens == int((ONE_CALL - counted / 1000) / 2 * 1000)
    rich = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=1000), model=DEAR_MODEL)
    await turn(runtime, rich)
    assert model.requests[-1].config.max_output_tokens is None


async def test_past_the_day_s_money_local_intents_still_answer(run, clock):
    model = ScriptedModel(saying("Hello."))
    runtime = await run(model=model, catalog=DEAR)
    budgets = Budgets(max_cost_per_day_usd=2.0)
    first = await runtime.start_session(budgets=budgets, model=DEAR_MODEL)
    second = await runtime.start_session(budgets=budgets, model=DEAR_MODEL)
    foreign = await runtime.start_session(budgets=budgets, model=DEAR_MODEL, owner="bob")
    for n in range(9):
        result = await turn(runtime, (first, second)[n % 2])
        if result.response.stopped_by:
            break
    asked = len(model.requests)
    assert result.response.stopped_by == "max_cost_per_day_usd"
    assert "budget" in result.response.final_message
    assert (await runtime.statistics())["today"]["estimated_cost_usd"] <= 2.0
    assert await answer(runtime, first, "remember that I like tea") == "I will remember: I like tea."
    assert len(model.requests) == asked
    assert (
        await runtime.await_continuation(
            (await runtime.send_message(foreign.id, "hi", owner="bob")).id, owner="bob", timeout_s=10
        )
    ).response.final_message == "Hello."
    clock.advance(24 * 3600)
    assert await answer(runtime, first) == "Hello."


async def test_turns_under_way_count_for_the_day(run):
    waiting, started, go_on = a_tool_that_waits()
    model = ScriptedModel(replace(calling("wait"), usage=USED), saying("Hello."))
    runtime = await run(model=model, tools=[waiting], catalog=DEAR)
    budgets = Budgets(max_cost_per_day_usd=ONE_CALL)
    sessions = [await runtime.start_session(budgets=budgets, model=DEAR_MODEL) for _ in range(2)]
    sent = await runtime.send_message(sessions[0].id, "go")
    await asyncio.wait_for(started.wait(), 10)
    assert (await turn(runtime, sessions[1])).response.stopped_by == "max_cost_per_day_usd"
    go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=10)


async def test_an_answer_that_ran_out_of_tokens_says_so(run):
    runtime = await run(Answer("To begin with, the", stop_reason="length"))
    session = await runtime.start_session()
    assert (await turn(runtime, session)).response.stopped_by == "max_output_tokens"


async def test_calls_at_once_do_not_spend_the_same_money_twice(run):
    class Slow(ScriptedModel):
        async def stream(self, request):
            for _ in range(20):
                await asyncio.sleep(0)
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Slow(saying("Hello.")), catalog=DEAR)
    budgets = Budgets(max_cost_per_day_usd=20.0)
    config = replace(DEAR_MODEL, max_output_tokens=400)
    sessions = [await runtime.start_session(budgets=budgets, model=config) for _ in range(40)]
    await asyncio.gather(*(turn(runtime, session) for session in sessions))
    spent = (await runtime.statistics())["today"]["estimated_cost_usd"]
    assert 5 < spent <= 20.0


async def test_a_tool_that_would_pass_the_money_is_not_called(run):
    calls = []

    async def pay(arguments, context):
        calls.append(context.call_id)
        return "paid"

    paid = ToolSpec("pay", "Pay.", {"type": "object"}, pay, safety="idempotent", cost=0.4)
    runtime = await run(both(*(calling("pay", f"c{n}") for n in range(5))), "ok", tools=[paid])
    session = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=1.0))
    result = await turn(runtime, session)
    assert calls == ["c0", "c1"]
    assert result.continuation.stats.cost_usd == pytest.approx(0.8)
    results = [s.detail["content"] for s in result.steps if s.type == "tool_result"]
    assert sum("max_cost_per_turn_usd" in content for content in results) == 3


async def test_a_fallback_is_as_dear_as_its_dearest(run):
    cheap = ScriptedModel(ModelUnreachable("gone"))
    cheap.name, dear = "cheap", ScriptedModel(saying("Hello."))
    dear.name = "dear"
    catalog = Catalog({"dear": ModelFacts(1000, 2000), "cheap": ModelFacts(0.1, 0.1)})
    runtime = await run(model=FallbackModel([cheap, dear]), catalog=catalog)
    session = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=0.01))
    assert (await turn(runtime, session)).response.stopped_by == "max_cost_per_turn_usd"


async def test_summaries_are_paid_for_and_stop_at_the_cap(run):
    model = ScriptedModel(saying("ok", Usage(100, 10, model="dear")))
    runtime = await run(model=model, catalog=DEAR, summaries=True)
    budgets = Budgets(max_cost_per_day_usd=8.0)
    session = await runtime.start_session(
        budgets=budgets, model=DEAR_MODEL, window=WindowLimits(max_turns=2, evict_to=0.5)
    )
    for _ in range(40):
        await turn(runtime, session)
        await runtime.wait_for_background()
    said = await runtime.statistics()
    assert said["today"]["estimated_cost_usd"] <= 8.0
    assert said["today"]["estimated_cost_usd"] == pytest.approx(said["estimated_cost_usd"])
    assert any("Summarise" in request.messages[0]["content"] for request in model.requests)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 10**400, "1", True])
def test_a_cap_is_an_amount(wrong):
    with pytest.raises(InvalidInput):
        Budgets(max_cost_per_day_usd=wrong)


async def test_what_a_call_will_cost_is_taken_as_the_provider_counts(run):
    used = Usage(input_tokens=5000, output_tokens=10, model="dear")
    model = ScriptedModel(lambda request: replace(calling("look", f"c{len(request.messages)}"), usage=used))
    runtime = await run(model=model, tools=[LOOK], catalog=DEAR)
    session = await runtime.start_session(
        budgets=Budgets(max_cost_per_turn_usd=12.0, max_steps=100), model=DEAR_MODEL
    )
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_cost_per_turn_usd"
    assert len(model.requests) == 2
    assert result.continuation.stats.cost_usd <= 12.0


async def test_a_long_answer_that_was_asked_for_is_held_to_the_money_too(run):
    model = ScriptedModel(saying("Hello."))
    runtime = await run(model=model, catalog=DEAR)
    config = replace(DEAR_MODEL, max_output_tokens=100_000)
    session = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=20.0), model=config)
    await turn(runtime, session)
    assert 4096 < model.requests[0].config.max_output_tokens < 10_000


async def test_a_summary_that_would_pass_the_day_s_money_is_not_made(run):
    model = ScriptedModel(saying("Hello."))
    runtime = await run(model=model, catalog=DEAR, summaries=True)
    session = await runtime.start_session(
        budgets=Budgets(max_cost_per_day_usd=ONE_CALL),
        model=DEAR_MODEL,
        window=WindowLimits(max_turns=2, evict_to=0.5),
    )
    await turn(runtime, session)
    for n in range(6):
        await runtime.record_turn(session.id, f"question {n}", "answer")
        await runtime.wait_for_background()
    assert len(model.requests) == 1, "no summary"
    assert (await runtime.get_session(session.id)).memory.digest
