"""A hostile export neither stops the store nor gets in with a value that a store cannot use."""

import copy
import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sash import Runtime
from sash.errors import InvalidExport, SashError, SessionExists
from sash.server.http_errors import get_status
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.bounds import MAX_COUNT, MAX_STORED_COUNT
from sash.values.sessions import SessionPolicy, WindowLimits
from sash.values.validation import MAX_DOLLARS
from tests.backends import BACKENDS
from tests.runtime.talk import WAIT_S, turn
from tests.tools import tool

LATEST_ULID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
GONE = object()
VALUES = [
    GONE,
    None,
    True,
    -1,
    MAX_COUNT + 1,
    MAX_STORED_COUNT,
    2**63,
    10**30,
    1.5,
    1e308,
    "",
    "x" * 3000,
    LATEST_ULID,
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00",
    "\ud800",
    "running",
    "completed",
    "awaiting_approval",
    [],
    {},
    [[]],
    {"a": {"b": 1}},
]
# The least and the greatest values that an import accepts, and values between them.
NUMBERS = (0, 1, MAX_DOLLARS, MAX_COUNT)
TIMES = ("1970-01-01T00:00:00Z", "2026-05-02T00:00:00Z")
STATUSES = ("pending", "running", "interrupted", "awaiting_approval", "completed", "cancelled")
MAX_CHANGES = 6


async def make_export(runtime):
    """Return the export of a session with all kinds of records."""
    session = await runtime.start_session(
        window=WindowLimits(max_tokens=150),
        name="den",
        policy=SessionPolicy(),
        preferences={"language": "en"},
    )
    await runtime.remember("The cat is called Mia.", session_id=session.id)
    await runtime.pin("Speak plainly.", session_id=session.id)
    for message in ("first question", "look at the log", "what is new?"):
        await turn(runtime, session, message, metadata={"from": "a test"})
    await turn(runtime, session, "stop in the middle")
    export = json.loads(json.dumps(await runtime.export_session(session.id)))
    assert export["evicted"] and export["artifacts"] and export["session"]["memory"]["cut_at"]
    interrupt_last_turn(export)
    return export


def interrupt_last_turn(export):
    """Make the last turn an interrupted one, which has no messages yet."""
    last = export["continuations"][-1]
    last |= {"status": "interrupted", "response": None, "stats": None}
    gone = {m["message"]["id"] for m in export["messages"] if m["continuation_id"] == last["id"]}
    export["messages"] = [m for m in export["messages"] if m["message"]["id"] not in gone]
    export["turn_starts"] = [start for start in export["turn_starts"] if start not in gone]
    export["steps"] = [s for s in export["steps"] if s["continuation_id"] != last["id"]]


def open_runtime(backend, folder, clock):
    model = ScriptedModel("ok", calling("log", content="I look."), "seen", "nothing", "stopped")
    tools = [tool("log", lambda arguments, context: "line " * 4000)]
    return Runtime(BACKENDS[backend](folder, clock), model, tools, clock=clock)


