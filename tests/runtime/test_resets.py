"""A user starts over: the window is empty, and the transcript stays."""

import pytest

from sash.errors import SessionBusy, SessionEnded
from sash.memory.recall_question import read_question
from sash.testing import ScriptedModel, calling
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer, said, system_texts, transcript, turn
from tests.runtime.waiting_model import WaitingModel


@pytest.mark.parametrize(
    "sentence",
    [
        "Let's start over",
        "let us start from scratch.",
        "Please start over!",
        "Lass uns von vorne anfangen",
        "Recommençons à zéro",
        "Empecemos de nuevo",
        "Ricominciamo da capo",
        "Laten we opnieuw beginnen",
    ],
)
async def test_a_sentence_empties_the_window_without_a_model(run, sentence):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "the boiler code is E42")
    done = await turn(runtime, session, sentence)
    assert len(model.requests) == 1
    assert done.continuation.stats.local_turns == 1
    report = await runtime.context_report(session.id)
    assert {gone["reason"] for gone in report["evicted"]} == {"reset"}
    assert report["digest"] == ""
    await turn(runtime, session, "hello")
    assert "E42" not in str(model.requests[-1].messages)
    assert ("user", "the boiler code is E42") in await transcript(runtime, session)


@pytest.mark.parametrize(
    "sentence", ["start over there in the kitchen", "Do we start over?", "start the robot"]
)
async def test_other_sentences_reset_nothing(run, sentence):
    runtime = await run("hm")
    session = await runtime.start_session()
    await turn(runtime, session, "one")
    assert await answer(runtime, session, sentence) == "hm"
    assert (await runtime.context_report(session.id))["evicted"] == []


async def test_a_reset_drops_digest_and_summary_and_recall_still_finds_the_turns(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "the boiler code is E42")
    await runtime.remember("I like tea")
    assert "E42" in (await runtime.context_report(session.id))["digest"]
    clock.advance(60)
    saved = await runtime.reset_session(session.id)
    assert (saved.memory.digest, saved.memory.summary) == ("", "")
    assert saved.memory.reset_at == saved.memory.cut_at == clock.now()
    assert (await runtime.store.window("local", session.id)).messages == ()
    await turn(runtime, session, "good morning")
    assert said(model.requests[-1]) == ["good morning"]
    shown = "\n".join(system_texts(model.requests[-1]))
    assert "E42" not in shown
    assert "I like tea" in shown
    found = await runtime.store.find_words("local", session.id, read_question("boiler").words)
    assert [*found.found] == [1]


async def test_a_busy_or_ended_session_is_not_reset(run):
    model = WaitingModel()
    runtime = await run(model=model)
    session = await runtime.start_session()
    sent = await runtime.send_message(session.id, "hi")
    with pytest.raises(SessionBusy):
        await runtime.reset_session(session.id)
    await runtime.cancel(sent.id)
    await runtime.reset_session(session.id)
    await runtime.end_session(session.id)
    with pytest.raises(SessionEnded):
        await runtime.reset_session(session.id)


async def test_a_model_may_start_over(run):
    model = ScriptedModel("ok", calling("reset_conversation"), "A fresh start.", "hello")
    runtime = await run(model=model)
    session = await runtime.start_session()
    await turn(runtime, session, "the boiler code is E42")
    assert await answer(runtime, session, "wipe the slate clean") == "A fresh start."
    await turn(runtime, session, "hello")
    assert "E42" not in str(model.requests[-1].messages)
    assert "wipe the slate clean" in str(model.requests[-1].messages)


@pytest.mark.parametrize("is_after", [True, False])
async def test_a_copy_up_to_a_turn_hides_what_a_reset_before_that_turn_has_hidden(run, clock, is_after):
    model = ScriptedModel(lambda request: "ok")
    runtime = await run(model=model)
    session = await runtime.start_session()
    first = await turn(runtime, session, "the boiler code is E42")
    clock.advance(60)
    await turn(runtime, session, "let's start over")
    clock.advance(60)
    last = await turn(runtime, session, "think about rain")
    copy = await runtime.fork_session(session.id, at=(last if is_after else first).continuation.id)
    await turn(runtime, copy, "and now?")
    assert ("E42" in str(model.requests[-1].messages)) != is_after
    assert ("user", "the boiler code is E42") in await transcript(runtime, copy)
    report = await runtime.context_report(copy.id)
    assert "E42" not in report["digest"]
