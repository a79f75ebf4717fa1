"""A process that is killed at any write of a turn, and killed again at any write of the recovery, loses nothing.

The state of the disk before and after every write is copied. Each copy is what a killed process leaves.
"""

import shutil
from itertools import count

import pytest

from tests.recovery.house import ANSWER, QUESTION, SerialStore, ask, at_once, open_store, runtime

EFFECTS = "effects"


class CopyingStore(SerialStore):
    """A store that copies its folder before and after each of its writes, unless nothing has changed."""

    writes = frozenset(
        {
            "create_session",
            "save_session",
            "begin",
            "claim",
            "claim_next",
            "append",
            "finish",
            "interrupt_lost",
        }
    )

    def __init__(self, store, folder, copies):
        super().__init__(store)
        self._folder, self._copies = folder, copies
        self._numbers, self._last = count(), None

    def before(self, verb):
        if self._read_effects() != self._last:
            self._copy(f"before {verb}")

    def after(self, verb):
        self._copy(f"after {verb}")

    def _copy(self, moment):
        shutil.copytree(self._folder, self._copies / f"{next(self._numbers):02} {moment}")
        self._last = self._read_effects()

    def _read_effects(self):
        effects = self._folder / EFFECTS
        return effects.read_text() if effects.exists() else ""


async def live(kind, folder, calls, pace="fast", copies=None):
    """Start Sash and run the turn. A `slow` turn waits after every step until it is on the disk."""
    store = CopyingStore(open_store(kind, folder), folder, copies) if copies else open_store(kind, folder)
    async with runtime(store, folder / EFFECTS, calls, store.idle if pace == "slow" else at_once) as sash:
        session, result = await ask(sash)
        transcript = await sash.store.messages("local", session.id)
        events = await sash.store.events("local", session.id)
    return result, [(m.message.role, m.message.text) for m in transcript], events


def check(folder, calls, result, said, events):
    """Check that the turn is complete, and that the bell was rung as often as the transcript says."""
    assert result.status == "completed"
    bell = said[-2][1]
    meter = ("tool", "read_meter done")
    between = [meter] if calls == "at_once" else [meter, ("assistant", "")]
    assert said == [("user", QUESTION), ("assistant", ""), *between, ("tool", bell), ("assistant", ANSWER)]
    rung = (folder / EFFECTS).read_text().splitlines().count("ring_bell")
    assert rung == 1 if bell == "ring_bell done" else (bell.startswith("outcome unknown") and rung <= 1)
    cursors = [event.step.cursor for event in events]
    assert cursors == sorted(set(cursors))
    assert [event.step.type for event in events].count("tool_result") == 2


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("pace", ["slow", "fast"])
@pytest.mark.parametrize("calls", ["in_turn", "at_once"])
async def test_a_turn_that_is_killed_twice_ends_as_if_it_had_not_been_killed(tmp_path, kind, calls, pace):
    first, second = tmp_path / "first", tmp_path / "second"
    (tmp_path / "empty").mkdir()
    await live(kind, tmp_path / "empty", calls, pace, first)
    killed_once = sorted(first.iterdir())
    assert len(killed_once) > 8
    for one in killed_once:
        await live(kind, one, calls, pace, second / one.name)
        for two in sorted((second / one.name).iterdir()):
            try:
                check(two, calls, *await live(kind, two, calls))
            except AssertionError as error:
                raise AssertionError(f"killed {one.name}, then {two.name}: {error}") from error
        shutil.rmtree(second)
