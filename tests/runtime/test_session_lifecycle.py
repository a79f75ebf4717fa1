"""Sessions: listed, read page by page, named, expired and deleted."""

import asyncio
from contextlib import aclosing

import pytest

from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    InvalidInput,
    SessionEnded,
    SessionExists,
    SessionNotFound,
)
from sash.testing import ScriptedModel, calling
from sash.values.ids import new_id
from sash.values.sessions import Budgets, WindowLimits
from tests.runtime.priced_model import DEAR, DEAR_MODEL, PRICE, saying
from tests.runtime.talk import WAIT_S, answer, subscribed, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


async def test_turns_are_listed_as_long_as_they_are_in_the_window(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=WindowLimits(max_tokens=None, max_turns=3, evict_to=1.0))
    for n in range(3):
        await runtime.record_turn(session.id, f"q{n}", metadata={"n": n})
    await turn(runtime, session, "an agent's turn", metadata={"n": 3})
    listed = await runtime.list_turns(session.id)
    assert [(t.request.message, t.request.metadata["n"]) for t in listed] == [
        ("q1", 1),
        ("q2", 2),
        ("an agent's turn", 3),
    ]
    assert await runtime.list_turns(session.id, limit=2) == listed[1:]
    assert await runtime.list_turns(session.id, limit=9) == listed
    assert await runtime.list_turns(session.id, limit=0) == []
    with pytest.raises(SessionNotFound):
        await runtime.list_turns(session.id, owner="bob")


async def test_the_transcript_is_read_page_by_page(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    for n in range(3):
        await runtime.record_turn(session.id, f"q{n}", f"a{n}")
    page = await runtime.list_messages(session.id, after=1, limit=2)
    assert [(m.position, m.message.text) for m in page] == [(2, "a0"), (3, "q1")]
    for wrong in ({"after": -1}, {"limit": 0}, {"after": "1"}):
        with pytest.raises(InvalidInput):
            await runtime.list_messages(session.id, **wrong)
    with pytest.raises(SessionNotFound):
        await runtime.list_messages(session.id, owner="bob")


async def test_a_session_is_found_by_its_name(run, make_store):
    runtime = await run("ok")
    session = await runtime.start_session(name="kitchen", context={"kept": 1}, area="Kitchen")
    assert await runtime.find_session("kitchen") == session
    assert (session.context, session.area) == ({"kept": 1}, "Kitchen")
    assert await runtime.find_session("kitchen", owner="bob") is None
    with pytest.raises(SessionExists):
        await runtime.start_session(name="kitchen")
    for wrong in ("", "x" * 257, 7, "\ud800"):
        with pytest.raises(InvalidInput):
            await runtime.start_session(name=wrong)
    await runtime.end_session(session.id)
    assert (await runtime.find_session("kitchen")).status == "ended"
    again = await runtime.start_session(name="kitchen")
    assert await runtime.find_session("kitchen") == again
    assert [s.id for s in (await runtime.list_sessions(name="kitchen")).items] == [again.id, session.id]


async def test_a_fork_and_an_import_take_nobody_s_name(run):
    runtime = await run("ok")
    session = await runtime.start_session(name="kitchen")
    fork = await runtime.fork_session(session.id)
    assert (fork.name, (await runtime.get_session(fork.id)).name) == (None, None)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    again = await runtime.start_session(name="kitchen")
    imported = await runtime.import_session(export)
    assert (imported.id, imported.name) == (session.id, None)
    assert await runtime.find_session("kitchen") == again
    export["session"]["id"] = new_id()
    assert (await runtime.import_session(export, owner="bob")).name == "kitchen"


async def test_an_expired_session_goes_on_and_an_ended_one_does_not(run, clock):
    runtime = await run("ok")
    session = await runtime.start_session()
    await runtime.record_turn(session.id, "q", "a")
    clock.advance(8 * 86400)
    await runtime.sweep()
    with pytest.raises(SessionEnded):
        await runtime.record_turn(session.id, "q", "a")
    reopened = await runtime.reopen_session(session.id)
    assert reopened.status == "active"
    assert await runtime.reopen_session(session.id) == reopened
    await runtime.sweep()
    await runtime.record_turn(session.id, "q2", "a2")
    assert len(await runtime.list_turns(session.id)) == 2
    await runtime.end_session(session.id)
    with pytest.raises(SessionEnded):
        await runtime.reopen_session(session.id)


async def test_a_deleted_session_is_gone_with_what_runs_in_it(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session, other = await runtime.start_session(), await runtime.start_session()
    await runtime.record_turn(session.id, "q", "a")
    await runtime.record_turn(other.id, "mine", "yours")
    events = []

    async def listen():
        async with aclosing(runtime.events(session.id)) as stream:
            events.extend([event async for event in stream])

    listening = asyncio.create_task(listen())
    await subscribed(runtime, session)
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.delete_session(session.id)
    await asyncio.wait_for(listening, WAIT_S)
    assert runtime.running_turns == 0
    assert runtime._parts.windows.session(session.id) is None
    for gone in (
        runtime.get_session(session.id),
        runtime.list_messages(session.id),
        runtime.search("hi", session_id=session.id),
        runtime.record_turn(session.id, "late"),
        runtime.delete_session(session.id),
        runtime.delete_session(other.id, owner="bob"),
    ):
        with pytest.raises(SessionNotFound):
            await gone
    with pytest.raises(ContinuationNotFound):
        await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert await transcript(runtime, other) == [("user", "mine"), ("assistant", "yours")]
    assert runtime._parts.windows.session(other.id) is not None
    await runtime.delete_session(other.id)
    assert runtime._parts.windows.session(other.id) is None


async def test_what_a_deleted_session_cost_stays_spent(run):
    runtime = await run(model=ScriptedModel(saying("ok")), catalog=DEAR)
    kept, session = [
        await runtime.start_session(model=DEAR_MODEL, budgets=Budgets(max_cost_per_day_usd=4.0))
        for _ in range(2)
    ]
    assert await answer(runtime, session) == "ok"
    await runtime.delete_session(session.id)
    assert (await runtime.statistics())["today"]["estimated_cost_usd"] == pytest.approx(PRICE)
    await runtime.delete_session(kept.id)
    assert (await runtime.statistics())["today"]["estimated_cost_usd"] == pytest.approx(PRICE)


async def test_an_artifact_is_got_by_its_owner(run):
    runtime = await run(calling("log"), "done", tools=[tool("log", lambda a, c: "x" * 9000)])
    session = await runtime.start_session()
    result = await turn(runtime, session, "the log")
    [ref] = result.continuation.artifacts
    assert b"x" * 9000 in (await runtime.get_artifact(ref.id)).data
    with pytest.raises(ArtifactNotFound):
        await runtime.get_artifact(ref.id, owner="bob")
    await runtime.delete_session(session.id)
    with pytest.raises(ArtifactNotFound):
        await runtime.get_artifact(ref.id)
