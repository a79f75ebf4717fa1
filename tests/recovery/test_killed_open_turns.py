"""A process that is killed while two turns of one session run loses none of them, and mixes none of them up."""

import asyncio
from pathlib import Path

import pytest

from sash import Runtime
from sash.ports.tools import ToolSpec
from sash.testing import ScriptedModel, calling
from tests.recovery.house import WAIT_S, open_store
from tests.recovery.test_double_kill import EFFECTS, CopyingStore

QUESTIONS = ("Ring bell one.", "Ring bell two.")


def _answer(request):
    """Ring the bell of the last question, then say so."""
    last = max(n for n, m in enumerate(request.messages) if m["role"] == "user")
    bell = next(q for q in QUESTIONS if q in request.messages[last]["content"]).split()[-1]
    if any(m["role"] == "tool" for m in request.messages[last:]):
        return f"Rang {bell}"
    return calling("ring_bell", f"call {bell}", bell=bell)


def _runtime(store, folder):
    async def ring(arguments, context):
        with Path(folder / EFFECTS).open("a") as file:
            file.write(f"{arguments['bell']}\n")
        return "rung"

    tool = ToolSpec("ring_bell", "ring", {"type": "object"}, ring, safety="unsafe")
    return Runtime(store, ScriptedModel(_answer), [tool], max_open_turns=2)


async def live(kind, folder, copies=None):
    """Run both turns, or go on with them after a kill. Return the transcript."""
    store = open_store(kind, folder)
    if copies is not None:
        store = CopyingStore(store, folder, copies)
    async with asyncio.timeout(WAIT_S), _runtime(store, folder) as sash:
        sessions = (await sash.list_sessions()).items
        session = sessions[0] if sessions else await sash.start_session()
        for turn in await sash.open_continuations(session.id):
            if turn.status == "interrupted":
                await sash.resume(turn.id)
        sent = [
            await sash.send_message(session.id, text, idempotency_key=text, busy="enqueue")
            for text in QUESTIONS
        ]
        for turn in sent:
            result = await sash.await_continuation(turn.id)
            assert result.status == "completed", result.status
        window = await sash.store.window("local", session.id)
        stored = await sash.store.messages("local", session.id)
        assert [m.id for m in window.messages] == [s.message.id for s in stored]
        return [s.message for s in stored]


def check(folder, messages):
    """Check that each turn stands in one piece, and that each bell was rung at most once."""
    effects = folder / EFFECTS
    rung = effects.read_text().split() if effects.exists() else []
    assert len(messages) == 8
    turns = (messages[:4], messages[4:])
    assert sorted(turn[0].text for turn in turns) == sorted(QUESTIONS)
    for turn in turns:
        bell = turn[0].text.split()[-1]
        assert [m.role for m in turn] == ["user", "assistant", "tool", "assistant"]
        assert turn[2].tool_call_id == turn[1].tool_calls[0]["id"] == f"call {bell}"
        assert turn[3].text.startswith(f"Rang {bell}")
        is_known = turn[2].text == "rung"
        assert rung.count(bell) == 1 if is_known else rung.count(bell) <= 1


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_two_open_turns_that_are_killed_end_as_if_they_had_not_been_killed(tmp_path, kind):
    first, second = tmp_path / "first", tmp_path / "second"
    (tmp_path / "whole").mkdir()
    check(tmp_path / "whole", await live(kind, tmp_path / "whole", first))
    killed = sorted(first.iterdir())
    assert len(killed) > 8
    for one in killed:
        try:
            check(one, await live(kind, one, second / one.name))
            for two in sorted((second / one.name).iterdir()):
                check(two, await live(kind, two))
        except AssertionError as error:
            raise AssertionError(f"killed {one.name}: {error}") from error
