"""Turns after a crash, a restart or a stop: resumed, marked, or handled as the tool declares."""

import asyncio
from dataclasses import replace

import pytest

from sash import Runtime
from sash.errors import (
    SashError,
    StoreUnavailable,
)
from sash.stores.files.store import FilesStore
from sash.testing import FaultyStore, ScriptedModel, calling
from sash.values.sessions import SessionPolicy
from tests.runtime.policies import CAREFUL, OPEN
from tests.runtime.talk import WAIT_S, tool_results, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import ANY, tool


@pytest.mark.parametrize(
    ("safety", "happened", "runs", "expected"),
    [
        ("idempotent", True, 2, "did it"),
        ("verify", True, 1, "it is done"),
        ("verify", False, 2, "did it"),
        ("unsafe", True, 1, "outcome unknown"),
    ],
)
async def test_a_call_under_way_at_a_crash_is_handled_as_the_tool_declares(
    run, clock, safety, happened, runs, expected
):
    made, started, hang = [], asyncio.Event(), asyncio.Event()

    async def act(arguments, context):
        made.append(context.key)
        started.set()
        if len(made) == 1:
            await hang.wait()
        return "did it"

    async def verify(arguments, context):
        return "it is done" if happened else None

    verifier = verify if safety == "verify" else None
    acting = tool("act", act, safety=safety, verify=verifier)
    first = await run(calling("act", "c1"), "done", tools=[acting])
    session = await first.start_session()
    sent = await first.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await first.abandon_turns()
    clock.advance(31)
    second = await run("done", tools=[acting], store=first.store)
    assert (await second.await_continuation(sent.id)).status == "interrupted"
    await second.resume(sent.id)
    result = await second.await_continuation(sent.id, timeout_s=WAIT_S)
    assert result.status == "completed"
    [text] = [text for role, text in await transcript(second, session) if role == "tool"]
    assert text.startswith(expected)
    assert len(made) == runs
    assert len(set(made)) == 1


async def test_a_finished_call_is_never_repeated(run, make_store, clock):
    made = []
    act = tool("act", lambda a, c: made.append(c.key) or "did it")
    store = FaultyStore(make_store())
    first = await run(calling("act", "c1"), "lost", tools=[act], store=store)
    session = await first.start_session()
    store.fail("finish", StoreUnavailable("power cut"), times=99)
    sent = await first.send_message(session.id, "go")
    with pytest.raises(StoreUnavailable, match="power cut"):
        await first.await_continuation(sent.id, timeout_s=WAIT_S)
    assert (await first.store.get_continuation("local", sent.id)).status == "running"
    await first.close()
    store.heal()
    clock.advance(31)
    second = await run("done", tools=[act], store=store)
    await second.resume(sent.id)
    assert (await second.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
    assert len(made) == 1
    assert [t for _, t in await transcript(second, session)] == ["go", "", "did it", "done"]


async def test_a_turn_that_is_stopped_is_marked_with_what_it_has_done(run):
    gate = asyncio.Event()

    async def slow(arguments, context):
        await gate.wait()

    tools = [tool("quick", lambda a, c: "fine", safety="idempotent"), tool("slow", slow)]
    runtime = await run(calling("quick"), calling("slow", "second"), "x", tools=tools)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "go")
    async with asyncio.timeout(WAIT_S):
        while len((await runtime.await_continuation(sent.id, timeout_s=0)).steps) < 4:
            await asyncio.sleep(0)
        await runtime.drain()
    result = await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    assert result.status == "interrupted"
    assert "tool_result" in [step.type for step in result.steps]
    with pytest.raises(SashError, match="shutting down"):
        await runtime.send_message(session.id, "more")


async def test_a_turn_that_is_being_begun_when_it_stops_is_marked_and_not_lost(run, make_store):
    entered, go = asyncio.Event(), asyncio.Event()

    class Slow(FaultyStore):
        async def begin(self, *arguments, **options):
            entered.set()
            await go.wait()
            return await self._store.begin(*arguments, **options)

    runtime = await run("ok", store=Slow(make_store()))
    session = await runtime.start_session()
    sending = asyncio.create_task(runtime.send_message(session.id, "hi"))
    await asyncio.wait_for(entered.wait(), WAIT_S)
    draining = asyncio.create_task(runtime.drain())
    await asyncio.sleep(0)
    go.set()
    sent = await asyncio.wait_for(sending, WAIT_S)
    await draining
    assert (await runtime.await_continuation(sent.id, timeout_s=0)).status in ("interrupted", "completed")


