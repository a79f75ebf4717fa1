"""Turns that were answered elsewhere and are recorded."""

import asyncio
import json
from contextlib import aclosing

import pytest

import sash.engine.event_feed
from sash import Runtime
from sash.errors import (
    InvalidInput,
    KeyReused,
    MessageTooLarge,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
)
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FaultyStore, ScriptedModel
from sash.values.continuations import TurnCaller
from sash.values.sessions import WindowLimits
from tests.runtime.small_window import TWO_TURNS
from tests.runtime.talk import WAIT_S, said, subscribed, transcript, turn
from tests.runtime.waiting_model import WaitingModel

SECRET = "sk-abcdefghijklmnopqrstuvwxyz"


async def test_a_recorded_turn_is_in_the_transcript_and_no_model_was_asked(run, clock):
    runtime = await run("ok")
    session = await runtime.start_session()
    recorded = await runtime.record_turn(session.id, "hi", "hello", metadata={"source": "chat"})
    assert (recorded.status, recorded.response.final_message) == ("completed", "hello")
    assert recorded == await runtime.store.get_continuation("local", recorded.id)
    assert recorded.request.metadata == {"source": "chat"}
    assert await transcript(runtime, session) == [("user", "hi"), ("assistant", "hello")]
    assert runtime.model.requests == []
    stats = (await runtime.get_session(session.id)).stats
    assert (stats.turns, stats.local_turns, stats.model_calls, stats.durations) == (1, 1, 0, {})
    assert (await runtime.statistics())["local_count"] == 1


async def test_a_recorded_turn_has_its_own_place_caller_and_agent(run):
    runtime = await run()
    session = await runtime.start_session(area="Bedroom")
    anna = TurnCaller(user_id="u1", user_name="Anna", device_id="puck", certainty="signed_in")
    recorded = await runtime.record_turn(
        session.id,
        "Licht an",
        "Eingeschaltet",
        area="Kitchen",
        language="de",
        caller=anna,
        metadata={"source": "chat"},
        answered_by="conversation.home_assistant",
    )
    stored = await runtime.store.get_continuation("local", recorded.id)
    request = stored.request
    assert (request.area, request.language, request.caller) == ("Kitchen", "de", anna)
    assert request.metadata == {"source": "chat", "answered_by": "conversation.home_assistant"}
    assert (await runtime.record_turn(session.id, "hi", "hello")).request.metadata == {}


@pytest.mark.parametrize(
    "wrong", [{"area": ""}, {"language": 5}, {"caller": "anna"}, {"answered_by": ""}, {"answered_by": 5}]
)
async def test_a_wrong_place_caller_or_agent_is_refused(run, wrong):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.record_turn(session.id, "hi", "hello", **wrong)
    assert await transcript(runtime, session) == []


async def test_a_turn_is_recorded_once_under_its_key(run):
    counted = []
    runtime = await run("ok", on_turn=counted.append)
    session = await runtime.start_session()
    first, *again = await asyncio.gather(
        *(runtime.record_turn(session.id, "hi", "hello", idempotency_key="k") for _ in range(5))
    )
    assert again == [first] * 4
    assert [result.continuation for result in counted] == [first]
    await turn(runtime, session, "and now?")
    assert await runtime.record_turn(session.id, "hi", "hello", idempotency_key="k") == first
    assert said(runtime.model.requests[-1]) == ["hi", "hello", "and now?"]
    assert len(await transcript(runtime, session)) == 4
    with pytest.raises(KeyReused, match=first.id):
        await runtime.record_turn(session.id, "something else", idempotency_key="k")


