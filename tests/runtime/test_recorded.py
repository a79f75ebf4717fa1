"""Turns that somebody else has answered: recorded, amended, listed; and sessions that are named and deleted."""

import asyncio
import json
import shutil
from contextlib import aclosing

import pytest

import sash.engine.event_feed
from sash import Runtime
from sash.errors import (
    ArtifactNotFound,
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
    KeyReused,
    MessageTooLarge,
    SessionBusy,
    SessionEnded,
    SessionExists,
    SessionNotFound,
)
from sash.stores import disk
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, FaultyStore, ScriptedModel, calling
from sash.values.ids import new_id
from sash.values.sessions import Budgets, WindowLimits
from tests.runtime.talk import WAIT_S, answer, said, subscribed, transcript, turn
from tests.runtime.test_money import DEAR, DEAR_MODEL, PRICE, saying
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool

TWO_TURNS = WindowLimits(max_tokens=None, max_turns=2, evict_to=1.0)
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


async def test_the_answer_can_come_later_in_its_place(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    first = await runtime.record_turn(session.id, "one?")
    await turn(runtime, session, "two?")
    amended = await runtime.amend_turn(first.id, "one!")
    assert amended.response.final_message == "one!"
    await turn(runtime, session, "three?")
    assert said(runtime.model.requests[-1]) == ["one?", "one!", "two?", "ok", "three?"]
    assert await transcript(runtime, session) == [
        ("user", "one?"),
        ("assistant", "one!"),
        ("user", "two?"),
        ("assistant", "ok"),
        ("user", "three?"),
        ("assistant", "ok"),
    ]


async def test_the_answer_of_an_agent_s_turn_can_be_amended(run):
    runtime = await run(calling("look"), "wrong", "ok", tools=[tool("look", lambda a, c: "fine")])
    session = await runtime.start_session()
    result = await turn(runtime, session, "how is the hall?")
    await runtime.amend_turn(result.continuation.id, "right")
    await turn(runtime, session, "and now?")
    shown = said(runtime.model.requests[-1])
    assert (shown[-2], "wrong" in shown) == ("right", False)
    window = (await runtime.store.window("local", session.id)).messages
    counter = runtime._parts.counter
    assert window[3].token_count == counter.count_message("right")


async def test_an_amended_answer_does_not_get_lost_beside_a_turn_that_runs(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    first = await runtime.record_turn(session.id, "one?", "old")
    sent = await runtime.send_message(session.id, "two?")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.amend_turn(first.id, "new")
    model.go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    await turn(runtime, session, "three?")
    assert said(model.requests[-1]) == ["one?", "new", "two?", "done", "three?"]


async def test_a_turn_that_left_the_window_is_amended_in_the_transcript(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=TWO_TURNS)
    turns = [await runtime.record_turn(session.id, f"q{n}", "marmalade") for n in range(3)]
    assert await runtime.list_turns(session.id) == turns[1:]
    await runtime.amend_turn(turns[0].id, "blackcurrant")
    [found] = await runtime.search("blackcurrant")
    assert (found.position, found.in_window) == (2, False)


async def test_only_what_is_completed_can_be_amended(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    with pytest.raises(InvalidInput, match="running"):
        await runtime.amend_turn(sent.id, "x")
    await runtime.cancel(sent.id)
    with pytest.raises(ContinuationFinal, match="cancelled"):
        await runtime.amend_turn(sent.id, "x")
    recorded = await runtime.record_turn(session.id, "q", "a")
    with pytest.raises(ContinuationNotFound):
        await runtime.amend_turn(recorded.id, "x", owner="bob")
    for wrong in (None, 7, b"x", "\ud800"):
        with pytest.raises(InvalidInput):
            await runtime.amend_turn(recorded.id, wrong)
    assert await transcript(runtime, session) == [("user", "q"), ("assistant", "a")]


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


async def test_what_is_retried_keeps_its_metadata(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    result = await turn(runtime, session, "hi", metadata={"source": "chat"})
    again = await runtime.retry(result.continuation.id)
    assert again.request.metadata == {"source": "chat"}


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


def opened(folder):
    return Runtime(FilesStore(folder, clock=FakeClock()), ScriptedModel("ok"), clock=FakeClock())


async def texts(folder, session):
    async with opened(folder) as sash:
        version = (await sash.get_session(session.id)).version
        turns = [t.response and t.response.final_message for t in await sash.list_turns(session.id)]
        return version, turns, [m.message.text for m in await sash.list_messages(session.id)]


@pytest.mark.parametrize("lost", ["nothing", "turns", "session", "both"])
async def test_files_that_were_not_brought_up_to_date_lose_no_amendment(tmp_path, monkeypatch, lost):
    """The log alone has what a process that died could not write to the other files."""
    async with opened(tmp_path / "a") as sash:
        session = await sash.start_session()
        turns = [await sash.record_turn(session.id, f"q{n}", f"a{n}") for n in range(2)]
        await sash.set_preferences(session.id, {"up to": "date"})
        later = await sash.record_turn(session.id, "q2")
        real = disk.replace

        def replace_some(path, content, *, sync):
            if lost in ("turns", "both") and path.parent.name == "turns":
                raise OSError("not now")
            real(path, content, sync=sync)

        monkeypatch.setattr(disk, "replace", replace_some)
        await sash.amend_turn(turns[0].id, "b0")
        await sash.amend_turn(later.id, "b2")
        await sash.amend_turn(turns[0].id, "c0")
        if lost in ("nothing", "turns"):
            await sash.set_preferences(session.id, {"up to": "then"})
        version = (await sash.get_session(session.id)).version
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        monkeypatch.setattr(disk, "replace", real)
    expected = (version, ["c0", "a1", "b2"], ["q0", "c0", "q1", "a1", "q2", "b2"])
    assert await texts(tmp_path / "b", session) == expected
    assert await texts(tmp_path / "b", session) == expected


@pytest.mark.parametrize("damaged", ["log", "end of log", "turn"])
async def test_of_a_turn_s_files_either_mends_the_other_also_when_it_was_amended(tmp_path, damaged):
    async with opened(tmp_path) as sash:
        session = await sash.start_session()
        recorded = await sash.record_turn(session.id, "q", "a")
        await sash.record_turn(session.id, "q2", "a2")
        await sash.set_preferences(session.id, {"up to": "date"})
        for amended in ("b", "c"):
            await sash.amend_turn(recorded.id, amended)
    folder = tmp_path / "sessions" / session.id
    if damaged == "turn":
        (folder / "turns" / f"{recorded.id}.json").write_text("{")
    else:
        path = folder / "logs" / f"{recorded.id}.log"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[: 1 if damaged == "log" else 2]))
    assert (await texts(tmp_path, session))[1:] == (["c", "a2"], ["q", "c", "q2", "a2"])
