"""The files of a session are current after every turn, and a power cut loses nothing of them."""

import json
import os

import pytest

from sash import Runtime
from sash.errors import StoreUnavailable
from sash.ports.store import Vector
from sash.stores import disk
from sash.stores.files import session_writer
from sash.stores.files.store import FilesStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.sessions import SessionPolicy
from tests.runtime.talk import turn


@pytest.fixture
async def talk(tmp_path):
    """A session that may act and has a fact, and its folder. Two turns were added."""
    async with Runtime(FilesStore(tmp_path), ScriptedModel("ok"), clock=FakeClock()) as runtime:
        session = await runtime.start_session(policy=SessionPolicy(allow_actuation=True))
        await runtime.remember("The cat sleeps in the garage.", session_id=session.id)
        for message in ("one", "two"):
            await turn(runtime, session, message)
        yield runtime, session, tmp_path / "sessions" / session.id


def read(folder):
    return json.loads((folder / "session.json").read_text())


async def test_session_json_is_current_after_every_turn(talk):
    runtime, session, folder = talk
    record, known = read(folder), await runtime.get_session(session.id)
    assert (record["session"]["version"], record["session"]["stats"]["turns"]) == (known.version, 2)
    assert len(record["in_window"]) == 4
    await runtime.record_turn(session.id, "three", "ok")
    assert read(folder)["session"]["stats"]["turns"] == 3
    sent = await runtime.list_turns(session.id)
    await runtime.amend_turn(sent[-1].id, "no")
    known = await runtime.get_session(session.id)
    assert read(folder)["session"]["version"] == known.version


async def test_a_turn_costs_no_more_syncs(talk, monkeypatch):
    runtime, session, _ = talk
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), fsync(handle)))
    await turn(runtime, session, "three")
    assert len(synced) == 3  # the log when the turn begins, its folder, and the log when the turn ends


async def test_a_power_cut_that_damages_session_json_loses_no_policy_and_no_turn(talk):
    runtime, session, folder = talk
    expected = await runtime.get_session(session.id)
    await runtime.close()
    (folder / "session.json").write_text("")
    async with Runtime(FilesStore(folder.parents[1]), ScriptedModel("ok"), clock=FakeClock()) as again:
        found = await again.get_session(session.id)
        assert (found.policy, found.memory, found.stats) == (expected.policy, expected.memory, expected.stats)
        assert [m.message.text for m in await again.list_messages(session.id)] == ["one", "ok", "two", "ok"]
        await again.sweep()
        assert read(folder)["session"]["stats"]["turns"] == 2
        assert not (folder / ".session.json.synced").exists()


@pytest.fixture
async def vectors(talk):
    """A function that adds vectors to the session, one that reads them in a new process, and their file."""
    runtime, session, folder = talk
    store = runtime.store

    async def add(*positions, keep=100):
        made = [Vector(n, "m", bytes([n] * 300)) for n in positions]
        await store.add_vectors("local", session.id, made, keep=keep)

    async def read(store=store):
        return [vector.position for vector in await store.vectors("local", session.id)]

    async def read_again():
        await store.close()
        await store.open()
        return await read()

    return add, read, read_again, folder / "vectors.ndjson"


async def test_new_vectors_are_appended_to_those_of_the_session(vectors, monkeypatch):
    add, _, read_again, path = vectors
    await add(*range(1, 50))
    replaced = []
    monkeypatch.setattr(disk, "replace", lambda *args, **options: replaced.append(args))
    before = path.read_bytes()
    await add(50, 51)
    assert replaced == []
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes()) < len(before) * 1.1
    monkeypatch.undo()
    assert await read_again() == [*range(1, 52)]


async def test_the_file_of_vectors_has_a_bounded_size(vectors, monkeypatch):
    monkeypatch.setattr(session_writer, "MIN_OUTDATED_BYTES", 1000)
    add, read, read_again, path = vectors
    await add(*range(1, 21), keep=20)
    full, largest = path.stat().st_size, 0
    for n in range(21, 200):
        await add(n, keep=20)
        largest = max(largest, path.stat().st_size)
    assert 2 * full < largest < 3 * full + 1000
    expected = [*range(180, 200)]
    assert await read() == expected == await read_again()


async def test_an_incomplete_write_of_vectors_is_removed(vectors):
    add, _, read_again, path = vectors
    await add(1, 2)
    await add(3)
    await add(4)
    path.write_bytes(path.read_bytes()[:-9])
    assert await read_again() == [1, 2, 3]
    await add(4, 5)
    assert await read_again() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("line", [0, 1])
async def test_a_damaged_line_of_vectors_discards_them_all(vectors, line):
    """It may have dropped an outdated vector."""
    add, _, read_again, path = vectors
    await add(1, 2)
    await add(3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:line], b"{damaged\n", *lines[line + 1 :]]))
    assert await read_again() == []
    await add(4)
    assert await read_again() == [4]


async def test_on_a_full_disk_no_vectors_are_added(vectors, monkeypatch):
    add, read, read_again, _ = vectors
    await add(1, 2)

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    for positions in ((3,), range(3, 9)):
        with pytest.raises(StoreUnavailable, match="No space left"):
            await add(*positions)
        assert await read() == [1, 2]
    monkeypatch.undo()
    await add(3)
    assert await read() == [1, 2, 3] == await read_again()


async def test_the_versions_of_the_layout_and_of_the_index_are_in_one_file(talk):
    runtime, _, folder = talk
    meta = folder.parents[1] / "index" / "meta.json"
    assert json.loads(meta.read_text())["index_version"] == 2
    await runtime.close()
    for name in ("vectors.json", "vectors.ndjson"):
        (folder / name).write_text('{"vectors":[]}\n')
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"index_version": 1}))
    async with Runtime(FilesStore(folder.parents[1]), ScriptedModel("ok"), clock=FakeClock()):
        assert json.loads(meta.read_text())["index_version"] == 2
        assert not list(folder.glob("vectors.*"))
