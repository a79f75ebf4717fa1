"""Turns: sent, run, streamed, cancelled, queued, bounded, approved, resumed and retried."""

import asyncio
import json
from dataclasses import replace

import pytest

from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
    ModelKeyRefused,
    ModelUnreachable,
    SashError,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    StoreUnavailable,
    WriteRefused,
)
from sash.ports.model import Usage
from sash.ports.tools import ToolSpec
from sash.testing import FaultyStore, ScriptedModel, both, calling
from sash.values.requests import Ask
from sash.values.sessions import Budgets, SessionPolicy, WindowLimits
from tests.runtime.talk import said

WAIT_S = 10
ANY = {"type": "object"}


def tool(name, invoke, **options):
    async def call(arguments, context):
        result = invoke(arguments, context)
        return await result if asyncio.iscoroutine(result) else result

    return ToolSpec(name, f"The tool {name}.", options.pop("input_schema", ANY), call, **options)


async def turn(runtime, session, message="hi", **options):
    sent = await runtime.send_message(session.id, message, **options)
    return await runtime.await_continuation(sent.id, timeout_s=WAIT_S)


async def transcript(runtime, session):
    stored = await runtime.store.messages("local", session.id)
    return [(m.message.role, m.message.text) for m in stored]


async def test_a_message_is_answered(run):
    runtime = await run("Hello there.")
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert (result.status, result.response.final_message) == ("completed", "Hello there.")
    assert await transcript(runtime, session) == [("user", "hi"), ("assistant", "Hello there.")]
    assert (await runtime.get_session(session.id)).stats.turns == 1


