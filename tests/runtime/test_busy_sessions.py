"""Several messages to one session: refused, queued, interrupting, cancelled and waited for."""

import asyncio

import pytest

import sash.engine.runtime
import sash.engine.worker
from sash.errors import (
    ContinuationFinal,
    SessionBusy,
    SessionEnded,
)
from sash.testing import ScriptedModel, calling
from tests.runtime.talk import WAIT_S, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


async def test_two_sends_at_once_and_exactly_one_is_accepted(run):
    gate = asyncio.Event()
    runtime = await run(calling("wait"), "done", tools=[tool("wait", lambda a, c: gate.wait())])
    session = await runtime.start_session()
    results = await asyncio.gather(
        *(runtime.send_message(session.id, str(n)) for n in range(2)), return_exceptions=True
    )
    assert [isinstance(r, SessionBusy) for r in results].count(True) == 1
    gate.set()
    [accepted] = [r for r in results if not isinstance(r, SessionBusy)]
    await runtime.await_continuation(accepted.id, timeout_s=WAIT_S)
    assert len([role for role, _ in await transcript(runtime, session) if role == "user"]) == 1


async def test_fifty_sends_with_one_key_are_one_turn(run):
    runtime = await run("done")
    session = await runtime.start_session()
    sent = await asyncio.gather(
        *(runtime.send_message(session.id, "hi", idempotency_key="k") for _ in range(50))
    )
    assert len({continuation.id for continuation in sent}) == 1
    await runtime.await_continuation(sent[0].id, timeout_s=WAIT_S)
    assert len(await transcript(runtime, session)) == 2


async def test_a_queue_is_worked_off_in_order(run):
    gate = asyncio.Event()
    model = ScriptedModel(calling("wait"), "one", "two", "three")
    runtime = await run(model=model, tools=[tool("wait", lambda a, c: gate.wait())])
    session = await runtime.start_session()
    await runtime.send_message(session.id, "1")
    second = await runtime.send_message(session.id, "2", busy="enqueue")
    third = await runtime.send_message(session.id, "3", busy="enqueue")
    assert (second.status, third.status) == ("pending", "pending")
    gate.set()
    await runtime.await_continuation(third.id, timeout_s=WAIT_S)
    said = [text for role, text in await transcript(runtime, session) if role == "user"]
    assert said == ["1", "2", "3"]


async def test_a_cancel_in_the_middle_of_a_tool(run):
    started, ended = asyncio.Event(), asyncio.Event()

    async def hang(arguments, context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    model = ScriptedModel(calling("hang"), "fine")
    runtime = await run(model=model, tools=[tool("hang", hang)])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    cancelled = await runtime.cancel(sent.id, reason="taking too long")
    assert cancelled.status == "cancelled"
    assert ended.is_set()
    with pytest.raises(ContinuationFinal):
        await runtime.cancel(sent.id)
    assert (await runtime.store.window("local", session.id)).messages == ()
    assert (await turn(runtime, session, "next")).response.final_message == "fine"
    assert not any("tool_calls" in m for m in model.requests[-1].messages)


async def test_a_new_message_can_interrupt(run):
    started = asyncio.Event()

    async def hang(arguments, context):
        started.set()
        await asyncio.Event().wait()

    runtime = await run(calling("hang"), "fine", tools=[tool("hang", hang)])
    session = await runtime.start_session()
    first = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    result = await turn(runtime, session, "rather this", busy="interrupt")
    assert result.response.final_message == "fine"
    assert (await runtime.await_continuation(first.id)).status == "cancelled"


async def test_who_goes_away_cancels_nothing(run):
    gate = asyncio.Event()
    runtime = await run(calling("wait"), "done", tools=[tool("wait", lambda a, c: gate.wait())])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    waiter = asyncio.create_task(runtime.await_continuation(sent.id))
    await asyncio.sleep(0)
    waiter.cancel()
    still = await runtime.await_continuation(sent.id, timeout_s=0.01)
    assert still.status == "running"
    gate.set()
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"


async def test_many_may_wait_and_some_may_go(run):
    gate = asyncio.Event()
    runtime = await run(calling("wait"), "done", "next", tools=[tool("wait", lambda a, c: gate.wait())])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    queued = await runtime.send_message(session.id, "and then?", busy="enqueue")
    impatient = await asyncio.gather(
        *(runtime.await_continuation(c.id, timeout_s=0) for c in (sent, queued)),
    )
    assert [r.status for r in impatient] == ["running", "pending"]
    patient = asyncio.gather(
        *(runtime.await_continuation(c.id, timeout_s=WAIT_S) for c in (sent, sent, queued, queued))
    )
    await asyncio.sleep(0)
    gate.set()
    assert [r.status for r in await patient] == ["completed"] * 4


async def test_who_counts_turns_is_told_of_cancelled_ones_and_stops_nothing(run):
    told, started, gate = [], asyncio.Event(), asyncio.Event()

    async def slow(arguments, context):
        started.set()
        await gate.wait()

    def count(result):
        told.append(result.status)
        raise RuntimeError("no room for numbers")

    runtime = await run(calling("slow"), "ok", tools=[tool("slow", slow)], on_turn=count)
    session = await runtime.start_session()
    first = await runtime.send_message(session.id, "one")
    second = await runtime.send_message(session.id, "two", busy="enqueue")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await runtime.cancel(first.id)
    assert (await runtime.await_continuation(second.id, timeout_s=WAIT_S)).status == "completed"
    assert told == ["cancelled", "completed"]


async def test_a_session_that_ends_begins_nothing_that_waited(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = [await runtime.send_message(session.id, str(n), busy="enqueue") for n in range(4)]
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.end_session(session.id)
    results = [await runtime.await_continuation(c.id, timeout_s=WAIT_S) for c in sent]
    assert [r.status for r in results] == ["cancelled"] * 4
    with pytest.raises(SessionEnded):
        await runtime.send_message(session.id, "more")
    assert model.requests == []


async def test_an_interruption_begins_nothing_that_waited(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = [await runtime.send_message(session.id, str(n), busy="enqueue") for n in range(3)]
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    now = await runtime.send_message(session.id, "now", busy="interrupt")
    model.go_on.set()
    assert (await runtime.await_continuation(now.id, timeout_s=WAIT_S)).status == "completed"
    results = [await runtime.await_continuation(c.id, timeout_s=WAIT_S) for c in sent]
    assert [r.status for r in results] == ["cancelled"] * 3
    assert len(model.requests) == 1


async def test_a_tool_that_cannot_be_cancelled_does_not_hold_the_cancel(run, monkeypatch):
    monkeypatch.setattr(sash.engine.worker, "STOP_WAIT_S", 0.01)
    started, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn(arguments, context):
        started.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    runtime = await run(calling("stubborn"), tools=[tool("stubborn", stubborn)])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    cancelled = await asyncio.wait_for(runtime.cancel(sent.id), WAIT_S)
    assert cancelled.status == "cancelled"
    let_go.set()
