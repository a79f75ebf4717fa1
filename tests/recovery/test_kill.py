"""Killed at any commit of a turn, nothing is lost and nothing is done twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recovery.house import COMMITS, QUESTION, TURN_KEY, open_store, runtime

ROOT = Path(__file__).parents[2]
WAIT_S = 30


def kill_at(kind, folder, effects, commit, when):
    command = [sys.executable, "-m", "tests.recovery.house", kind, folder, effects, str(commit), when]
    return subprocess.run([*map(str, command)], cwd=ROOT, timeout=60, capture_output=True, text=True)


async def take_over(kind, folder, effects):
    """Do what a user does after a crash: start again, resume what was interrupted, send what is not there."""
    async with runtime(open_store(kind, folder), effects) as sash:
        [session] = (await sash.list_sessions()).items
        for continuation in await sash.store.list_continuations("local", session.id):
            if continuation.status == "interrupted":
                await sash.resume(continuation.id)
        sent = await sash.send_message(session.id, QUESTION, idempotency_key=TURN_KEY, busy="enqueue")
        result = await sash.await_continuation(sent.id, timeout_s=WAIT_S)
        transcript = await sash.store.messages("local", session.id)
        window = await sash.store.window("local", session.id)
        return result, transcript, window


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, len(COMMITS) + 1))
async def test_a_turn_that_was_killed_ends_as_if_it_had_not_been(tmp_path, kind, commit, when):
    effects = tmp_path / "effects"
    died = kill_at(kind, tmp_path, effects, commit, when)
    assert died.returncode == -signal.SIGKILL, died.stderr
    result, transcript, window = await take_over(kind, tmp_path, effects)

    assert result.status == "completed"
    said = [(m.message.role, m.message.text) for m in transcript]
    in_doubt = (commit, when) in ((4, "after"), (5, "before"))
    bell = said[4][1]
    assert said == [
        ("user", QUESTION),
        ("assistant", ""),
        ("tool", "read_meter done"),
        ("assistant", ""),
        ("tool", bell),
        ("assistant", "I read the meter and rang the bell."),
    ]
    assert bell.startswith("outcome unknown") if in_doubt else bell == "ring_bell done"

    done = effects.read_text().splitlines()
    rung = 0 if (commit, when) == (4, "after") else 1
    assert done.count("ring_bell") == rung, "the unsafe call is never run again"
    has_result = commit > 3 or (commit, when) == (3, "after")
    assert done.count("read_meter") in ((1,) if has_result else (1, 2)), "a finished call is never run again"

    assert window.messages == tuple(m.message for m in transcript if m.in_window)
    assert window.current_tokens == sum(m.message.token_count for m in transcript)
    assert len({m.message.id for m in transcript}) == len(transcript)


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_a_second_crash_while_taking_over_changes_nothing(tmp_path, kind):
    effects = tmp_path / "effects"
    kill_at(kind, tmp_path, effects, 5, "before")
    for _ in range(2):
        store = open_store(kind, tmp_path)
        await store.open()
        await store.interrupt_lost()
        await store.close()
    result, transcript, _ = await take_over(kind, tmp_path, effects)
    assert result.status == "completed"
    assert transcript[4].message.text.startswith("outcome unknown")
    assert effects.read_text().splitlines() == ["read_meter", "ring_bell"]
