"""The cost of calls: counted by step, turn, session and day, and never twice."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import (
    AnswerCutOff,
    ContinuationFinal,
    ContinuationNotFound,
    InvalidExport,
    InvalidInput,
    ModelUnreachable,
)
from sash.ports.model import Usage
from sash.testing import ScriptedModel, calling
from sash.values.sessions import Budgets
from tests.runtime.priced_model import (
    DEAR,
    DEAR_MODEL,
    LOOK,
    ONE_CALL,
    PRICE,
    USED,
    a_tool_that_waits,
    saying,
)
from tests.runtime.talk import answer, turn


async def test_tokens_and_money_are_counted_by_step_turn_session_and_day(run, clock):
    model = ScriptedModel(replace(calling("look"), usage=USED), saying("I see."))
    runtime = await run(model=model, tools=[LOOK], catalog=DEAR)
    session = await runtime.start_session()
    result = await turn(runtime, session)
    by_step = {step.type: step.detail.get("usage") for step in result.steps}
    assert by_step["plan"]["cost_usd"] == pytest.approx(PRICE)
    assert by_step["summary"]["cost_usd"] == pytest.approx(PRICE)
    assert by_step["plan"]["model"] == "dear"
    stats = result.continuation.stats
    assert (stats.model_calls, stats.tool_calls, stats.input_tokens, stats.cached_tokens) == (
        2,
        1,
        2000,
        1000,
    )
    assert (stats.output_tokens, stats.reasoning_tokens) == (200, 80)
    assert stats.cost_usd == pytest.approx(2 * PRICE)
    await turn(runtime, session)
    after = await runtime.get_session(session.id)
    assert after.stats.cost_usd == pytest.approx(3 * PRICE)
    assert after.stats.turns == 2
    clock.advance(24 * 3600)
    await turn(runtime, session)
    said = await runtime.statistics(days=3)
    assert said["estimated_cost_usd"] == pytest.approx(4 * PRICE)
    assert said["today"]["estimated_cost_usd"] == pytest.approx(PRICE)
    assert [day["total_requests"] for day in said["days"]] == [0, 2, 1]
    assert said["period"]["total_requests"] == 3
    assert said["cached_share"] == 0.5
    stored = await runtime.store.get_continuation("local", result.continuation.id)
    assert stored.stats == stats


async def test_statistics_have_what_the_seed_asks_for(run, clock):
    def slow(request):
        clock.advance(2)
        return "hello"

    model = ScriptedModel("quick", slow, ModelUnreachable("gone"))
    runtime = await run(model=model)
    session = await runtime.start_session()
    for message in ("hi", "hi", "remember that the key is under the mat", "hi"):
        await turn(runtime, session, message)
    said = await runtime.statistics()
    assert said["sessions"] == 1
    assert (said["total_requests"], said["local_count"], said["model_count"]) == (4, 1, 3)
    assert (said["local_share"], said["model_share"]) == (0.25, 0.75)
    assert (said["failed_requests"], said["errors"]) == (1, {"model_unreachable": 1})
    assert said["mean_ms"] == 500
    assert 1800 <= said["p95_ms"] <= 2200
    assert said["tool_calls"] == 1
    assert said["unpriced_calls"] == 2


async def test_drift_compares_our_count_with_the_provider_s(run):
    def counted_twice(request):
        return saying(
            "ok", Usage(input_tokens=2 * sum(len(str(m)) for m in request.messages), output_tokens=1)
        )

    runtime = await run(model=ScriptedModel(counted_twice))
    session = await runtime.start_session()
    result = await turn(runtime, session)
    usage = result.steps[-1].detail["usage"]
    assert not usage["estimated"]
    drift = usage["counted_tokens"] / usage["input_tokens"] - 1
    assert (await runtime.statistics())["token_drift"] == pytest.approx(drift, abs=1e-3)


async def test_a_model_that_reports_nothing_is_counted_for_it(run):
    runtime = await run("a few words of answer")
    session = await runtime.start_session()
    result = await turn(runtime, session, "a question of some words")
    usage = result.steps[-1].detail["usage"]
    assert usage["estimated"]
    report = await runtime.context_report(session.id)
    assert usage["output_tokens"] > 4
    assert 0 < usage["input_tokens"] < report["total_tokens"]
    assert (await runtime.statistics())["token_drift"] == 0


async def test_the_money_of_a_cancelled_turn_is_not_forgotten(run):
    started = asyncio.Event()

    class Stuck(ScriptedModel):
        async def stream(self, request):
            if len(self.requests) == 1:
                started.set()
                await asyncio.Event().wait()
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Stuck(replace(calling("look"), usage=USED)), tools=[LOOK], catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL)
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), 10)
    await runtime.cancel(sent.id)
    stats = (await runtime.store.get_continuation("local", sent.id)).stats
    assert (stats.turns, stats.cancelled_turns, stats.model_calls) == (1, 1, 2)
    assert stats.cost_usd > PRICE
    said = await runtime.statistics()
    assert said["estimated_cost_usd"] == pytest.approx(stats.cost_usd)
    assert said["cancelled_requests"] == 1


async def test_a_tool_that_has_to_be_paid_for_is(run):
    paid = replace(LOOK, cost=0.25)
    runtime = await run(calling("look"), "ok", tools=[paid])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).continuation.stats.cost_usd == 0.25


async def test_what_waits_has_been_paid_for(run):
    failing = ScriptedModel(replace(calling("look"), usage=USED), ModelUnreachable("gone"))
    runtime = await run(model=failing, tools=[LOOK], catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL)
    waiting = await turn(runtime, session)
    assert waiting.status == "interrupted"
    today = (await runtime.statistics())["today"]
    assert (today["estimated_cost_usd"], today["errors"]) == (PRICE, {"model_unreachable": 1})
    await runtime.cancel(waiting.continuation.id)
    said = await runtime.statistics()
    assert said["today"]["estimated_cost_usd"] == said["estimated_cost_usd"] == PRICE
    assert (said["cancelled_requests"], said["total_requests"]) == (1, 1)


async def test_a_cancel_that_comes_too_late_bills_nothing_twice(run, make_store):
    runtime = await run(model=ScriptedModel(saying("Hello.")), catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL)
    result = await turn(runtime, session)
    with pytest.raises(ContinuationFinal):
        await runtime.cancel(result.continuation.id)
    assert (await runtime.get_session(session.id)).stats.cost_usd == pytest.approx(PRICE)


async def test_what_others_spend_is_theirs(run):
    waiting, started, go_on = a_tool_that_waits()
    model = ScriptedModel(replace(calling("wait"), usage=USED), saying("Hello."))
    runtime = await run(model=model, tools=[waiting], catalog=DEAR)
    bob = await runtime.start_session(model=DEAR_MODEL, owner="bob")
    sent = await runtime.send_message(bob.id, "go", owner="bob")
    await asyncio.wait_for(started.wait(), 10)
    mine = await runtime.start_session(budgets=Budgets(max_cost_per_day_usd=ONE_CALL), model=DEAR_MODEL)
    assert await answer(runtime, mine) == "Hello."
    go_on.set()
    await runtime.await_continuation(sent.id, owner="bob", timeout_s=10)


async def test_a_call_that_time_has_cut_off_is_paid_for(run):
    class Stuck(ScriptedModel):
        async def stream(self, request):
            await asyncio.Event().wait()
            yield

    runtime = await run(model=Stuck(), catalog=DEAR)
    session = await runtime.start_session(budgets=Budgets(max_duration_ms=50), model=DEAR_MODEL)
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_duration_ms"
    assert result.continuation.stats.model_calls == 1
    assert result.continuation.stats.cost_usd > 0.1


async def test_an_answer_that_was_cut_off_is_paid_for_and_one_that_never_began_is_not(run):
    class Cut(ScriptedModel):
        async def stream(self, request):
            async for delta in super().stream(request):
                yield delta
                raise AnswerCutOff("cut")

    cut = await run(model=Cut("one two three"), catalog=DEAR)
    session = await cut.start_session(model=DEAR_MODEL)
    result = await turn(cut, session)
    assert (result.status, result.continuation.stats.model_calls) == ("failed", 2)
    assert result.continuation.stats.cost_usd > 0.2
    await cut.close()
    never = await run(model=ScriptedModel(ModelUnreachable("no network")), catalog=DEAR)
    session = await never.start_session(model=DEAR_MODEL)
    assert (await turn(never, session)).continuation.stats.model_calls == 0


async def test_a_stranger_s_cancel_costs_nothing(run):
    started = asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            started.set()
            for _ in range(50):
                await asyncio.sleep(0.001)
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Slow(saying("Hello.")), catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL)
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(started.wait(), 10)
    for _ in range(3):
        with pytest.raises(ContinuationNotFound):
            await runtime.cancel(sent.id, owner="mallory")
    result = await runtime.await_continuation(sent.id, timeout_s=10)
    assert result.continuation.stats.cost_usd == pytest.approx(PRICE)


async def test_money_below_nothing_is_not_imported(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    data = await runtime.export_session(session.id)
    await runtime.erase()
    data["session"]["stats"]["cost_usd"] = -1000.0
    with pytest.raises(InvalidExport):
        await runtime.import_session(data)


async def test_statistics_of_too_many_days_are_refused(run):
    runtime = await run("ok")
    with pytest.raises(InvalidInput):
        await runtime.statistics(days=800_000)


async def test_a_call_that_was_cut_off_is_still_paid_for_when_its_turn_is_resumed(run):
    class Cut(ScriptedModel):
        async def stream(self, request):
            n = len(self.requests)
            async for delta in super().stream(request):
                yield delta
                if n in (1, 2):
                    raise AnswerCutOff("cut")

    model = Cut(replace(calling("look"), usage=USED), "one two", "one two", saying("Hello."))
    runtime = await run(model=model, tools=[LOOK], catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL)
    waiting = await turn(runtime, session)
    assert (waiting.status, len(waiting.steps[-1].detail["lost"])) == ("interrupted", 2)
    await runtime.resume(waiting.continuation.id)
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=10)
    assert result.response.final_message == "Hello."
    assert result.continuation.stats.model_calls == 4
    assert result.continuation.stats.cost_usd > 2 * PRICE + 0.2
