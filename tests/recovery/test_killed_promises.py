"""A process that is killed at any commit while a waiting turn fires does it once, and loses nothing."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sash.testing import FakeClock
from tests.recovery.house import WAIT_S
from tests.recovery.promise import MINUTE_S, make_runtime, open_store

ROOT = Path(__file__).parents[2]
COMMITS = 4


def fire(kind, folder, effects, commit, when):
    arguments = map(str, (kind, folder, effects, commit, when))
    command = [sys.executable, "-m", "tests.recovery.promise", *arguments]
    return subprocess.run(command, cwd=ROOT, timeout=60, capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, COMMITS + 1))
async def test_a_waiting_turn_that_was_killed_while_it_fired_is_done_once(tmp_path, kind, when, commit):
    effects = tmp_path / "effects"
    died = fire(kind, tmp_path, effects, commit, when)
    assert died.returncode == -signal.SIGKILL, died.stderr
    clock = FakeClock()
    clock.advance(MINUTE_S + 45)  # The lease of the dead process has expired.
    for _ in range(2):
        async with make_runtime(open_store(kind, tmp_path, clock), effects, clock) as sash:
            async with asyncio.timeout(WAIT_S):
                await sash.recover()
                await sash.fire_waiting_turns()
                await sash.wait_for_turns()
            assert await sash.list_waiting() == []
            [session] = (await sash.list_sessions()).items
            turns = await sash.list_continuations(session_id=session.id)
            fired = [turn for turn in turns if turn.continuation.request.fired]
            assert [turn.status for turn in fired] == ["completed"]
            assert fired[0].response.final_message.startswith("Done: light.")
            assert effects.read_text().splitlines() == ["light.turn_on"]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_the_kill_tests_cover_every_commit_of_the_firing(tmp_path, kind):
    lived = fire(kind, tmp_path, tmp_path / "effects", 99, "before")
    assert (lived.returncode, lived.stdout.strip()) == (0, str(COMMITS)), lived.stderr
