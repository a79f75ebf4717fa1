"""Turns whose model fails: failed at once, resumed later, or retried."""

import asyncio

import pytest

from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    ModelKeyRefused,
    ModelUnreachable,
    SashError,
)
from sash.ports.model import Model
from sash.testing import ScriptedModel, calling
from sash.values.sessions import SessionPolicy
from tests.runtime.talk import WAIT_S, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


async def test_a_model_that_fails_fails_the_turn_and_leaves_the_window(run):
    runtime = await run("one", RuntimeError("no network"), "three")
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    failed = await turn(runtime, session, "second")
    assert (failed.status, failed.continuation.error.code) == ("failed", "internal_error")
    assert "no network" in failed.continuation.error.message
    await turn(runtime, session, "third")
    assert [text for _, text in await transcript(runtime, session)] == ["first", "one", "third", "three"]


async def test_retry_runs_the_turn_again(run):
    runtime = await run(RuntimeError("no network"), "now it works")
    session = await runtime.start_session()
    failed = await turn(runtime, session, "hi")
    again = await runtime.retry(failed.continuation.id)
    result = await runtime.await_continuation(again.id, timeout_s=WAIT_S)
    assert result.response.final_message == "now it works"
    assert (again.retry_of, again.id) == (failed.continuation.id, result.continuation.id)
    assert await transcript(runtime, session) == [("user", "hi"), ("assistant", "now it works")]


async def test_a_turn_whose_model_fails_after_a_call_goes_on_later_and_holds_up_nobody(run):
    made = []
    look = tool("look", lambda a, c: made.append(c.call_id) or "seen")
    model = ScriptedModel(calling("look"), ModelUnreachable("no network"), "the other one", "I saw it.")
    runtime = await run(model=model, tools=[look])
    session = await runtime.start_session()
    first = await runtime.send_message(session.id, "look")
    second = await runtime.send_message(session.id, "and then?", busy="enqueue")
    served = await runtime.await_continuation(second.id, timeout_s=WAIT_S)
    assert served.response.final_message == "the other one"
    waiting = await runtime.await_continuation(first.id, timeout_s=WAIT_S)
    assert waiting.status == "interrupted"
    assert waiting.steps[-1].detail == {
        "event": "interrupted",
        "code": "model_unreachable",
        "message": "no network",
    }
    await runtime.resume(first.id)
    result = await runtime.await_continuation(first.id, timeout_s=WAIT_S)
    assert result.response.final_message == "I saw it."
    assert made == ["call"]
    assert result.continuation.stats.tool_calls == 1


@pytest.mark.parametrize("error", [ContentFiltered("no"), ContextTooLong("no"), RuntimeError("no")])
async def test_what_cannot_get_better_fails(run, error):
    look = tool("look", lambda a, c: "seen")
    runtime = await run(calling("look"), error, tools=[look])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "failed"


async def test_without_a_call_a_model_that_fails_fails_the_turn(run):
    runtime = await run(ModelUnreachable("no network"))
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert (result.status, result.continuation.error.code) == ("failed", "model_unreachable")


@pytest.mark.parametrize(("error", "most"), [(ModelKeyRefused("no"), 2), (ModelUnreachable("no"), 12)])
async def test_what_does_not_get_better_is_not_resumed_for_ever(run, clock, error, most):
    look = tool("look", lambda a, c: "seen")
    model = ScriptedModel(calling("look"), error)
    runtime = await run(model=model, tools=[look])
    session = await runtime.start_session(policy=SessionPolicy(resume_interrupted=True))
    result = await turn(runtime, session)
    for _ in range(20):
        clock.advance(31)
        await runtime.recover()
        result = await runtime.await_continuation(result.continuation.id, timeout_s=WAIT_S)
    assert result.status == "interrupted"
    assert len(model.requests) <= most


async def test_a_model_that_ends_like_a_task_fails_the_turn(run):
    class Cancelling(Model):
        async def stream(self, request):
            raise asyncio.CancelledError
            yield

    runtime = await run(model=Cancelling())
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "failed"


async def test_a_retry_that_is_refused_cancels_nothing(run, make_store, clock):
    store, model = make_store(), WaitingModel("done")
    first = await run(model=model, store=store)
    session = await first.start_session()
    lost = await first.send_message(session.id, "one")
    await first.close()
    clock.advance(31)
    second = await run(model=WaitingModel("done"), store=store)
    await second.send_message(session.id, "two")
    with pytest.raises(SashError):
        await second.retry(lost.id)
    assert (await second.store.get_continuation("local", lost.id)).status == "interrupted"
