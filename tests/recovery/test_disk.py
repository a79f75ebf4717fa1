"""On a full or read-only disk there is a clear error, nothing is half written, and the store works afterwards."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sash import Runtime
from sash.testing import ScriptedModel
from tests.recovery.disk import LONG
from tests.recovery.house import open_store

ROOT = Path(__file__).parents[2]
WAIT_S = 30
KINDS = ["sqlite", "files"]


def on_disk(what, kind, folder):
    command = [sys.executable, "-m", "tests.recovery.disk", what, kind, str(folder)]
    done = subprocess.run(command, cwd=ROOT, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def talk(kind, folder, *messages):
    async with Runtime(open_store(kind, folder), ScriptedModel(lambda request: "ok")) as sash:
        sessions = (await sash.list_sessions()).items
        session = sessions[0] if sessions else await sash.start_session()
        for message in messages:
            sent = await sash.send_message(session.id, message)
            await sash.await_continuation(sent.id, timeout_s=WAIT_S)
        return [m.message.text for m in await sash.store.messages("local", session.id)]


@pytest.mark.parametrize("kind", KINDS)
async def test_on_a_full_disk_a_turn_is_refused_whole_and_the_next_one_works(tmp_path, kind):
    told = on_disk("full", kind, tmp_path)
    assert "cannot be used" in told["refused"]
    assert "room" in told["refused"]
    assert told["readable"]
    assert told["after"] == "completed"
    full = len(told["said"]) // 2 - 2
    assert told["said"] == ["before", "ok", *[LONG, "ok"] * full, "after", "ok"]
    assert await talk(kind, tmp_path) == told["said"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_read_only_folder_has_a_clear_error(kind):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = await talk(kind, folder, "one", "two")
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        told = on_disk("read_only", kind, folder)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert told["refused"] is not None
        assert "may be written" in told["refused"]
        assert await talk(kind, folder) == said
