"""A process that is killed at any commit of a turn loses nothing and repeats nothing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recovery.house import ANSWER, QUESTION, ask, open_store, runtime

ROOT = Path(__file__).parents[2]
COMMITS = {("slow", "in_turn"): 6, ("fast", "in_turn"): 4, ("slow", "at_once"): 5, ("fast", "at_once"): 4}


def run_turn(kind, folder, effects, pace, calls, commit, when):
    arguments = (kind, folder, effects, pace, calls, commit, when)
    command = [sys.executable, "-m", "tests.recovery.house", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, timeout=60, capture_output=True, text=True)


async def written(kind, folder):
    """Return the calls and the results in the journal of the dead process."""
    store = open_store(kind, folder)
    await store.open()
    [session] = (await store.list_sessions("local")).items
    steps = [stored.step for stored in await store.events("local", session.id)]
    await store.close()
    of = {kind: {s.detail["name"] for s in steps if s.type == kind} for kind in ("tool_call", "tool_result")}
    return of["tool_call"], of["tool_result"]


async def take_over(kind, folder, effects, calls):
    """Start again in the folder of a dead process."""
    async with runtime(open_store(kind, folder), effects, calls) as sash:
        session, result = await ask(sash)
        transcript = await sash.store.messages("local", session.id)
        window = await sash.store.window("local", session.id)
        return result, transcript, window


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("pace", "calls", "commit"),
    [(*variant, commit) for variant, commits in COMMITS.items() for commit in range(1, commits + 1)],
)
async def test_a_killed_turn_ends_as_if_it_had_not_been_killed(tmp_path, kind, pace, calls, commit, when):
    effects = tmp_path / "effects"
    died = run_turn(kind, tmp_path, effects, pace, calls, commit, when)
    assert died.returncode == -signal.SIGKILL, died.stderr
    called, answered = await written(kind, tmp_path)
    before = effects.read_text().splitlines() if effects.exists() else []
    result, transcript, window = await take_over(kind, tmp_path, effects, calls)

    assert result.status == "completed"
    in_doubt = "ring_bell" in called - answered
    said = [(m.message.role, m.message.text) for m in transcript]
    bell = said[-2][1]
    meter = ("tool", "read_meter done")
    between = [meter] if calls == "at_once" else [meter, ("assistant", "")]
    assert said == [("user", QUESTION), ("assistant", ""), *between, ("tool", bell), ("assistant", ANSWER)]
    assert bell.startswith("outcome unknown") if in_doubt else bell == "ring_bell done"

    done = effects.read_text().splitlines()
    assert set(before) - {"read_meter"} <= called, "an unsafe call is known before it is made"
    assert done.count("ring_bell") == (before.count("ring_bell") if in_doubt else 1)
    assert done.count("read_meter") == before.count("read_meter") + ("read_meter" not in answered)

    assert window.messages == tuple(m.message for m in transcript if m.in_window)
    assert window.current_tokens == sum(m.message.token_count for m in transcript)
    assert len({m.message.id for m in transcript}) == len(transcript)


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize(("pace", "calls"), COMMITS)
def test_the_kill_tests_cover_every_commit_of_the_turn(tmp_path, kind, pace, calls):
    lived = run_turn(kind, tmp_path, tmp_path / "effects", pace, calls, 99, "before")
    assert (lived.returncode, lived.stdout.strip()) == (0, str(COMMITS[pace, calls])), lived.stderr


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_a_second_crash_while_taking_over_changes_nothing(tmp_path, kind):
    effects = tmp_path / "effects"
    run_turn(kind, tmp_path, effects, "slow", "in_turn", 5, "before")
    for _ in range(2):
        store = open_store(kind, tmp_path)
        await store.open()
        await store.interrupt_lost()
        await store.close()
    result, transcript, _ = await take_over(kind, tmp_path, effects, "in_turn")
    assert result.status == "completed"
    assert transcript[4].message.text.startswith("outcome unknown")
    assert effects.read_text().splitlines() == ["read_meter", "ring_bell"]
