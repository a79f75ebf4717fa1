"""An owner tries to spend more than `max_cost_per_day_usd`: by deletions, erasure, copies, restarts and kills."""

import asyncio
from dataclasses import replace

import pytest

from sash import Runtime
from sash.errors import PolicyExceedsOperator
from sash.models.catalog import Catalog, ModelFacts
from sash.ports.embedder import Embedder
from sash.ports.model import Usage
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel, calling
from sash.values.sessions import UNLIMITED, Budgets, ModelConfig, OperatorLimits, WindowLimits
from tests.runtime.conftest import clock, make_store, run  # noqa: F401
from tests.runtime.priced_model import DEAR, DEAR_MODEL, LOOK, ONE_CALL, PRICE, USED, saying
from tests.runtime.talk import answer, turn
from tests.runtime.waiting_model import WaitingModel

BUDGETS = Budgets(max_cost_per_day_usd=ONE_CALL)
DAY_S = 24 * 3600


class DyingModel(ScriptedModel):
    """A model whose second call never ends."""

    def __init__(self, *lines):
        super().__init__(*lines)
        self.is_stuck = asyncio.Event()

    async def stream(self, request):
        if self.requests:
            self.is_stuck.set()
            await asyncio.Event().wait()
        async for delta in super().stream(request):
            yield delta


@pytest.fixture
def restart(run, make_store, tmp_path):  # noqa: F811
    """Return a function that closes the open runtime, and opens another one on the same data."""
    opened, kept = [], []

    async def restart(*lines, **options):
        if opened:
            await opened[-1].close()
        store = make_store()
        if not store.is_durable:
            kept.append(store)
            store = kept[0]
        model = options.pop("model", None) or ScriptedModel(*(lines or (saying("Hello."),)))
        opened.append(await run(model=model, store=store, **{"catalog": DEAR, "tools": [LOOK]} | options))
        return opened[-1]

    return restart


async def is_refused(runtime):
    """Return True if a new session may not ask the model any more today."""
    session = await runtime.start_session(budgets=BUDGETS, model=DEAR_MODEL)
    asked = len(runtime.model.requests)
    result = await turn(runtime, session)
    assert (result.response.stopped_by == "max_cost_per_day_usd") is (len(runtime.model.requests) == asked)
    return result.response.stopped_by == "max_cost_per_day_usd"


async def spend(runtime):
    session = await runtime.start_session(budgets=BUDGETS, model=DEAR_MODEL)
    assert await answer(runtime, session) == "Hello."
    return session


async def spent_today(runtime):
    return (await runtime.statistics())["today"]["estimated_cost_usd"]


async def test_a_deleted_session_gives_no_money_back(restart, clock):  # noqa: F811
    runtime = await restart()
    session = await spend(runtime)
    await runtime.delete_session(session.id)
    assert await is_refused(runtime)
    runtime = await restart()
    assert await is_refused(runtime)
    assert await spent_today(runtime) == pytest.approx(PRICE)
    clock.advance(-7200)
    assert await is_refused(runtime)
    clock.advance(DAY_S + 7200)
    assert not await is_refused(runtime)


async def test_an_erasure_gives_no_money_back(restart):
    runtime = await restart()
    await spend(runtime)
    assert await runtime.erase() == 1
    runtime = await restart()
    assert await is_refused(runtime)
    await runtime.erase()
    assert await spent_today(runtime) == pytest.approx(PRICE)


@pytest.mark.parametrize("erases", [False, True])
async def test_a_deletion_during_a_model_call_does_not_make_it_free(restart, erases):
    model = DyingModel(replace(calling("look"), usage=USED))
    runtime = await restart(model=model)
    session = await runtime.start_session(model=DEAR_MODEL)
    await runtime.send_message(session.id, "look")
    await asyncio.wait_for(model.is_stuck.wait(), 10)
    await (runtime.erase() if erases else runtime.delete_session(session.id))
    # The plan that was paid for, and the prompt of the call that the deletion cut off.
    assert await spent_today(runtime) > PRICE + 0.1
    runtime = await restart()
    assert await spent_today(runtime) > PRICE + 0.1


async def test_a_session_that_is_deleted_and_imported_again_counts_once(restart):
    runtime = await restart()
    session = await spend(runtime)
    export = await runtime.export_session(session.id)
    for _ in range(3):
        await runtime.delete_session(session.id)
        await runtime.import_session(export)
    await runtime.fork_session(session.id)
    runtime = await restart()
    assert await spent_today(runtime) == pytest.approx(PRICE)
    assert await is_refused(runtime)


@pytest.mark.parametrize("usd", [0.0, 1e6])
async def test_forged_costs_of_an_import_change_nothing(restart, usd):
    model = DyingModel(replace(calling("look"), usage=USED))
    runtime = await restart(model=model)
    session = await runtime.start_session(model=DEAR_MODEL)
    sent = await runtime.send_message(session.id, "look")
    await asyncio.wait_for(model.is_stuck.wait(), 10)
    await runtime.cancel(sent.id)
    spent = await spent_today(runtime)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    [stored] = export["continuations"]
    stored["status"] = "interrupted"
    stored["stats"]["cost_usd"] = usd
    export["steps"] = [s for s in export["steps"] if s["step"]["type"] != "summary"]
    [plan] = [s["step"] for s in export["steps"] if s["step"]["type"] == "plan"]
    plan["detail"]["usage"]["cost_usd"] = usd
    runtime = await restart()
    await runtime.import_session(export)
    assert await spent_today(runtime) == pytest.approx(spent)
    await runtime.resume(stored["id"])
    await runtime.await_continuation(stored["id"], timeout_s=10)
    assert await spent_today(runtime) == pytest.approx(spent + PRICE)


