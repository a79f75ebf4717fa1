"""Paid tools, repeated calls, summaries and waiting turns that could spend more than a budget allows."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sash.engine.budget import Spending
from sash.engine.long_work import MAX_INLINE_CHARS, LongWork
from sash.errors import AnswerCutOff
from sash.memory.tokens import TokenCounter
from sash.ports.model import Answer, Usage
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, calling
from sash.values.sessions import Budgets, WindowLimits
from tests.runtime.policies import CAREFUL
from tests.runtime.priced_model import DEAR, DEAR_MODEL, LOOK, PRICE, USED, saying
from tests.runtime.talk import WAIT_S, turn

BUDGETS = Budgets(max_cost_per_day_usd=1.0)


class Shop:
    """A tool that costs 0.6 dollars. A call waits until `go_on` is set."""

    def __init__(self, *, action=False):
        self.calls, self.started, self.go_on = [], asyncio.Event(), asyncio.Event()
        self.tool = ToolSpec("pay", "Pay.", {"type": "object"}, self._pay, action=action, cost=0.6)

    async def _pay(self, arguments, context):
        self.calls.append(context.continuation_id)
        self.started.set()
        await self.go_on.wait()
        return "paid"


class CutModel(ScriptedModel):
    """A model whose first answer is cut off after its first word."""

    async def stream(self, request):
        is_first = not self.requests
        async for delta in super().stream(request):
            yield delta
            if is_first:
                raise AnswerCutOff("cut")


async def spent_today(runtime):
    return (await runtime.statistics())["today"]["estimated_cost_usd"]


async def test_paid_tools_of_parallel_turns_do_not_pass_the_day(run):
    shop = Shop()
    model = ScriptedModel(lambda request: "ok" if len(request.messages) > 3 else calling("pay"))
    runtime = await run(model=model, tools=[shop.tool])
    sessions = [await runtime.start_session(budgets=BUDGETS) for _ in range(3)]
    sent = [await runtime.send_message(session.id, "pay") for session in sessions]
    await asyncio.wait_for(shop.started.wait(), WAIT_S)
    shop.go_on.set()
    for one in sent:
        await runtime.await_continuation(one.id, timeout_s=WAIT_S)
    assert len(shop.calls) == 1
    assert await spent_today(runtime) == pytest.approx(0.6)


async def test_an_approved_paid_tool_does_not_pass_the_day(run):
    shop = Shop(action=True)
    shop.go_on.set()
    model = ScriptedModel(lambda request: "ok" if len(request.messages) > 3 else calling("pay"))
    runtime = await run(model=model, tools=[shop.tool])
    waiting = []
    for _ in range(3):
        session = await runtime.start_session(budgets=BUDGETS, policy=CAREFUL)
        waiting.append((await turn(runtime, session, "pay")).continuation.id)
    for continuation_id in waiting:
        await runtime.approve(continuation_id, "call")
        await runtime.await_continuation(continuation_id, timeout_s=WAIT_S)
    assert shop.calls == waiting[:1]
    assert await spent_today(runtime) == pytest.approx(0.6)


async def test_the_second_try_of_an_answer_is_held_to_the_money_that_is_left(run):
    model = CutModel("one two", saying("Hello."))
    runtime = await run(model=model, catalog=DEAR)
    session = await runtime.start_session(budgets=Budgets(max_cost_per_turn_usd=2.0), model=DEAR_MODEL)
    result = await turn(runtime, session)
    assert result.response.final_message == "Hello."
    first, second = (request.config.max_output_tokens for request in model.requests)
    lost = result.continuation.stats.cost_usd - PRICE
    assert second == pytest.approx(first - lost / 2 * 1000, abs=1)


async def test_a_call_that_was_cut_off_is_still_paid_for_after_an_approval(run):
    shop = Shop(action=True)
    shop.go_on.set()
    model = CutModel("one two", replace(calling("pay"), usage=USED), saying("Hello."))
    runtime = await run(model=model, tools=[shop.tool], catalog=DEAR)
    session = await runtime.start_session(model=DEAR_MODEL, policy=CAREFUL)
    waiting = await turn(runtime, session)
    before = waiting.continuation.stats.cost_usd
    assert before > PRICE + 0.1
    await runtime.approve(waiting.continuation.id, "call")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert result.continuation.stats.cost_usd == pytest.approx(before + 0.6 + PRICE)
    assert result.continuation.stats.model_calls == 3
    assert await spent_today(runtime) == pytest.approx(before + 0.6 + PRICE)


async def test_the_money_of_a_turn_that_waited_counts_once(run):
    shop = Shop(action=True)
    model = ScriptedModel(replace(calling("pay"), usage=USED), saying("Hello."))
    runtime = await run(model=model, tools=[shop.tool, LOOK], catalog=DEAR)
    budgets = Budgets(max_cost_per_day_usd=PRICE + 0.6 + 1.9)
    session = await runtime.start_session(model=DEAR_MODEL, policy=CAREFUL, budgets=budgets)
    waiting = await turn(runtime, session)
    await runtime.approve(waiting.continuation.id, "call")
    await asyncio.wait_for(shop.started.wait(), WAIT_S)
    shop.go_on.set()
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert result.response.stopped_by is None


@pytest.fixture
def pause(monkeypatch):
    """Return events: the cleaning of a long plan has begun, and it may go on."""
    writing, go_on = asyncio.Event(), asyncio.Event()
    run_now = LongWork.run

    async def run(self, owner, size, work, *args, **kwargs):
        if size > MAX_INLINE_CHARS:
            writing.set()
            await go_on.wait()
        return await run_now(self, owner, size, work, *args, **kwargs)

    monkeypatch.setattr(LongWork, "run", run)
    return writing, go_on


LONG_PLAN = replace(calling("look", content="long " * 5000), usage=USED)


async def test_a_long_plan_counts_for_the_day_before_it_is_written(run, pause):
    """A long answer is cleaned in a thread. Its money must count meanwhile."""
    writing, go_on = pause
    runtime = await run(LONG_PLAN, saying("Hello."), tools=[LOOK], catalog=DEAR)
    budgets = Budgets(max_cost_per_day_usd=PRICE + 0.5)
    sessions = [await runtime.start_session(model=DEAR_MODEL, budgets=budgets) for _ in range(2)]
    sent = await runtime.send_message(sessions[0].id, "look")
    await asyncio.wait_for(writing.wait(), WAIT_S)
    other = await turn(runtime, sessions[1])
    go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert other.response.stopped_by == "max_cost_per_day_usd"


@pytest.mark.parametrize("verb", ["cancel", "delete", "close"])
async def test_a_long_plan_is_paid_for_if_it_is_never_written(run, make_store, pause, verb):
    writing, _ = pause
    store = make_store()
    runtime = await run(LONG_PLAN, tools=[LOOK], catalog=DEAR, store=store)
    session = await runtime.start_session(model=DEAR_MODEL)
    sent = await runtime.send_message(session.id, "look")
    await asyncio.wait_for(writing.wait(), WAIT_S)
    if verb == "cancel":
        await runtime.cancel(sent.id)
    elif verb == "delete":
        await runtime.delete_session(session.id)
    else:
        await runtime.close()
        runtime = await run("ok", catalog=DEAR, store=store)
    assert await spent_today(runtime) == pytest.approx(PRICE)


@pytest.mark.parametrize("verb", ["cancel", "delete"])
async def test_a_paid_call_that_is_stopped_is_paid_for(run, verb):
    shop = Shop()
    runtime = await run(calling("pay"), "ok", tools=[shop.tool])
    session = await runtime.start_session(budgets=BUDGETS)
    sent = await runtime.send_message(session.id, "pay")
    await asyncio.wait_for(shop.started.wait(), WAIT_S)
    await (runtime.cancel(sent.id) if verb == "cancel" else runtime.delete_session(session.id))
    assert await spent_today(runtime) == pytest.approx(0.6)


async def test_parallel_summaries_do_not_pass_the_day(run):
    class Slow(ScriptedModel):
        async def stream(self, request):
            if "Summarise" in request.messages[0]["content"]:
                for _ in range(50):
                    await asyncio.sleep(0)
            async for delta in super().stream(request):
                yield delta

    def say(request):
        is_summary = "Summarise" in request.messages[0]["content"]
        # No prompt is smaller, so that a call never costs more than was reserved for it.
        return Answer("ok", usage=Usage(20, 500 if is_summary else 0, model="dear"))

    model = Slow(say)
    runtime = await run(model=model, summaries=True, catalog=DEAR)
    window = WindowLimits(max_turns=1)
    sessions = [await runtime.start_session(model=DEAR_MODEL, window=window) for _ in range(8)]
    for session in sessions:
        await turn(runtime, session)
    spent = await spent_today(runtime)
    budgets = Budgets(max_cost_per_day_usd=spent + 8 * 0.02 + 3.0)
    for session in sessions:
        stored = await runtime.get_session(session.id)
        await runtime.store.save_session(replace(stored, budgets=budgets))
    config = replace(DEAR_MODEL, max_output_tokens=256)
    await asyncio.gather(*(turn(runtime, session, model=config) for session in sessions))
    await runtime.wait_for_background()
    assert any("Summarise" in request.messages[0]["content"] for request in model.requests)
    assert await spent_today(runtime) <= budgets.max_cost_per_day_usd


async def test_work_that_starts_and_ends_during_a_slow_read_counts():
    has_read, may_return = asyncio.Event(), asyncio.Event()

    class SlowReads:
        async def turn_stats(self, owner, since):
            if not has_read.is_set():
                has_read.set()
                await may_return.wait()
            return []

    spending = Spending(SlowReads(), DEAR, TokenCounter(), lambda: datetime.now(UTC))

    async def spend():
        async with spending.reserve("ann", 0.6, 1.0) as is_allowed:
            return is_allowed

    slow = asyncio.create_task(spend())
    await has_read.wait()
    assert await spend()
    may_return.set()
    assert not await asyncio.wait_for(slow, WAIT_S)
