"""A store that fails during a cancel loses neither the money nor the action of the turn, and the turn stops."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import ContinuationFinal, StoreUnavailable
from sash.ports.tools import ActionOutcome
from sash.testing import FaultyStore, calling
from tests.runtime.policies import OPEN
from tests.runtime.priced_model import DEAR, DEAR_MODEL, PRICE, USED
from tests.runtime.talk import WAIT_S
from tests.tools import tool

BEFORE = {"light.hall": {"state": "off"}}


@pytest.fixture
async def acting(run, make_store):
    """Return a runtime, its store, its turn whose action is under way, and an event for its cancellation."""
    under_way, stopped = asyncio.Event(), asyncio.Event()

    async def act(arguments, context):
        context.on_cut_off(lambda: ActionOutcome(None, before=BEFORE))
        under_way.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    store = FaultyStore(make_store())
    plan = replace(calling("switch"), usage=USED)
    runtime = await run(plan, "ok", tools=[tool("switch", act, action=True)], store=store, catalog=DEAR)
    session = await runtime.start_session(policy=OPEN, model=DEAR_MODEL)
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(under_way.wait(), WAIT_S)
    return runtime, store, sent, stopped


async def check(runtime, sent):
    """Check that the turn is cancelled with its action and its cost."""
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert result.status == "cancelled"
    assert [(a.outcome, a.before) for a in result.response.actions] == [("unknown", BEFORE)]
    assert [step.type for step in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    assert result.continuation.stats.cost_usd == pytest.approx(PRICE)


async def test_the_turn_stops_and_its_end_is_written_later(acting):
    runtime, store, sent, stopped = acting
    store.fail("cancel", StoreUnavailable("power cut"))
    with pytest.raises(StoreUnavailable):
        await runtime.cancel(sent.id)
    assert stopped.is_set()
    await runtime.heartbeat()
    await check(runtime, sent)


async def test_a_second_cancel_writes_the_end_of_the_first(acting):
    runtime, store, sent, _ = acting
    store.fail("cancel", StoreUnavailable("power cut"))
    with pytest.raises(StoreUnavailable):
        await runtime.cancel(sent.id)
    with pytest.raises(ContinuationFinal):
        await runtime.cancel(sent.id)
    await check(runtime, sent)


async def test_a_turn_that_another_process_has_cancelled_stops(acting):
    runtime, store, sent, stopped = acting
    await store.cancel("local", sent.id, "elsewhere")
    with pytest.raises(ContinuationFinal):
        await runtime.cancel(sent.id)
    assert stopped.is_set()
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "cancelled"
