"""What once went wrong: crashes, odd tools, odd models, odd input, several processes."""

import asyncio
import json
import shutil
from dataclasses import replace

import pytest

import sash.engine.runtime
import sash.engine.worker
from sash import Runtime
from sash.engine.redaction import MARK
from sash.errors import InvalidExport, InvalidInput, SashError, SessionEnded, ShuttingDown, StoreUnavailable
from sash.ports.tools import ToolSpec
from sash.stores.files.store import FilesStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel, both, calling
from sash.values.sessions import Budgets, ModelConfig, SessionPolicy, WindowLimits
from tests.runtime.talk import said

WAIT_S = 10
ANY = {"type": "object"}
OPEN = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
CAREFUL = replace(OPEN, require_confirmation=("*",))


def tool(name, invoke, **options):
    return ToolSpec(name, name, options.pop("input_schema", ANY), invoke, **options)


async def turn(runtime, session, message="hi", **options):
    sent = await runtime.send_message(session.id, message, **options)
    return await runtime.await_continuation(sent.id, timeout_s=WAIT_S)


async def tool_results(runtime, session):
    stored = await runtime.store.messages("local", session.id)
    return [m.message.text for m in stored if m.message.role == "tool"]


class WaitingModel(ScriptedModel):
    """Waits before each answer, until it is told to go on."""

    def __init__(self, *lines):
        super().__init__(*lines)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request):
        self.asked.set()
        await self.go_on.wait()
        async for delta in super().stream(request):
            yield delta


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
    await runtime.import_session(export, owner="bob")
    sent = await runtime.send_message(session.id, "hi", owner="bob")
    await runtime.await_continuation(sent.id, owner="bob", timeout_s=WAIT_S)
    request = runtime.model.requests[-1]
    assert "secret plan" not in json.dumps(request.messages)
    assert "edited" in json.dumps(request.messages)


def tampered(export, what):
    bad = "../../evil"
    match what:
        case "session":
            return json.loads(json.dumps(export).replace(export["session"]["id"], bad))
        case "continuation":
            return json.loads(json.dumps(export).replace(export["continuations"][0]["id"], bad))
        case "orphan":
            export["messages"] = export["messages"][2:]
            for n, stored in enumerate(export["messages"], 1):
                stored["position"] = n
        case "order":
            export["messages"].reverse()
        case "twice":
            export["steps"].append(export["steps"][0])
        case "stranger":
            export["steps"][0]["continuation_id"] = export["session"]["id"]
        case "shape":
            export["messages"] = {"a": 1}
        case "format":
            export["format"] = "other"
    return export


@pytest.mark.parametrize(
    "what", ["session", "continuation", "orphan", "order", "twice", "stranger", "shape", "format"]
)
async def test_an_export_that_was_tampered_with_is_refused(run, what, tmp_path):
    async def look(arguments, context):
        return "fine"

    runtime = await run(calling("look"), "done", tools=[tool("look", look)])
    session = await runtime.start_session()
    await turn(runtime, session)
    export = await runtime.export_session(session.id)
    await runtime.erase()
    before = sorted(tmp_path.parent.rglob("*"))
    with pytest.raises(InvalidExport):
        await runtime.import_session(tampered(export, what))
    assert (await runtime.list_sessions()).items == ()
    assert not [
        path for path in sorted(tmp_path.parent.rglob("*")) if "evil" in path.name and path not in before
    ]