async def test_a_queue_is_served_after_a_restart(run, make_store, clock):
    store, model = make_store(), WaitingModel("never said")
    first = await run(model=model, store=store)
    session = await first.start_session()
    running = await first.send_message(session.id, "one")
    queued = await first.send_message(session.id, "two", busy="enqueue")
    await first.close()
    clock.advance(31)
    second = await run("served", store=store)
    served = await second.await_continuation(queued.id, timeout_s=WAIT_S)
    assert served.response.final_message == "served"
    assert (await second.await_continuation(running.id, timeout_s=WAIT_S)).status == "interrupted"
    assert (await turn(second, session, "three")).status == "completed"


async def test_a_runtime_that_was_closed_can_be_opened_again(run, make_store):
    runtime = await run("one", "two", "three", store=make_store())
    session = await runtime.start_session()
    await runtime.close()
    await runtime.open()
    sent = [await runtime.send_message(session.id, str(n), busy="enqueue") for n in range(3)]
    results = [await runtime.await_continuation(c.id, timeout_s=WAIT_S) for c in sent]
    assert [r.status for r in results] == ["completed"] * 3


@pytest.mark.parametrize("change", ["gone", "schema", "policy", "careful", "redacted"])
async def test_an_unsafe_call_under_way_at_a_crash_is_unknown_whatever_has_changed_since(
    run, make_store, clock, change
):
    started = asyncio.Event()

    async def hang(arguments, context):
        started.set()
        await asyncio.Event().wait()

    async def never(arguments, context):
        raise AssertionError

    store = make_store()
    password = {"password": 12345678} if change == "redacted" else {}
    first = await run(calling("act", **password), tools=[tool("act", hang, action=True)], store=store)
    session = await first.start_session(policy=OPEN)
    sent = await first.send_message(session.id, "go")
    await asyncio.wait_for(started.wait(), WAIT_S)
    await first.close()
    clock.advance(31)
    schema = {"type": "object", "required": ["more"]} if change == "schema" else ANY
    tools = [] if change == "gone" else [tool("act", never, action=True, input_schema=schema)]
    second = await run("I cannot say.", tools=tools, store=store)
    if change in ("policy", "careful"):
        now = await second.get_session(session.id)
        policy = SessionPolicy() if change == "policy" else CAREFUL
        await second.store.save_session(replace(now, policy=policy))
    await second.resume(sent.id)
    assert (await second.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"
    assert [text[:15] for text in await tool_results(second, session)] == ["outcome unknown"]


async def test_what_is_to_be_resumed_is_also_if_the_process_died_after_marking_it(run, make_store, clock):
    store = make_store()
    first = await run(model=WaitingModel("never"), store=store)
    session = await first.start_session(policy=SessionPolicy(resume_interrupted=True))
    sent = await first.send_message(session.id, "hi")
    await first.close()
    clock.advance(31)
    await store.open()
    await store.interrupt_lost()
    await store.close()
    second = await run("resumed", store=store)
    result = await second.await_continuation(sent.id, timeout_s=WAIT_S)
    assert result.response.final_message == "resumed"


async def test_ids_go_on_behind_the_last_one_when_the_clock_was_set_back(run, make_store, clock):
    store = make_store()
    first = await run("ok", store=store)
    before = await first.start_session()
    await first.close()
    clock.advance(-86_400)
    second = await run("ok", store=store)
    after = await second.start_session()
    assert after.id > before.id


async def test_callers_are_told_when_the_runtime_is_closed_on_them(tmp_path):
    runtime = Runtime(FilesStore(tmp_path), ScriptedModel("ok"))
    await runtime.open()
    session = await runtime.start_session()
    sends = [asyncio.create_task(runtime.send_message(session.id, str(n), busy="enqueue")) for n in range(20)]
    await asyncio.sleep(0)
    await runtime.close()
    for result in await asyncio.gather(*sends, return_exceptions=True):
        assert not isinstance(result, BaseException) or isinstance(result, StoreUnavailable)
