"""One file that cannot be used, such as a folder with its name, closes neither the store nor other sessions."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sash import Runtime
from sash.errors import StoreUnavailable
from sash.ports.store import Artifact
from sash.stores.files.store import FilesStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.continuations import ArtifactRef
from sash.values.ids import new_id
from tests.runtime.talk import transcript, turn
from tests.runtime.waiting_model import WaitingModel

DAY_S = 24 * 3600
FILES = ["session.json", "turns/*.json", "logs/*.log", "turns/imported.ndjson", "turns", "logs"]


@pytest.fixture
def clock():
    return FakeClock(datetime(2026, 5, 1, tzinfo=UTC))


@pytest.fixture
async def sessions(tmp_path, clock):
    """Return a session with an ended and a running turn, its fork, and a sound session."""
    async with Runtime(FilesStore(tmp_path, clock=clock), ScriptedModel("ok"), clock=clock) as runtime:
        first, sound = await runtime.start_session(), await runtime.start_session()
        for session in (first, sound):
            await turn(runtime, session, "hello")
            artifact = Artifact(ArtifactRef(new_id(), "text/plain", 1), session.id, "local", b"x")
            await runtime.store.put_artifact(artifact)
        fork = await runtime.fork_session(first.id)
    model = WaitingModel("never")
    async with Runtime(FilesStore(tmp_path, clock=clock), model, clock=clock) as runtime:
        await runtime.send_message(first.id, "still running")
        await model.asked.wait()
        await runtime.abandon_turns()
    return first, fork, sound


async def check_others(folder, clock, sound):
    """Open the store twice, and use a session that has no unusable file."""
    for _ in range(2):
        store = FilesStore(folder, clock=clock)
        async with Runtime(store, ScriptedModel("ok"), clock=clock) as runtime:
            assert store.damaged
            before = await transcript(runtime, sound)
            assert (await turn(runtime, sound, "more")).status == "completed"
            assert await transcript(runtime, sound) == [*before, ("user", "more"), ("assistant", "ok")]
            assert (await runtime.export_session(sound.id))["artifacts"]
            clock.advance(2 * DAY_S)
            assert (await runtime.sweep()).steps
            await runtime.recover()
            await runtime.search("hello")
            await runtime.delete_session((await runtime.start_session()).id)


@pytest.mark.parametrize("kind", ["folder", "EIO", "EACCES"])
@pytest.mark.parametrize("name", FILES)
async def test_the_other_sessions_open(tmp_path, clock, sessions, monkeypatch, name, kind):
    first, fork, sound = sessions
    folder = tmp_path / "sessions" / (fork if "imported" in name else first).id
    paths = set(folder.glob(name))
    assert paths
    if kind == "folder":
        for path in paths:
            path.rename(tmp_path / path.name)
            (path.touch if "." not in name else path.mkdir)()
    else:
        for function in ("read_bytes", "iterdir"):
            monkeypatch.setattr(Path, function, failing(getattr(Path, function), paths, kind))
    await check_others(tmp_path, clock, sound)


def failing(function, paths, kind):
    def call(path):
        if path in paths:
            raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))
        return function(path)

    return call


async def test_a_session_s_folder_without_permission(tmp_path, clock, sessions, monkeypatch):
    first, _, sound = sessions
    paths = set((tmp_path / "sessions" / first.id).rglob("*"))
    for function in ("read_bytes", "iterdir", "stat"):
        monkeypatch.setattr(Path, function, failing(getattr(Path, function), paths, "EACCES"))
    await check_others(tmp_path, clock, sound)


async def test_an_artifact_that_is_a_folder(tmp_path, clock, sessions):
    *_, sound = sessions
    [path] = [
        path for path in (tmp_path / "artifacts").glob("*.json") if sound.id.encode() not in path.read_bytes()
    ]
    path.unlink()
    path.mkdir()
    async with Runtime(FilesStore(tmp_path, clock=clock), ScriptedModel("ok"), clock=clock) as runtime:
        with pytest.raises(StoreUnavailable):
            await runtime.get_artifact(path.stem)
        assert (await runtime.export_session(sound.id))["artifacts"]
        await runtime.delete_session(sound.id)


async def test_a_failure_of_all_files_is_not_taken_for_damage(tmp_path, clock, sessions, monkeypatch):
    paths = set(tmp_path.rglob("session.json"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing(Path.read_bytes, paths, "EMFILE"))
        with pytest.raises(StoreUnavailable):
            async with Runtime(FilesStore(tmp_path, clock=clock), ScriptedModel("ok"), clock=clock):
                pass
    async with Runtime(FilesStore(tmp_path, clock=clock), ScriptedModel("ok"), clock=clock) as runtime:
        assert len((await runtime.list_sessions()).items) == len(sessions)