async def test_the_model_sees_what_was_recorded(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    await runtime.record_turn(session.id, "the boiler leaks", "Call the plumber.", metadata={"key": "hidden"})
    await turn(runtime, session, "what now?", metadata={"key": "hidden"})
    [request] = runtime.model.requests
    assert said(request) == ["the boiler leaks", "Call the plumber.", "what now?"]
    assert "hidden" not in json.dumps(request.messages)


async def test_a_recorded_turn_evicts_and_leaves_a_digest_as_any_other(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=TWO_TURNS)
    for n in range(2):
        await runtime.record_turn(session.id, f"error 50{n} at /api/{n}", "hm")
    await turn(runtime, session, "an agent's turn")
    await runtime.record_turn(session.id, "last", "bye")
    window = await runtime.store.window("local", session.id)
    assert [m.text for m in window.messages] == ["an agent's turn", "ok", "last", "bye"]
    assert window.evicted_count == 4
    digest = (await runtime.get_session(session.id)).memory.digest
    assert digest.splitlines() == ["- error 500 at /api/0", "- error 501 at /api/1"]
    report = await runtime.context_report(session.id)
    assert {gone["reason"] for gone in report["evicted"]} == {"max_turns"}
    counted = sum(m.token_count for m in window.messages)
    [shown] = [part["tokens"] for part in report["parts"] if part["name"] == "window"]
    assert shown == counted


async def test_a_question_that_is_not_answered_yet_is_no_empty_message_for_a_model(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    first = await runtime.record_turn(session.id, "who is there?")
    assert (first.status, first.response) == ("completed", None)
    for _ in range(2):
        await turn(runtime, session, "hello?")
        shown = [m for m in runtime.model.requests[-1].messages if m["role"] != "system"]
        assert all(m["content"] for m in shown)
        roles = [m["role"] for m in shown]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        runtime._parts.windows.drop_owner("local")
    window = (await runtime.store.window("local", session.id)).messages
    assert [m.text for m in window] == ["who is there?", "", "hello?", "ok", "hello?", "ok"]
    counted = runtime._parts.contexts.count_messages([runtime._parts.renderer.render(m) for m in window])
    assert counted == sum(m.token_count for m in window)


async def test_secrets_are_not_recorded(run, tmp_path):
    runtime = await run("ok")
    session = await runtime.start_session()
    recorded = await runtime.record_turn(
        session.id, f"my key is {SECRET}", f"so it is {SECRET}", metadata={"password": "hunter2", "a": SECRET}
    )
    await runtime.amend_turn(recorded.id, f"it is {SECRET} still")
    export = json.dumps(await runtime.export_session(session.id))
    assert "[redacted]" in export
    for secret in (SECRET, "hunter2"):
        assert secret not in export
        await runtime.close()
        assert not [p for p in tmp_path.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
        await runtime.open()
    with pytest.raises(InvalidInput, match="secret"):
        await runtime.start_session(name=SECRET)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([""], {}),
        (["  "], {}),
        ([None], {}),
        (["x", 7], {}),
        (["\ud800"], {}),
        (["x", "\ud800"], {}),
        (["x", "y"], {"metadata": [1]}),
        (["x", "y"], {"metadata": {"a": {1}}}),
    ],
)
async def test_what_is_no_turn_is_not_recorded(run, arguments, options):
    runtime = await run("ok")
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.record_turn(session.id, *arguments, **options)
    assert await transcript(runtime, session) == []


async def test_what_is_recorded_is_bounded(run):
    runtime = await run("ok", max_message_bytes=1000)
    session = await runtime.start_session()
    recorded = await runtime.record_turn(session.id, "x" * 1000, "y" * 1000)
    for attempt in (
        runtime.record_turn(session.id, "x" * 1001),
        runtime.record_turn(session.id, "x", "y" * 1001),
        runtime.record_turn(session.id, "x", metadata={"a": "x" * 20_000}),
        runtime.send_message(session.id, "x", metadata={"a": "x" * 20_000}),
        runtime.amend_turn(recorded.id, "y" * 1001),
    ):
        with pytest.raises(MessageTooLarge):
            await attempt


async def test_nothing_is_recorded_beside_a_turn_that_runs(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    with pytest.raises(SessionBusy) as error:
        await runtime.record_turn(session.id, "q", "a")
    assert error.value.continuation_id == sent.id
    model.go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    await runtime.record_turn(session.id, "q", "a")
    assert [text for _, text in await transcript(runtime, session)] == ["hi", "done", "q", "a"]
    await runtime.end_session(session.id)
    with pytest.raises(SessionEnded):
        await runtime.record_turn(session.id, "q", "a")
    with pytest.raises(SessionNotFound):
        await runtime.record_turn(session.id, "q", "a", owner="bob")


async def test_many_turns_recorded_at_once_are_all_there(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=WindowLimits(max_tokens=None, max_turns=3, evict_to=1.0))
    await asyncio.gather(*(runtime.record_turn(session.id, f"q{n}", f"a{n}") for n in range(30)))
    stored = await runtime.list_messages(session.id)
    assert sorted(m.message.text for m in stored[::2]) == sorted(f"q{n}" for n in range(30))
    assert [m.message.text[1:] for m in stored[::2]] == [m.message.text[1:] for m in stored[1::2]]
    assert [t.request.message for t in await runtime.list_turns(session.id)] == [
        m.message.text for m in stored[-6::2]
    ]
    assert (await runtime.get_session(session.id)).stats.turns == 30


async def test_two_processes_record_without_losing_a_turn(tmp_path):
    path = tmp_path / "sash.db"
    async with Runtime(SqliteStore(path), ScriptedModel("a")) as a, Runtime(SqliteStore(path)) as b:
        session = await a.start_session(window=TWO_TURNS)
        for n in range(3):
            await asyncio.gather(*(r.record_turn(session.id, f"q{n}", "a") for r in (a, b)))
        changed = await b.record_turn(session.id, "one?", "old")
        await a.record_turn(session.id, "two?", "a")
        await b.amend_turn(changed.id, "new")
        await turn(a, session, "three?")
        assert said(a.model.requests[-1])[:2] == ["one?", "new"]
        assert len(await b.list_messages(session.id)) == 18
        assert (await b.store.window("local", session.id)).evicted_count == 14


async def test_a_turn_that_could_not_be_recorded_leaves_nothing(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run("ok", store=store)
    session = await runtime.start_session()
    await runtime.record_turn(session.id, "one", "a")
    store.fail("record", OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await runtime.record_turn(session.id, "lost", "b")
    await runtime.record_turn(session.id, "two", "c")
    await turn(runtime, session, "three")
    assert said(runtime.model.requests[-1]) == ["one", "a", "two", "c", "three"]
    assert len(await runtime.store.list_continuations("local", session.id)) == 3


async def test_subscribers_see_a_recorded_and_an_amended_turn_as_final(run, monkeypatch):
    monkeypatch.setattr(sash.engine.event_feed, "POLL_S", 10 * WAIT_S)
    runtime = await run("ok")
    session = await runtime.start_session()
    async with asyncio.timeout(WAIT_S), aclosing(runtime.events(session.id)) as stream:
        waiting = asyncio.create_task(anext(stream))
        await subscribed(runtime, session)
        recorded = await runtime.record_turn(session.id, "q")
        first = await waiting
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        await runtime.amend_turn(recorded.id, "a")
        second = await waiting
    assert [(e.type, e.cursor, e.continuation_id) for e in (first, second)] == [
        ("final", 1, recorded.id),
        ("final", 2, recorded.id),
    ]
    assert first.payload["final_response"] is None
    assert second.payload["final_response"]["final_message"] == "a"


async def test_who_counts_turns_is_told_of_a_recorded_one(run):
    told = []
    runtime = await run("ok", on_turn=told.append)
    session = await runtime.start_session()
    recorded = await runtime.record_turn(session.id, "q", "a")
    [result] = told
    assert (result.continuation, [s.type for s in result.steps]) == (recorded, ["summary"])


async def test_what_is_retried_keeps_its_metadata(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    result = await turn(runtime, session, "hi", metadata={"source": "chat"})
    again = await runtime.retry(result.continuation.id)
    assert again.request.metadata == {"source": "chat"}
