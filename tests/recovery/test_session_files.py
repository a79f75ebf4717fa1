"""The files of a session are current after every turn, and a power cut loses nothing of them."""

import json
import os

import pytest

from sash import Runtime
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


async def test_the_versions_of_the_layout_and_of_the_index_are_in_one_file(talk):
    runtime, _, folder = talk
    meta = folder.parents[1] / "index" / "meta.json"
    assert json.loads(meta.read_text())["index_version"] == 1
    await runtime.close()
    (folder / "vectors.json").write_text('{"vectors":[]}')
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"index_version": 2}))
    async with Runtime(FilesStore(folder.parents[1]), ScriptedModel("ok"), clock=FakeClock()):
        assert json.loads(meta.read_text())["index_version"] == 1
        assert not (folder / "vectors.json").exists()
