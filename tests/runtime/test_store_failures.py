"""Stores that cannot be read or written."""

import asyncio
import shutil
from dataclasses import replace

import pytest

from sash import Runtime
from sash.errors import (
    SashError,
    StoreUnavailable,
    WriteRefused,
)
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FaultyStore, ScriptedModel, calling
from tests.runtime.talk import WAIT_S, said, transcript, turn
from tests.tools import tool


@pytest.mark.parametrize("safety", ["unsafe", "idempotent"])
async def test_a_write_that_fails_behind_the_turn_ends_it_with_its_cause(run, make_store, safety):
    made = []

    async def take_a_while(arguments, context):
        for _ in range(5):
            await asyncio.sleep(0)
        made.append(context.key)

    store, model = FaultyStore(make_store()), ScriptedModel(calling("act"), "all is done")
    runtime = await run(model=model, tools=[tool("act", take_a_while, safety=safety)], store=store)
    session = await runtime.start_session()
    store.fail("append", StoreUnavailable("disk full"))
    sent = await runtime.send_message(session.id, "go")
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (result.status, result.continuation.error.message) == ("failed", "disk full")
    assert len(made) == (0 if safety == "unsafe" else 1)
    assert len(model.requests) == 1, "a turn that cannot be written costs no more"
    assert await transcript(runtime, session) == []
    sent = await runtime.send_message(session.id, "again")
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"


async def test_steps_are_on_the_disk_while_the_model_still_thinks(run, make_store):
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Model(ScriptedModel):
        async def stream(self, request):
            if self.requests:
                asked.set()
                await go_on.wait()
            async for delta in super().stream(request):
                yield delta

    look = tool("look", lambda a, c: "fine", safety="idempotent")
    runtime = await run(model=Model(calling("look"), "done"), tools=[look])
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "go")
    await asyncio.wait_for(asked.wait(), WAIT_S)
    async with asyncio.timeout(WAIT_S):
        while len((await runtime.store.journal("local", sent.id))[1]) < 3:
            await asyncio.sleep(0)
    go_on.set()
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert [step.type for step in result.steps] == ["plan", "tool_call", "tool_result", "summary"]


