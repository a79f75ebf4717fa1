"""A `session.json` that a crash truncated does not hide its session: it is rebuilt from the other files."""

import json

import pytest

from sash import Runtime
from sash.stores.files.store import FilesStore
from sash.testing import ScriptedModel
from tests.runtime.talk import transcript, turn

OWNER = {"owner": "local"}


def open_runtime(folder):
    return Runtime(FilesStore(folder), ScriptedModel("ok"))


async def make_session(runtime, kind):
    """Return a session with the transcript of two turns."""
    session = await runtime.start_session()
    await turn(runtime, session, "first")
    await turn(runtime, session, "second")
    if kind == "fork":
        return await runtime.fork_session(session.id)
    if kind == "import":
        export = await runtime.export_session(session.id)
        return await runtime.import_session({**export, "signature": ""})
    if kind == "import without turns":
        export = await runtime.export_session(session.id)
        messages = [stored | {"continuation_id": None} for stored in export["messages"]]
        parts = {"continuations": [], "steps": [], "messages": messages, "signature": ""}
        return await runtime.import_session(export | parts)
    return session


@pytest.mark.parametrize("size", [0, 1, 40, -1])
@pytest.mark.parametrize("kind", ["turns", "fork", "import", "import without turns"])
async def test_the_session_is_rebuilt(tmp_path, kind, size):
    async with open_runtime(tmp_path) as runtime:
        session = await make_session(runtime, kind)
        before = await transcript(runtime, session)
        count = len((await runtime.list_sessions()).items)
    path = tmp_path / "sessions" / session.id / "session.json"
    path.write_bytes(torn := path.read_bytes()[:size])
    for _ in range(2):
        async with open_runtime(tmp_path) as runtime:
            assert len((await runtime.list_sessions()).items) == count
            assert await transcript(runtime, session) == before
            shown = await runtime.store.window("local", session.id)
            assert [m.text for m in shown.messages] == [text for _, text in before]
            assert (await turn(runtime, session, "more")).status == "completed"
            before = await transcript(runtime, session)
            assert len(before) >= 6
            await runtime.set_preferences(session.id, {"n": len(before)})
    assert path.with_suffix(".damaged").read_bytes() == torn


async def test_a_fork_of_an_older_version_has_no_owner_beside_its_messages(tmp_path):
    async with open_runtime(tmp_path) as runtime:
        fork = await make_session(runtime, "fork")
        before = await transcript(runtime, fork)
    owner = tmp_path / "sessions" / fork.id / "owner.json"
    assert json.loads(owner.read_text()) == OWNER
    owner.unlink()
    async with open_runtime(tmp_path) as runtime:
        assert await transcript(runtime, fork) == before