async def test_a_turn_that_was_exported_while_it_ran_is_interrupted_where_it_is_imported(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    export = await runtime.export_session(session.id)
    await runtime.erase()
    model.go_on.set()
    await runtime.import_session(export)
    await runtime.resume(sent.id)
    assert (await runtime.await_continuation(sent.id, timeout_s=WAIT_S)).status == "completed"


async def test_a_secret_argument_is_not_made_up_after_an_approval(run):
    given = []

    async def unlock(arguments, context):
        given.append(arguments)

    runtime = await run(
        calling("unlock", password="hunter2x"),
        "I need the password.",
        tools=[tool("unlock", unlock, action=True)],
    )
    session = await runtime.start_session(policy=CAREFUL)
    waiting = await turn(runtime, session)
    assert waiting.status == "awaiting_approval"
    await runtime.approve(waiting.continuation.id, "call")
    result = await runtime.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    assert given == []
    assert [a.outcome for a in result.response.actions] == ["denied"]
    assert MARK in (await tool_results(runtime, session))[0]


async def test_tools_that_are_off_stay_off(run):
    async def never(arguments, context):
        raise AssertionError

    runtime = await run(calling("look"), "sorry", tools=[tool("look", never)])
    session = await runtime.start_session()
    result = await turn(runtime, session, allow_tools=False)
    assert result.response.final_message == "sorry"
    assert (await tool_results(runtime, session))[0].startswith("not done: tools are off")


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


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, GeneratorExit])
async def test_a_tool_that_ends_like_a_task_has_failed(run, error, parallel):
    async def odd(arguments, context):
        raise error

    async def fine(arguments, context):
        return "fine"

    calls = both(calling("odd", "a"), calling("fine", "b")) if parallel else calling("odd", "a")
    runtime = await run(calls, "done", tools=[tool("odd", odd), tool("fine", fine)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert (await tool_results(runtime, session))[0] == f"failed: RuntimeError: ended by {error.__name__}"


async def test_a_model_that_ends_like_a_task_fails_the_turn(run):
    class Model:
        async def stream(self, request):
            raise asyncio.CancelledError
            yield

    runtime = await run(model=Model())
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "failed"


async def test_results_and_errors_of_any_kind_are_results(run):
    circle = []
    circle.append(circle)
    results = iter([circle, {(1, 2): 3}, None, object, "\ud800 lone", ValueError("x" * 20_000)])

    def odd(arguments, context):
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    calls = [calling("odd", f"c{n}", content="\udfff") for n in range(6)]
    runtime = await run(*calls, "done", tools=[tool("odd", odd)])
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    texts = await tool_results(runtime, session)
    assert [text[:8] for text in texts[:3]] == ["[[...]]", "{(1, 2):", "null"]
    assert texts[4] == "? lone"
    assert all(len(text) < 2_000 for text in texts)


async def test_a_call_without_a_name_is_answered(run):
    runtime = await run(calling(""), "done")
    session = await runtime.start_session()
    assert (await turn(runtime, session)).status == "completed"
    assert (await tool_results(runtime, session))[0].startswith("there is no tool unnamed")


async def test_an_action_that_the_time_budget_cut_off_is_unknown(run):
    async def hang(arguments, context):
        await asyncio.Event().wait()

    runtime = await run(calling("act"), tools=[tool("act", hang, action=True)])
    session = await runtime.start_session(policy=OPEN, budgets=Budgets(max_duration_ms=50))
    result = await turn(runtime, session)
    assert result.response.stopped_by == "max_duration_ms"
    assert [a.outcome for a in result.response.actions] == ["unknown"]
    assert (await tool_results(runtime, session))[0].startswith("outcome unknown")


async def test_a_session_may_have_more_than_the_default_budget(run):
    async def look(arguments, context):
        return "more"

    model = ScriptedModel(*[calling("look")] * 12, "done")
    runtime = await run(model=model, tools=[tool("look", look, safety="idempotent")])
    session = await runtime.start_session(budgets=Budgets(max_steps=20))
    assert (await turn(runtime, session)).response.final_message == "done"
    assert len(model.requests) == 13


async def test_calls_beyond_the_budget_are_not_made_and_end_the_turn(run):
    made = []

    async def look(arguments, context):
        made.append(context.call_id)

    calls = both(*(calling("look", f"c{n}") for n in range(5)))
    runtime = await run(calls, "never asked", tools=[tool("look", look)])
    session = await runtime.start_session(budgets=Budgets(max_tool_calls=3))
    result = await turn(runtime, session)
    assert (sorted(made), result.response.stopped_by) == (["c0", "c1", "c2"], "max_tool_calls")


async def test_two_approvals_survive_a_restart_between_them(run, make_store, clock):
    made = []

    async def act(arguments, context):
        made.append(context.call_id)

    store, acting = make_store(), tool("act", act, action=True)
    first = await run(both(calling("act", "a"), calling("act", "b")), "done", tools=[acting], store=store)
    session = await first.start_session(policy=CAREFUL)
    waiting = await turn(first, session)
    await first.approve(waiting.continuation.id, "a")
    assert (
        await first.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)
    ).status == "awaiting_approval"
    await first.close()
    clock.advance(31)
    second = await run("done", tools=[acting], store=store)
    await second.approve(waiting.continuation.id, "b")
    assert (await second.await_continuation(waiting.continuation.id, timeout_s=WAIT_S)).status == "completed"
    assert made == ["a", "b"]


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


@pytest.mark.parametrize("end", ["erase", "end", "close"])
async def test_who_listens_is_told_that_it_is_over(run, end):
    runtime = await run("ok")
    session = await runtime.start_session()
    await turn(runtime, session)

    async def listen():
        return [event async for event in runtime.events(session.id)]

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(WAIT_S):
        while not runtime.count_subscribers(session.id):
            await asyncio.sleep(0)
        await {
            "erase": runtime.erase,
            "end": lambda: runtime.end_session(session.id),
            "close": runtime.close,
        }[end]()
        await listening


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


async def test_who_listens_is_told_of_a_turn_that_is_put_down(run):
    model = WaitingModel("never said")
    runtime = await run(model=model)
    session = await runtime.start_session()
    heard = asyncio.create_task(_all_events(runtime, session))
    await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.drain()
    [event] = await asyncio.wait_for(heard, WAIT_S)
    assert event.payload["step"]["detail"] == {"event": "interrupted"}
    with pytest.raises(ShuttingDown):
        await runtime.record_turn(session.id, "late", "too late")


async def _all_events(runtime, session):
    return [event async for event in runtime.events(session.id)]


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


async def test_many_processes_may_open_a_new_database_at_once(tmp_path):
    stores = [SqliteStore(tmp_path / "sash.db") for _ in range(10)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        await store.close()


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolSpec("", "no name", ANY, print),
        lambda: ToolSpec("f", "no function", ANY, None),
        lambda: ToolSpec("f", "a typo", ANY, print, safety="Unsafe"),
        lambda: ToolSpec("f", "no verify", ANY, print, safety="verify"),
        lambda: SessionPolicy(allowlisted_services="light.*"),
        lambda: SessionPolicy(allow_actuation="no"),
        lambda: ModelConfig(temperature="hot"),
        lambda: ModelConfig(name=""),
        lambda: WindowLimits(max_turns=0),
    ],
)
def test_values_that_would_fail_open_are_refused(make):
    with pytest.raises(SashError):
        make()


@pytest.mark.parametrize("schema", [None, "x", {"type": "nothing"}, {"type": "string", "pattern": "("}])
def test_a_tool_with_a_wrong_schema_is_refused(schema):
    with pytest.raises(InvalidInput, match="schema of tool f"):
        Runtime(
            SqliteStore("unused.db"),
            ScriptedModel("x"),
            [ToolSpec("f", "f", schema, print)],
            clock=FakeClock(),
        )


async def test_odd_options_start_no_session(run):
    runtime = await run("ok")
    for options in ({"model": "gpt-4"}, {"budgets": 5}, {"window": 4000}):
        with pytest.raises(InvalidInput):
            await runtime.start_session(**options)
    with pytest.raises(InvalidInput, match="secret"):
        session = await runtime.start_session()
        await runtime.send_message(session.id, "hi", idempotency_key="api_key=abcdefgh")
    with pytest.raises(SashError):
        await runtime.list_sessions(limit=0)
    session = await runtime.start_session(
        model=ModelConfig(options={"api_key": "sk-abcdefghijklmnopqrstuvwx"})
    )
    assert session.model.options == {"api_key": MARK}
