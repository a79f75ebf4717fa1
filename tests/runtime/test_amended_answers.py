"""Answers of completed turns that are amended later."""

import asyncio
import shutil

import pytest

from sash import Runtime
from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
)
from sash.stores import disk
from sash.stores.files.store import FilesStore
from sash.testing import FakeClock, ScriptedModel, calling
from tests.runtime.small_window import TWO_TURNS
from tests.runtime.talk import WAIT_S, said, transcript, turn
from tests.runtime.waiting_model import WaitingModel
from tests.tools import tool


async def test_the_answer_can_come_later_in_its_place(run):
    runtime = await run("ok")
    session = await runtime.start_session()
    first = await runtime.record_turn(session.id, "one?")
    await turn(runtime, session, "two?")
    amended = await runtime.amend_turn(first.id, "one!")
    assert amended.response.final_message == "one!"
    await turn(runtime, session, "three?")
    assert said(runtime.model.requests[-1]) == ["one?", "one!", "two?", "ok", "three?"]
    assert await transcript(runtime, session) == [
        ("user", "one?"),
        ("assistant", "one!"),
        ("user", "two?"),
        ("assistant", "ok"),
        ("user", "three?"),
        ("assistant", "ok"),
    ]


async def test_the_answer_of_an_agent_s_turn_can_be_amended(run):
    runtime = await run(calling("look"), "wrong", "ok", tools=[tool("look", lambda a, c: "fine")])
    session = await runtime.start_session()
    result = await turn(runtime, session, "how is the hall?")
    await runtime.amend_turn(result.continuation.id, "right")
    await turn(runtime, session, "and now?")
    shown = said(runtime.model.requests[-1])
    assert (shown[-2], "wrong" in shown) == ("right", False)
    window = (await runtime.store.window("local", session.id)).messages
    counter = runtime._parts.counter
    assert window[3].token_count == counter.count_message("right")


async def test_an_amended_answer_does_not_get_lost_beside_a_turn_that_runs(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    first = await runtime.record_turn(session.id, "one?", "old")
    sent = await runtime.send_message(session.id, "two?")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    await runtime.amend_turn(first.id, "new")
    model.go_on.set()
    await runtime.await_continuation(sent.id, timeout_s=WAIT_S)
    await turn(runtime, session, "three?")
    assert said(model.requests[-1]) == ["one?", "new", "two?", "done", "three?"]


async def test_a_turn_that_left_the_window_is_amended_in_the_transcript(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=TWO_TURNS)
    turns = [await runtime.record_turn(session.id, f"q{n}", "marmalade") for n in range(3)]
    assert await runtime.list_turns(session.id) == turns[1:]
    await runtime.amend_turn(turns[0].id, "blackcurrant")
    [found] = await runtime.search("blackcurrant")
    assert (found.position, found.in_window) == (2, False)


async def test_only_what_is_completed_can_be_amended(run):
    model = WaitingModel("done")
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    await asyncio.wait_for(model.asked.wait(), WAIT_S)
    with pytest.raises(InvalidInput, match="running"):
        await runtime.amend_turn(sent.id, "x")
    await runtime.cancel(sent.id)
    with pytest.raises(ContinuationFinal, match="cancelled"):
        await runtime.amend_turn(sent.id, "x")
    recorded = await runtime.record_turn(session.id, "q", "a")
    with pytest.raises(ContinuationNotFound):
        await runtime.amend_turn(recorded.id, "x", owner="bob")
    for wrong in (None, 7, b"x", "\ud800"):
        with pytest.raises(InvalidInput):
            await runtime.amend_turn(recorded.id, wrong)
    assert await transcript(runtime, session) == [("user", "q"), ("assistant", "a")]


def opened(folder):
    return Runtime(FilesStore(folder, clock=FakeClock()), ScriptedModel("ok"), clock=FakeClock())


async def texts(folder, session):
    async with opened(folder) as sash:
        version = (await sash.get_session(session.id)).version
        turns = [t.response and t.response.final_message for t in await sash.list_turns(session.id)]
        return version, turns, [m.message.text for m in await sash.list_messages(session.id)]


@pytest.mark.parametrize("lost", ["nothing", "turns", "session", "both"])
async def test_files_that_were_not_brought_up_to_date_lose_no_amendment(tmp_path, monkeypatch, lost):
    """The log alone has what a process that died could not write to the other files."""
    async with opened(tmp_path / "a") as sash:
        session = await sash.start_session()
        turns = [await sash.record_turn(session.id, f"q{n}", f"a{n}") for n in range(2)]
        await sash.set_preferences(session.id, {"up to": "date"})
        later = await sash.record_turn(session.id, "q2")
        real = disk.replace

        def replace_some(path, content, *, sync):
            if lost in ("turns", "both") and path.parent.name == "turns":
                raise OSError("not now")
            real(path, content, sync=sync)

        monkeypatch.setattr(disk, "replace", replace_some)
        await sash.amend_turn(turns[0].id, "b0")
        await sash.amend_turn(later.id, "b2")
        await sash.amend_turn(turns[0].id, "c0")
        if lost in ("nothing", "turns"):
            await sash.set_preferences(session.id, {"up to": "then"})
        version = (await sash.get_session(session.id)).version
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        monkeypatch.setattr(disk, "replace", real)
    expected = (version, ["c0", "a1", "b2"], ["q0", "c0", "q1", "a1", "q2", "b2"])
    assert await texts(tmp_path / "b", session) == expected
    assert await texts(tmp_path / "b", session) == expected


@pytest.mark.parametrize("damaged", ["log", "end of log", "turn"])
async def test_of_a_turn_s_files_either_mends_the_other_also_when_it_was_amended(tmp_path, damaged):
    async with opened(tmp_path) as sash:
        session = await sash.start_session()
        recorded = await sash.record_turn(session.id, "q", "a")
        await sash.record_turn(session.id, "q2", "a2")
        await sash.set_preferences(session.id, {"up to": "date"})
        for amended in ("b", "c"):
            await sash.amend_turn(recorded.id, amended)
    folder = tmp_path / "sessions" / session.id
    if damaged == "turn":
        (folder / "turns" / f"{recorded.id}.json").write_text("{")
    else:
        path = folder / "logs" / f"{recorded.id}.log"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[: 1 if damaged == "log" else 2]))
    assert (await texts(tmp_path, session))[1:] == (["c", "a2"], ["q", "c", "q2", "a2"])
