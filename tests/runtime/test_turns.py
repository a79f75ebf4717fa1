"""Turns: the answer, the window, secrets, and questions without a session."""

import asyncio
import json

import pytest

from sash.errors import (
    SessionEnded,
)
from sash.testing import ScriptedModel, calling
from sash.values.requests import Ask
from sash.values.sessions import WindowLimits
from tests.runtime.talk import WAIT_S, said, transcript, turn
from tests.tools import tool


async def test_a_message_is_answered(run):
    runtime = await run("Hello there.")
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert (result.status, result.response.final_message) == ("completed", "Hello there.")
    assert await transcript(runtime, session) == [("user", "hi"), ("assistant", "Hello there.")]
    assert (await runtime.get_session(session.id)).stats.turns == 1


async def test_the_next_turn_sees_the_last_one(run):
    model = ScriptedModel("one", "two")
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    await turn(runtime, session, "second")
    assert said(model.requests[1]) == ["first", "one", "second"]


async def test_the_window_slides_and_the_digest_keeps_the_identifiers(run):
    runtime = await run(lambda request: "Noted, see config.py line 45.")
    session = await runtime.start_session(window=WindowLimits(max_turns=4, evict_to=0.5))
    for n in range(8):
        await turn(runtime, session, f"Note {n}: error E-{n} at db.example.com:5432")
    window = await runtime.store.window("local", session.id)
    kept = [m.text for m in window.messages if m.role == "user"]
    assert len(kept) <= 4
    after = await runtime.get_session(session.id)
    for n in range(8 - len(kept)):
        assert f"E-{n}" in after.memory.digest
    assert len(await runtime.store.messages("local", session.id)) == 16


async def test_secrets_are_never_written(run):
    key = "sk-proj-" + "a1B2" * 10
    given = []
    leak = tool("leak", lambda a, c: given.append(a) or {"password": "hunter2x", "note": f"the key is {key}"})
    runtime = await run(calling("leak", token=key), f"Your key {key} is safe.", tools=[leak])
    session = await runtime.start_session()
    result = await turn(runtime, session, f"my key is {key}")
    everything = json.dumps(await runtime.export_session(session.id))
    assert key not in everything
    assert "hunter2x" not in everything
    assert "[redacted]" in result.response.final_message
    assert given == [{"token": key}]


async def test_secrets_in_an_error_are_not_logged(run, caplog):
    key = "sk-proj-abcdefghijklmnopqrstuvwx"
    runtime = await run(RuntimeError(f"Incorrect API key provided: {key}"))
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert "Incorrect API key" in result.continuation.error.message
    assert "Incorrect API key" in caplog.text
    assert key not in result.continuation.error.message + caplog.text


async def test_an_ended_session_takes_no_more_turns(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    assert (await runtime.end_session(session.id)).status == "ended"
    with pytest.raises(SessionEnded):
        await runtime.send_message(session.id, "hi")


async def test_ask_needs_no_session(run):
    runtime = await run("42")
    result = await runtime.ask("what is it?", timeout_s=WAIT_S)
    assert result.response.final_message == "42"
    assert (await runtime.list_sessions()).items == ()
    assert [s.status for s in (await runtime.list_sessions(with_questions=True)).items] == ["ended"]
    assert (await runtime.statistics())["total_requests"] == 1


async def test_a_question_ends_its_session_also_when_nobody_waits_for_the_answer(run):
    gate = asyncio.Event()

    async def slow(arguments, context):
        await gate.wait()
        return "done"

    runtime = await run(calling("slow"), "Here it is.", tools=[tool("slow", slow)])
    result = await runtime.ask("what?", timeout_s=0)
    assert result.status in ("running", "streaming")
    assert (await runtime.get_session(result.continuation.session_id)).status == "active"
    gate.set()
    await runtime.await_continuation(result.continuation.id, timeout_s=WAIT_S)
    assert (await runtime.get_session(result.continuation.session_id)).status == "ended"


async def test_a_question_that_is_cancelled_ends_its_session(run):
    gate = asyncio.Event()

    async def slow(arguments, context):
        await gate.wait()

    runtime = await run(calling("slow"), "Here it is.", tools=[tool("slow", slow)])
    asked = await runtime.put_question(Ask(message="what?"))
    await runtime.cancel(asked.id)
    assert (await runtime.get_session(asked.session_id)).status == "ended"


async def test_a_window_that_was_forgotten_on_the_way_is_read_again(run, monkeypatch):
    runtime = await run("first", "second")
    session = await runtime.start_session()
    await turn(runtime, session, "one")
    begin = runtime.store.begin

    async def forgetful(*args, **kwargs):
        begun = await begin(*args, **kwargs)
        assert begun.turn.window is None
        runtime._parts.windows.drop_owner("local")
        return begun

    monkeypatch.setattr(runtime.store, "begin", forgetful)
    await turn(runtime, session, "two")
    assert said(runtime.model.requests[-1]) == ["one", "first", "two"]


async def test_what_was_erased_is_in_no_later_prompt(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    await turn(runtime, session, "my secret plan")
    export = await runtime.export_session(session.id)
    for stored in export["messages"]:
        stored["message"]["content"] = "edited"
    await runtime.erase()
    await runtime.import_session(export)
    sent = await runtime.send_message(session.id, "hi")
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    request = runtime.model.requests[-1]
    assert "secret plan" not in json.dumps(request.messages)
    assert "edited" in json.dumps(request.messages)