def list_paths(value, path=()):
    """Return the paths of all fields; of a list only those of its first and last item."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from list_paths(item, (*path, key))
    elif isinstance(value, list) and value:
        for index in {0, len(value) - 1}:
            yield from list_paths(value[index], (*path, index))


def change(export, path, value):
    changed = copy.deepcopy(export)
    *parents, last = path
    place = changed
    for key in parents:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return changed


def list_bounds(path, value):
    """Return the values at the bounds of a field, or nothing if the field has no bounds."""
    if path[-1] == "status":
        return STATUSES
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NUMBERS
    is_time = isinstance(value, str) and path[-1] in ("created_at", "updated_at", "cut_at", "ts", "timestamp")
    return TIMES if is_time else ()


def find(export, path):
    for key in path:
        export = export[key]
    return export


def sample_exports(export, count):
    """Yield changed exports, each with its changes: any values in one field, or bounds in several fields."""
    chosen = random.Random(7)
    paths = [path for path in list_paths(export) if path]
    bounds = {path: list_bounds(path, find(export, path)) for path in paths}
    bounded = [path for path in paths if bounds[path]]
    for n in range(count):
        if n % 2:
            changes = {chosen.choice(paths): chosen.choice(VALUES)}
        else:
            some = chosen.sample(bounded, chosen.randint(1, MAX_CHANGES))
            changes = {path: chosen.choice(bounds[path]) for path in some}
        changed = export
        for path, value in changes.items():
            changed = change(changed, path, value)
        yield changes, changed


async def read_all(runtime, session_id):
    """Use everything that reads the records of a session, as the surfaces do."""
    await runtime.get_session(session_id)
    await runtime.list_sessions()
    await runtime.list_messages(session_id)
    await runtime.list_turns(session_id)
    await runtime.context_report(session_id)
    await runtime.search("question")
    await runtime.statistics()
    for open_turn in await runtime.open_continuations(session_id):
        _ = (await runtime.await_continuation(open_turn.id, timeout_s=0)).waiting_calls
    await runtime.export_session(session_id)


async def use(runtime, session_id, n=0):
    """Read a session, resume, cancel or leave its open turns, send a message, and read it again."""
    await read_all(runtime, session_id)
    for open_turn in await runtime.open_continuations(session_id):
        if n % 3 == 0:
            await run_to_end(runtime, runtime.resume(open_turn.id))
        elif n % 3 == 1:
            await run_to_end(runtime, runtime.cancel(open_turn.id))
    await run_to_end(runtime, runtime.send_message(session_id, "one more question"))
    await read_all(runtime, session_id)


async def list_said(runtime, session_id):
    return [stored.message.text for stored in await runtime.list_messages(session_id)]


async def run_to_end(runtime, started):
    """Wait for a turn. A refusal is allowed, a failure of the server is not."""
    try:
        turn_id = (await started).id
        ended = await runtime.await_continuation(turn_id, timeout_s=WAIT_S)
    except SashError as error:
        assert get_status(error.code) < 500, error
    else:
        assert ended.status != "running"
        assert ended.continuation.error is None or ended.continuation.error.code != "internal_error"


@pytest.mark.parametrize(("backend", "count"), [("memory", 500), ("sqlite", 250), ("files", 250)])
async def test_no_changed_fields_of_an_export_stop_the_store(backend, count, tmp_path):
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with open_runtime(backend, tmp_path, clock) as runtime:
        export = await make_export(runtime)
    del export["signature"]  # so that each import gets new ids
    accepted, refused, kept = 0, 0, {}
    store = BACKENDS[backend](tmp_path, clock)
    async with Runtime(store, ScriptedModel("ok"), clock=clock) as runtime:
        for changes, changed in sample_exports(export, count):
            try:
                imported = await runtime.import_session(changed)
            except SashError as error:
                assert isinstance(error, InvalidExport), f"{changes!r:.300}: {error}"
                refused += 1
                continue
            accepted += 1
            try:
                await use(runtime, imported.id, accepted)
                if accepted % 4:
                    await runtime.delete_session(imported.id)
                else:
                    kept[imported.id] = await list_said(runtime, imported.id)
            except Exception as error:
                pytest.fail(f"{changes!r:.300}: {type(error).__name__}: {error}")
    assert accepted > count / 5 and refused > count / 5
    for n in range(2):
        clock.advance(10)
        async with Runtime(store, ScriptedModel("ok"), clock=clock) as runtime:
            await runtime.sweep()
            assert kept.keys() <= {session.id for session in (await runtime.list_sessions(limit=500)).items}
            for session_id, said in kept.items():
                assert await list_said(runtime, session_id) == said
                await use(runtime, session_id, n)
                kept[session_id] = await list_said(runtime, session_id)
            new = await runtime.start_session()
            assert (await turn(runtime, new, "still here?")).status == "completed"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_an_export_keeps_its_ids_only_if_this_store_made_it_for_this_owner(backend, tmp_path):
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with open_runtime(backend, tmp_path / "one", clock) as runtime:
        export = await make_export(runtime)
        session_id = export["session"]["id"]
        with pytest.raises(SessionExists):
            await runtime.import_session(export)
        for_bob = await runtime.import_session(export, owner="bob")
        assert for_bob.id != session_id
        # An id that exists at another owner, and one that does not exist, look the same.
        unknown = session_id[:-4] + "0000"
        for claimed in (session_id, unknown):
            forged = json.loads(json.dumps(export).replace(session_id, claimed))
            forged["session"]["owner"] = "bob"
            assert (await runtime.import_session(forged, owner="bob")).id not in (session_id, unknown)
        await runtime.delete_session(session_id)
        assert (await runtime.import_session(export)).id == session_id
        artifact_id = export["artifacts"][0]["ref"]["id"]
        assert (await runtime.get_artifact(artifact_id)).ref.id == artifact_id
    async with open_runtime(backend, tmp_path / "two", clock) as other:
        moved = await other.import_session(export)
        assert moved.id != session_id
        again = json.dumps(await other.export_session(moved.id))
        assert session_id not in again and artifact_id not in again


@pytest.mark.parametrize(
    "change_memory",
    [
        {"facts": [{"id": "a", "text": "x" * 1_000_000, "created_at": "2026-01-01T00:00:00Z"}] * 20},
        {"pins": [{"id": "a", "text": "x", "created_at": "2026-01-01T00:00:00Z"}] * 200_000},
        {"digest": "x" * 1_000_000},
        {"summary": "x" * 1_000_000},
    ],
    ids=["facts", "pins", "digest", "summary"],
)
async def test_an_export_with_a_huge_memory_is_refused(run, change_memory):
    runtime = await run()
    export = await runtime.export_session((await runtime.start_session()).id)
    export["session"]["memory"] |= change_memory
    with pytest.raises(InvalidExport):
        await runtime.import_session(export, owner="bob")


async def test_an_export_with_huge_preferences_or_messages_is_refused(run):
    runtime = await run()
    session = await runtime.start_session()
    await turn(runtime, session, "hello")
    export = await runtime.export_session(session.id)
    for path in (("session", "preferences", "a"), ("session", "context", "a")):
        with pytest.raises(InvalidExport):
            await runtime.import_session(change(export, path, "x" * 100_000), owner="bob")
    for path in (("messages", 0, "message", "content"), ("continuations", 0, "request", "message")):
        with pytest.raises(InvalidExport):
            await runtime.import_session(change(export, path, "x" * (9 << 20)), owner="bob")


async def test_an_import_counts_the_tokens_of_its_window_itself(run):
    runtime = await run()
    session = await runtime.start_session()
    await turn(runtime, session, "hello " * 50)
    export = await runtime.export_session(session.id)
    counts = [stored["message"]["token_count"] for stored in export["messages"]]
    lie = change(export, ("messages", 0, "message", "token_count"), 0)
    imported = await runtime.import_session(lie, owner="bob")
    found = await runtime.list_messages(imported.id, owner="bob")
    assert [stored.message.token_count for stored in found] == counts


@pytest.mark.parametrize("backend", ["sqlite", "files"])
async def test_a_store_with_a_session_of_the_latest_id_opens(backend, tmp_path):
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with open_runtime(backend, tmp_path, clock) as runtime:
        session = await runtime.start_session()
        bundle = await runtime.store.export_session("local", session.id)
        await runtime.store.import_session(replace(bundle, session=replace(session, id=LATEST_ULID)))
    async with open_runtime(backend, tmp_path, clock) as runtime:
        assert (await runtime.start_session()).id > session.id
        assert (await runtime.get_session(session.id)).id == session.id


async def test_messages_of_a_turn_that_has_not_ended_are_refused(run):
    runtime = await run()
    session = await runtime.start_session()
    await turn(runtime, session, "hello")
    export = await runtime.export_session(session.id)
    with pytest.raises(InvalidExport, match="has not ended"):
        await runtime.import_session(
            change(export, ("continuations", 0, "status"), "interrupted"), owner="bob"
        )