async def test_a_killed_process_has_spent_its_money(restart, clock):  # noqa: F811
    model = DyingModel(replace(calling("look"), usage=USED))
    runtime = await restart(model=model)
    session = await runtime.start_session(model=DEAR_MODEL)
    await runtime.send_message(session.id, "look")
    await asyncio.wait_for(model.is_stuck.wait(), 10)
    await runtime.abandon_turns()
    clock.advance(120)
    runtime = await restart(model=WaitingModel("never said"))
    await runtime.recover()
    assert await spent_today(runtime) >= PRICE


async def test_a_server_that_stops_has_paid_for_the_call_that_it_cuts_off(restart):
    model = WaitingModel("never said")
    runtime = await restart(model=model)
    session = await runtime.start_session(model=DEAR_MODEL)
    await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), 10)
    runtime = await restart(model=WaitingModel("never said"))
    assert await spent_today(runtime) > 0.1


async def test_a_summary_is_paid_for_after_a_restart_and_a_deletion(restart):
    runtime = await restart(saying("ok", Usage(100, 10, model="dear")), summaries=True)
    session = await runtime.start_session(model=DEAR_MODEL, window=WindowLimits(max_turns=2, evict_to=0.5))
    for _ in range(4):
        await turn(runtime, session)
        await runtime.wait_for_background()
    assert any("Summarise" in request.messages[0]["content"] for request in runtime.model.requests)
    spent = await spent_today(runtime)
    assert spent == pytest.approx(len(runtime.model.requests) * 0.12)
    await runtime.delete_session(session.id)
    runtime = await restart()
    assert await spent_today(runtime) == pytest.approx(spent)


async def test_embeddings_are_paid_for_and_stop_at_the_limit(restart):
    class PaidEmbedder(Embedder):
        name = "vectors/256"

        async def embed(self, texts):
            return [[1.0, 0.0] for _ in texts]

    catalog = Catalog({"vectors": ModelFacts(10_000, 0), "free": ModelFacts(0, 0)})
    runtime = await restart("ok", catalog=catalog, embedder=PaidEmbedder())
    session = await runtime.start_session(
        model=ModelConfig(name="free"), budgets=BUDGETS, window=WindowLimits(max_turns=1)
    )
    for _ in range(30):
        await turn(runtime, session, "a message of some words")
        await runtime.wait_for_background()
    spent = await spent_today(runtime)
    assert 0.5 < spent <= ONE_CALL
    made = await runtime.store.vectors("local", session.id)
    runtime = await restart("ok", catalog=catalog, embedder=PaidEmbedder())
    await turn(runtime, session, "a message of some words")
    await runtime.wait_for_background()
    assert await runtime.store.vectors("local", session.id) == made
    assert await spent_today(runtime) == pytest.approx(spent)


async def test_a_deletion_by_another_process_does_not_make_a_model_call_free(tmp_path, clock):  # noqa: F811
    def open_runtime(model):
        return Runtime(SqliteStore(tmp_path / "sash.db", clock=clock), model, catalog=DEAR, clock=clock)

    model = WaitingModel("never said")
    async with open_runtime(model) as one, open_runtime(ScriptedModel("ok")) as other:
        session = await one.start_session(model=DEAR_MODEL)
        await one.send_message(session.id, "hi")
        await asyncio.wait_for(model.asked.wait(), 10)
        await other.delete_session(session.id)
        await one.heartbeat()
        assert await spent_today(other) > 0.1
        assert await spent_today(one) == await spent_today(other)


async def test_a_model_without_a_price_does_not_pass_the_operator_s_budget(restart):
    """Only the operator's own model may have an unknown price."""
    unpriced = ModelConfig("a model without a price")
    before = await restart()
    old = await before.start_session(model=unpriced)
    operator = OperatorLimits(UNLIMITED.policy, replace(UNLIMITED.budgets, max_cost_per_day_usd=1.0))
    model = ScriptedModel(lambda request: saying("Hello."))
    runtime = await restart(model=model, operator=operator)
    with pytest.raises(PolicyExceedsOperator, match="price"):
        await runtime.start_session(model=unpriced)
    session = await runtime.start_session()
    with pytest.raises(PolicyExceedsOperator, match="price"):
        await runtime.send_message(session.id, "hi", model=unpriced)
    await turn(runtime, old)
    await turn(runtime, session)
    assert [request.config.name for request in model.requests] == [None, None]


@pytest.mark.parametrize("option", ["models", "service_tier", "web_search_options", "plugins"])
async def test_an_option_that_changes_the_price_does_not_pass_the_operator_s_budget(restart, option):
    """With `models` or `service_tier` a provider answers by another model, or at another price."""
    dear = ModelConfig("dear", options={option: ["dearest"], "top_p": 0.5})
    before = await restart()
    old = await before.start_session(model=dear)
    export = await before.export_session(old.id)
    operator = OperatorLimits(UNLIMITED.policy, replace(UNLIMITED.budgets, max_cost_per_day_usd=100.0))
    model = ScriptedModel(lambda request: saying("Hello."))
    runtime = await restart(model=model, operator=operator)
    for attempt in (
        runtime.start_session(model=dear),
        runtime.ask("hi", model=dear),
        runtime.fork_session(old.id),
        runtime.import_session(export),
    ):
        with pytest.raises(PolicyExceedsOperator, match=option):
            await attempt
    session = await runtime.start_session(model=DEAR_MODEL)
    with pytest.raises(PolicyExceedsOperator, match=option):
        await runtime.send_message(session.id, "hi", model=ModelConfig(options=dear.options))
    await turn(runtime, old)
    await turn(runtime, session, model=ModelConfig(options={"top_p": 0.5}))
    assert [request.config.options for request in model.requests] == [{"top_p": 0.5}] * 2