async def test_a_tool_is_called_and_its_result_goes_back_to_the_model(run):
    seen = []
    lamp = tool("lamp", lambda a, c: seen.append((a, c.key)) or {"is": "on"}, safety="idempotent")
    model = ScriptedModel(calling("lamp", "c1", room="kitchen"), "It is on.")
    runtime = await run(model=model, tools=[lamp])
    session = await runtime.start_session()
    result = await turn(runtime, session)
    assert result.response.final_message == "It is on."
    assert seen == [({"room": "kitchen"}, f"{result.continuation.id}:c1")]
    assert [step.type for step in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    assert model.requests[1].messages[-1] == {
        "role": "tool",
        "content": '{"is": "on"}',
        "tool_call_id": "c1",
        "name": "lamp",
    }
    assert model.requests[0].tools[0]["function"]["name"] == "lamp"
    roles = [role for role, _ in await transcript(runtime, session)]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_the_next_turn_sees_the_last_one(run):
    model = ScriptedModel("one", "two")
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    await turn(runtime, session, "second")
    assert said(model.requests[1]) == ["first", "one", "second"]


async def test_calls_of_one_step_run_at_once_and_are_kept_in_their_order(run):
    started, go = [], asyncio.Event()

    async def wait(arguments, context):
        started.append(arguments["n"])
        if len(started) == 3:
            go.set()
        await asyncio.wait_for(go.wait(), WAIT_S)
        return arguments["n"]

    calls = both(*(calling("wait", f"c{n}", n=n) for n in range(3)))
    runtime = await run(calls, "done", tools=[tool("wait", wait)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    results = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert results == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (calling("nothing"), "there is no tool nothing"),
        (calling("add", a="x"), "wrong arguments for add"),
        (calling("add", a=1, b="\ud800"), "wrong arguments for add"),
        (calling("add", a=1, b=2), "failed: ValueError: no"),
    ],
)
async def test_a_failing_call_is_a_result_for_the_model(run, call, expected):
    def fail(arguments, context):
        raise ValueError("no")

    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    runtime = await run(call, "I see.", tools=[tool("add", fail, input_schema=schema)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    [result] = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert result.startswith(expected)


async def test_a_result_that_breaks_its_schema_is_passed_on_and_logged(run, caplog):
    schema = {"type": "object", "required": ["on"]}
    lamp = tool("lamp", lambda a, c: {"off": True}, output_schema=schema)
    runtime = await run(calling("lamp"), "done", tools=[lamp])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert ("tool", '{"off": true}') in await transcript(runtime, session)
    assert "the result of tool lamp violates its output schema" in caplog.text
    with pytest.raises(InvalidInput, match="output schema of tool lamp"):
        await run(tools=[tool("lamp", None, output_schema={"type": "nothing"})])


async def test_a_large_result_is_kept_as_an_artifact(run):
    runtime = await run(calling("log"), "done", tools=[tool("log", lambda a, c: "line\n" * 10_000)])
    session = await runtime.start_session()
    result = await turn(runtime, session)
    [ref] = result.continuation.artifacts
    artifact = await runtime.store.get_artifact("local", ref.id)
    assert artifact.data == b"line\n" * 10_000
    [text] = [text for role, text in await transcript(runtime, session) if role == "tool"]
    assert len(text) < 2000
    assert json.loads(text)["artifact"] == ref.id


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


@pytest.mark.parametrize(
    ("budgets", "reached"),
    [
        (Budgets(max_steps=3), "max_steps"),
        (Budgets(max_duration_ms=50), "max_duration_ms"),
        (Budgets(max_tokens_per_turn=2000), "max_tokens_per_turn"),
    ],
)
async def test_a_budget_ends_the_turn_with_what_is_known(run, budgets, reached):
    async def slow(arguments, context):
        if reached == "max_duration_ms":
            await asyncio.Event().wait()
        return "more"

    look = replace(
        calling("look", content="Looking further."), usage=Usage(input_tokens=900, output_tokens=10)
    )
    model = ScriptedModel(look)
    runtime = await run(model=model, tools=[tool("look", slow)])
    session = await runtime.start_session(budgets=budgets)
    result = await turn(runtime, session)
    assert (result.status, result.response.stopped_by) == ("completed", reached)
    expected = {"max_steps": 3, "max_duration_ms": 1, "max_tokens_per_turn": 2}
    assert len(model.requests) == expected[reached]
    assert reached in result.response.final_message
    assert "Looking further." in result.response.final_message
    window = await runtime.store.window("local", session.id)
    calls = {call["id"] for m in window.messages for call in m.tool_calls}
    assert calls == {m.tool_call_id for m in window.messages if m.role == "tool"}


async def test_calls_over_the_budget_are_answered_not_made(run):
    made = []
    calls = both(*(calling("look", f"c{n}") for n in range(3)))
    runtime = await run(calls, calls, "done", tools=[tool("look", lambda a, c: made.append(c.call_id))])
    session = await runtime.start_session(budgets=Budgets(max_tool_calls=3))
    assert (await turn(runtime, session)).status == "completed"
    assert sorted(made) == ["c0", "c1", "c2"]


async def test_a_model_that_fails_fails_the_turn_and_leaves_the_window(run):
    runtime = await run("one", RuntimeError("no network"), "three")
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    failed = await turn(runtime, session, "second")
    assert (failed.status, failed.continuation.error.code) == ("failed", "internal_error")
    assert "no network" in failed.continuation.error.message
    await turn(runtime, session, "third")
    assert [text for _, text in await transcript(runtime, session)] == ["first", "one", "third", "three"]


LOCK = {"allow_actuation": True, "allowlisted_services": ("*",)}


async def test_actions_are_off_until_they_are_allowed(run):
    done = []
    light = tool("light", lambda a, c: done.append(a), action=True)
    for policy, outcome in (
        (SessionPolicy(), "denied"),
        (SessionPolicy(allow_actuation=True), "denied"),
        (SessionPolicy(**LOCK, denylisted_services=("light",)), "denied"),
        (SessionPolicy(**LOCK), "done"),
    ):
        runtime = await run(calling("light"), "ok", tools=[light])
        session = await runtime.start_session(policy=policy)
        result = await turn(runtime, session)
        assert [action.outcome for action in result.response.actions] == [outcome]
        await runtime.close()
    assert len(done) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_survives_a_restart(run, approved):
    done = []
    unlock = tool("lock.unlock", lambda a, c: done.append(a) or "open", action=True)
    policy = SessionPolicy(**LOCK, require_confirmation=("lock",))
    first = await run(calling("lock.unlock", "c1", door="front"), tools=[unlock])
    session = await first.start_session(policy=policy)
    waiting = await turn(first, session)
    assert waiting.status == "awaiting_approval"
    assert done == []
    with pytest.raises(SessionBusy):
        await first.send_message(session.id, "hello?")
    await first.close()

    second = await run("As you say.", tools=[unlock], store=first.store)
    assert (await second.await_continuation(waiting.continuation.id)).status == "awaiting_approval"
    with pytest.raises(InvalidInput, match="these do: c1"):
        await second.approve(waiting.continuation.id, "other")
    await second.approve(waiting.continuation.id, "c1", approved)
    result = await second.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert result.status == "completed"
    assert len(done) == approved
    assert [a.outcome for a in result.response.actions] == ["done" if approved else "denied"]


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


async def test_retry_runs_the_turn_again(run):
    runtime = await run(RuntimeError("no network"), "now it works")
    session = await runtime.start_session()
    failed = await turn(runtime, session, "hi")
    again = await runtime.retry(failed.continuation.id)
    result = await runtime.await_continuation(again.id, timeout_s=WAIT_S)
    assert result.response.final_message == "now it works"
    assert (again.retry_of, again.id) == (failed.continuation.id, result.continuation.id)
    assert await transcript(runtime, session) == [("user", "hi"), ("assistant", "now it works")]


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


async def test_a_fork_goes_its_own_way(run):
    runtime = await run(lambda request: "ok")
    session = await runtime.start_session()
    await turn(runtime, session, "shared")
    fork = await runtime.fork_session(session.id)
    await turn(runtime, fork, "only here")
    assert [t for _, t in await transcript(runtime, session)] == ["shared", "ok"]
    assert [t for _, t in await transcript(runtime, fork)] == ["shared", "ok", "only here", "ok"]


async def test_an_export_can_be_imported_by_another_owner(run):
    runtime = await run(calling("log"), "done", tools=[tool("log", lambda a, c: "x" * 9000)])
    session = await runtime.start_session()
    await turn(runtime, session, "find the word marmalade")
    data = json.loads(json.dumps(await runtime.export_session(session.id)))
    await runtime.erase()
    with pytest.raises(SessionNotFound):
        await runtime.get_session(session.id)
    imported = await runtime.import_session(data, owner="bob")
    assert imported.owner == "bob"
    assert len(await runtime.search("marmalade", owner="bob")) == 1
    assert await runtime.search("marmalade") == []
    for damaged in ({}, None, data | {"version": 2}, data | {"session": {}}, data | {"messages": [1]}):
        with pytest.raises(SashError):
            await runtime.import_session(damaged)


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
    assert [s.status for s in (await runtime.list_sessions()).items] == ["ended"]
    assert (await runtime.statistics())["total_requests"] == 1


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("", {}),
        (None, {}),
        ("\ud800", {}),
        ("x" * (2**20 + 1), {}),
        ("x", {"busy": "wait"}),
        ("x", {"max_steps": -1}),
        ("x", {"allow_tools": "yes"}),
        ("x", {"idempotency_key": ""}),
        ("x", {"planner_hints": ["not", "an", "object"]}),
        ("x", {"planner_hints": {"a": object()}}),
    ],
)
async def test_bad_input_starts_no_turn(run, message, options):
    runtime = await run("ok")
    session = await runtime.start_session()
    with pytest.raises(SashError):
        await runtime.send_message(session.id, message, **options)
    assert await runtime.store.list_continuations("local", session.id) == []


@pytest.mark.parametrize(
    "options",
    [
        lambda: {"owner": ""},
        lambda: {"preferences": {"a": object()}},
        lambda: {"preferences": {"a": float("nan")}},
        lambda: {"preferences": "dark mode"},
        lambda: {"budgets": Budgets(max_steps=-1)},
        lambda: {"budgets": Budgets(max_tokens_per_turn="many")},
        lambda: {"window": WindowLimits(max_tokens=0)},
        lambda: {"window": WindowLimits(evict_to=2)},
    ],
)
async def test_bad_input_starts_no_session(run, options):
    runtime = await run("ok")
    with pytest.raises(SashError):
        await runtime.start_session(**options())
    assert (await runtime.list_sessions()).items == ()


async def test_what_does_not_exist_is_said_not_to(run):
    runtime = await run("ok")
    with pytest.raises(SessionNotFound):
        await runtime.send_message("nowhere", "hi")
    with pytest.raises(ContinuationNotFound):
        await runtime.await_continuation("nothing", timeout_s=1)


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


async def test_who_counts_turns_is_told_of_cancelled_ones_and_stops_nothing(run):
    told, gate = [], asyncio.Event()

    async def slow(arguments, context):
        await gate.wait()

    def count(result):
        told.append(result.status)
        raise RuntimeError("no room for numbers")

    runtime = await run(calling("slow"), "ok", tools=[tool("slow", slow)], on_turn=count)
    session = await runtime.start_session()
    first = await runtime.send_message(session.id, "one")
    second = await runtime.send_message(session.id, "two", busy="enqueue")
    await runtime.cancel(first.id)
    assert (await runtime.await_continuation(second.id, timeout_s=WAIT_S)).status == "completed"
    assert told == ["cancelled", "completed"]
