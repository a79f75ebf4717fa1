"""Several processes on one store: cancellations, events, leases and takeovers."""

import asyncio

import pytest

import sash.engine.runtime
import sash.engine.worker
from sash import Runtime
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.sessions import SessionPolicy
from tests.runtime.talk import WAIT_S, said, turn
from tests.runtime.waiting_model import WaitingModel


async def test_a_turn_that_was_cancelled_elsewhere_leaves_no_trace_in_the_next_prompt(run):
    model = WaitingModel("first", "never heard", "third")
    runtime = await run(model=model)
    session = await runtime.start_session()
    model.go_on.set()
    await turn(runtime, session, "one")
    model.go_on.clear()
    model.asked.clear()
    lost = await runtime.send_message(session.id, "two")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.store.cancel("local", lost.id, "by another process")
    model.go_on.set()
    await turn(runtime, session, "three")
    assert said(model.requests[-1]) == ["one", "first", "three"]


@pytest.mark.parametrize("noticed", ["by the next write", "by the heartbeat"])
async def test_what_waits_goes_on_when_another_process_cancels_what_runs(tmp_path, noticed):
    path, model = tmp_path / "sash.db", WaitingModel("an answer", "an answer")
    async with Runtime(SqliteStore(path), model) as runtime:
        session = await runtime.start_session()
        running = await runtime.send_message(session.id, "one")
        queued = await runtime.send_message(session.id, "two", busy="enqueue")
        await asyncio.wait_for(model.asked.wait(), WAIT_S)
        other = Runtime(SqliteStore(path), ScriptedModel("x"))
        await other.store.open()
        await other.drain()  # As one that is here for a moment: it runs no turn.
        await other.cancel(running.id)
        await other.close()
        if noticed == "by the heartbeat":
            await runtime.heartbeat()
        model.go_on.set()
        served = await runtime.await_continuation(queued.id, timeout_s=WAIT_S)
        assert served.response.final_message == "an answer"
        assert (await runtime.await_continuation(running.id, timeout_s=WAIT_S)).status == "cancelled"


async def test_what_another_process_writes_is_heard(tmp_path, monkeypatch):
    monkeypatch.setattr(sash.engine.event_feed, "POLL_S", 0.01)
    path = tmp_path / "sash.db"
    async with (
        Runtime(SqliteStore(path), ScriptedModel("a")) as a,
        Runtime(SqliteStore(path), ScriptedModel("b")) as b,
    ):
        session = await a.start_session()
        stream = a.events(session.id)
        heard = asyncio.create_task(anext(stream))
        await turn(b, session)
        event = await asyncio.wait_for(heard, WAIT_S)
        assert event.payload["final_response"]["final_message"] == "b"
        await stream.aclose()


async def test_the_last_event_is_heard_when_another_process_ends_the_session_while_it_is_read(
    tmp_path, monkeypatch
):
    path = tmp_path / "sash.db"
    async with (
        Runtime(SqliteStore(path), ScriptedModel("a")) as a,
        Runtime(SqliteStore(path), ScriptedModel("b")) as b,
    ):
        session = await a.start_session()
        read, over = a.store.events, False

        async def while_it_is_read(*args, **options):
            nonlocal over
            found = await read(*args, **options)
            if not over:
                over = True
                await turn(b, session)
                await b.end_session(session.id)
            return found

        monkeypatch.setattr(a.store, "events", while_it_is_read)
        async with asyncio.timeout(WAIT_S):
            assert [event.type async for event in a.events(session.id)] == ["final"]


async def test_who_takes_nothing_over_marks_what_is_lost(tmp_path):
    path, model = tmp_path / "sash.db", WaitingModel("never said")
    first = Runtime(SqliteStore(path), model)
    await first.open()
    session = await first.start_session(policy=SessionPolicy(resume_interrupted=True))
    sent = await first.send_message(session.id, "one")
    queued = await first.send_message(session.id, "two", busy="enqueue")
    await first.close()
    second = Runtime(SqliteStore(path), ScriptedModel("by another model"))
    await second.open(recover=False)
    statuses = [(await second.store.get_continuation("local", c.id)).status for c in (sent, queued)]
    assert statuses == ["interrupted", "pending"]
    await second.close()


async def test_a_live_turn_of_another_process_is_left_alone(tmp_path):
    path, model = tmp_path / "sash.db", WaitingModel("done")
    first = Runtime(SqliteStore(path), ScriptedModel("x"))
    await first.open()
    second = Runtime(SqliteStore(path), model)
    await second.open()
    session = await second.start_session()
    sent = await second.send_message(session.id, "hi")
    assert await first.recover() == []
    await first.close()
    async with Runtime(SqliteStore(path), ScriptedModel("x")) as third:
        assert await third.recover() == []
        model.go_on.set()
        assert (await second.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
    await second.close()


async def test_what_a_dead_process_ran_is_interrupted_at_once_by_one_that_is_alone(tmp_path):
    path, model = tmp_path / "sash.db", WaitingModel("never")
    first = Runtime(SqliteStore(path), model)
    await first.open()
    session = await first.start_session()
    sent = await first.send_message(session.id, "hi")
    await first.close()
    async with Runtime(SqliteStore(path), ScriptedModel("x")) as second:
        assert (await second.store.get_continuation("local", sent.id)).status == "interrupted"


async def test_a_stalled_process_does_not_run_its_own_turn_twice(run, clock):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session(policy=SessionPolicy(resume_interrupted=True))
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    clock.advance(1000)
    assert await runtime.recover() == []
    model.go_on.set()
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
    assert len(model.requests) == 1


async def test_many_processes_may_open_a_new_database_at_once(tmp_path):
    stores = [SqliteStore(tmp_path / "sash.db") for _ in range(10)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        await store.close()