async def test_an_end_that_could_not_be_written_is_written_when_it_can(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run("one", "two", store=store)
    session = await runtime.start_session()
    store.fail("finish", StoreUnavailable("disk full"), times=99)
    sent = await runtime.send_message(session.id, "go")
    for attempt in (
        runtime.await_continuation(sent.id, timeout_s=WAIT_S),
        runtime.send_message(session.id, "again"),
        runtime.heartbeat(),
    ):
        with pytest.raises(StoreUnavailable, match="disk full"):
            await attempt
    queued = await runtime.send_message(session.id, "later", busy="enqueue")
    store.heal()
    await runtime.heartbeat()
    assert (await runtime.await_continuation(queued.id, timeout_s=WAIT_S)).status == "completed"
    assert (await turn(runtime, session, "again")).status == "completed"
    ended = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (ended.status, ended.response.final_message) == ("completed", "one"), "it was paid for"
    assert [text for _, text in await transcript(runtime, session)][:2] == ["go", "one"]
    assert runtime.unwritten_ends == 0
    assert len(runtime.model.requests) == 3


async def test_an_end_that_is_written_at_the_last_moment(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run("one", store=store)
    session = await runtime.start_session()
    store.fail("finish", StoreUnavailable("disk full"), times=2)
    sent = await runtime.send_message(session.id, "go")
    with pytest.raises(StoreUnavailable):
        await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    await runtime.drain()
    assert (await store.get_continuation("local", sent.id)).status == "completed"


async def test_an_end_that_is_refused_later_holds_up_nobody(run, make_store, clock):
    store = FaultyStore(make_store())
    runtime = await run("one", "two", store=store)
    session = await runtime.start_session()
    store.fail("finish", StoreUnavailable("disk full"))
    await runtime.send_message(session.id, "go")
    await runtime.wait_for_turns()
    store.fail("finish", WriteRefused("no such text"))
    await runtime.heartbeat()
    assert runtime.unwritten_ends == 0
    clock.advance(31)
    await runtime.recover()
    assert (await turn(runtime, session, "again")).status == "completed"


async def test_an_answer_that_the_store_refuses_is_a_failure_of_its_turn(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run("one", "two", store=store)
    session = await runtime.start_session()
    store.fail("finish", WriteRefused("no such text"), times=1)
    failed = await turn(runtime, session, "go")
    assert (failed.status, failed.continuation.error.code) == ("failed", "store_unavailable")
    assert (await turn(runtime, session, "again")).response.final_message == "two"


async def test_what_could_not_be_written_is_not_in_the_next_prompt(run, make_store, clock):
    store, model = FaultyStore(make_store()), ScriptedModel("one", "lost", "three")
    runtime = await run(model=model, store=store)
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    store.fail("finish", StoreUnavailable("power cut"))
    await runtime.send_message(session.id, "unlucky")
    await runtime.wait_for_turns()
    clock.advance(31)
    await store.interrupt_lost()  # As another process does, which has the store to itself.
    assert (await turn(runtime, session, "third")).status == "completed"
    assert said(model.requests[-1]) == ["first", "one", "third"]


async def test_a_store_that_cannot_be_written_fails_the_call_and_not_the_process(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run("ok", store=store)
    session = await runtime.start_session()
    store.fail("begin", StoreUnavailable("disk full"))
    with pytest.raises(StoreUnavailable):
        await runtime.send_message(session.id, "hi")
    store.fail("finish", StoreUnavailable("disk full"))
    assert (await turn(runtime, session, "hi")).status == "completed", "by the second attempt"
    assert (await turn(runtime, session, "again")).status == "completed"
    assert [t for _, t in await transcript(runtime, session)] == ["hi", "ok", "again", "ok"]


@pytest.mark.parametrize("then", ["moved", "deleted", "replaced"])
async def test_nothing_is_accepted_when_the_file_is_gone(tmp_path, then):
    folder = tmp_path / "data"
    async with Runtime(SqliteStore(folder / "sash.db"), ScriptedModel("ok", "ok")) as runtime:
        session = await runtime.start_session()
        await turn(runtime, session)
        folder.rename(tmp_path / "away")
        if then == "replaced":
            shutil.copytree(tmp_path / "away", folder)
        if then == "deleted":
            shutil.rmtree(tmp_path / "away")
        for attempt in (
            runtime.send_message(session.id, "lost?"),
            runtime.start_session(),
            runtime.get_session(session.id),
            runtime.check(),
        ):
            with pytest.raises(StoreUnavailable, match="is not there any more"):
                await attempt
        if then == "moved":
            (tmp_path / "away").rename(folder)
            assert (await turn(runtime, session)).status == "completed"


async def test_one_bad_job_does_not_fail_those_beside_it(tmp_path):
    async with Runtime(SqliteStore(tmp_path / "sash.db"), ScriptedModel("ok")) as runtime:
        session = await runtime.start_session()
        await turn(runtime, session)
        bundle = await runtime.store.export_session("local", session.id)
        thief = replace(bundle, session=replace(session, id=session.id[:-1] + "0", owner="mallory"))
        results = await asyncio.gather(
            *(runtime.start_session() for _ in range(20)),
            runtime.store.import_session(thief),
            runtime.store.cancel(object(), object(), "odd"),
            return_exceptions=True,
        )
        assert [isinstance(r, SashError) for r in results] == [False] * 20 + [True] * 2


async def test_a_write_while_the_store_closes_is_refused_or_done(tmp_path):
    store = SqliteStore(tmp_path / "sash.db")
    async with Runtime(store, ScriptedModel("ok")) as runtime:
        session = await runtime.start_session()
    await store.open()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(store.save_session(session), WAIT_S)
    await closing


async def test_a_store_that_cannot_be_taken_stock_of_is_closed_again(tmp_path):
    class Broken(FilesStore):
        async def interrupt_lost(self):
            raise StoreUnavailable("broken")

    with pytest.raises(StoreUnavailable):
        await Runtime(Broken(tmp_path), ScriptedModel("ok")).open()
    async with Runtime(FilesStore(tmp_path), ScriptedModel("ok")) as runtime:
        await runtime.start_session()
