"""A client tries to pass `enforce_fixed_model`: by options of the provider, a new session, a copy or an import."""

import pytest

from sash.errors import ModelFixed
from sash.testing import ScriptedModel
from sash.values.sessions import Budgets, Defaults, ModelConfig, OperatorLimits, SessionPolicy, WindowLimits
from tests.runtime.conftest import clock, make_store, run  # noqa: F401
from tests.runtime.talk import answer, turn
from tests.surfaces.serving import problem, serving

FIXED = SessionPolicy(enforce_fixed_model=True)
OPTIONS = ("models", "service_tier", "web_search_options", "provider", "plugins", "route", "transforms", "x")
ALLOWED = {"top_p": 0.5, "seed": 1, "stop": ["."], "reasoning_effort": "low"}


class Named(ScriptedModel):
    name = "small"


@pytest.fixture(params=["operator", "defaults"])
def open_fixed(request, run):  # noqa: F811
    """Return a function that opens a runtime whose operator, or whose defaults, fix the model."""
    fixed = {"operator": OperatorLimits(FIXED, Budgets()), "defaults": Defaults(policy=FIXED)}

    async def open_fixed(**options):
        return await run(model=Named("ok"), **{request.param: fixed[request.param]}, **options)

    return open_fixed


@pytest.mark.parametrize("option", OPTIONS)
async def test_a_turn_sets_no_option_that_chooses_another_model(run, option):  # noqa: F811
    runtime = await run(model=Named("ok"))
    session = await runtime.start_session(policy=FIXED)
    for config in (
        ModelConfig(options={option: ["large"]}),
        ModelConfig(name="small", options=ALLOWED | {option: 1}),
    ):
        with pytest.raises(ModelFixed, match=option):
            await runtime.send_message(session.id, "hi", model=config)
    assert await answer(runtime, session, model=ModelConfig(name="small", options=ALLOWED)) == "ok"
    [request] = runtime.model.requests
    assert request.config.options == ALLOWED


async def test_a_session_of_an_operator_with_a_fixed_model_has_that_model(open_fixed):
    runtime = await open_fixed()
    free = SessionPolicy()
    for config in (ModelConfig(name="large"), ModelConfig(options={"models": ["large"]})):
        for policy in (None, free):
            with pytest.raises(ModelFixed):
                await runtime.start_session(model=config, policy=policy)
            with pytest.raises(ModelFixed):
                await runtime.ask("hi", model=config, policy=policy)
        session = await runtime.start_session(policy=free)
        with pytest.raises(ModelFixed):
            await runtime.send_message(session.id, "hi", model=config)
    assert await answer(runtime, session, model=ModelConfig(options=ALLOWED)) == "ok"


async def test_copies_and_imports_bring_no_other_model(open_fixed, run, make_store):  # noqa: F811
    store = make_store()
    before = await run(model=Named("ok"), store=store)
    session = await before.start_session(model=ModelConfig(name="large", options={"models": ["large"]}))
    export = await before.export_session(session.id)
    await before.close()
    runtime = await open_fixed(store=store)
    with pytest.raises(ModelFixed):
        await runtime.fork_session(session.id)
    await runtime.delete_session(session.id)
    with pytest.raises(ModelFixed):
        await runtime.import_session(export)


async def test_an_imported_turn_runs_with_the_model_of_its_session(run):  # noqa: F811
    runtime = await run(model=Named(RuntimeError("no"), "ok"))
    session = await runtime.start_session(policy=FIXED)
    failed = await turn(runtime, session)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    [stored] = export["continuations"]
    stored |= {"status": "interrupted", "error": None}
    stored["request"]["model"] = {"name": "large", "options": {"models": ["large"], "top_p": 0.5}}
    export["steps"] = []
    await runtime.import_session(export)
    await runtime.resume(failed.continuation.id)
    result = await runtime.await_continuation(failed.continuation.id, timeout_s=10)
    assert result.status == "completed"
    config = runtime.model.requests[-1].config
    assert (config.name, config.options) == (None, {"top_p": 0.5})


async def test_the_server_refuses_such_options(tmp_path):
    async with serving(tmp_path, model=Named("ok")) as served:
        session_id = await served.start(policy={"enforce_fixed_model": True})
        for option in OPTIONS:
            body = {"message": "hi", "model": {"options": {option: ["large"]}}}
            refused = await served.client.post(f"/v1/sessions/{session_id}/messages", json=body)
            problem(refused, 409, "model_fixed")
        assert not served.runtime.model.requests


async def test_a_summary_is_written_by_the_fixed_model(run, make_store):  # noqa: F811
    store, model = make_store(), Named("word " * 300)
    before = await run(model=Named("ok"), store=store)
    large = ModelConfig(name="large", options={"service_tier": "priority"})
    session = await before.start_session(model=large, window=WindowLimits(max_tokens=400))
    await before.close()
    operator = OperatorLimits(FIXED, Budgets())
    runtime = await run(model=model, store=store, summaries=True, operator=operator)
    for _ in range(4):
        await turn(runtime, session)
        await runtime.wait_for_background()
    assert any("Summarise" in request.messages[0]["content"] for request in model.requests)
    assert {(request.config.name, *request.config.options) for request in model.requests} == {(None,)}
