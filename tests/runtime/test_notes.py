"""Facts, pins and preferences of a session."""

import asyncio
import json

import pytest

from sash.engine.notes import MAX_NOTES
from sash.errors import InvalidInput, NoteNotFound, SessionNotFound
from sash.testing import ScriptedModel
from sash.values.sessions import ModelConfig
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer, system_texts, turn


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("Remember that the key is under the mat.", "the key is under the mat"),
        ("please remember: bins go out on Monday!", "bins go out on Monday"),
        ("Don't forget that Anna is allergic to nuts", "Anna is allergic to nuts"),
        ("Merk dir, dass die Heizung um 6 angeht", "die Heizung um 6 angeht"),
        ("Souviens-toi que le chat dort ici", "le chat dort ici"),
        ("Recuerda que el perro come a las ocho", "el perro come a las ocho"),
        ("Onthoud dat de poort om tien uur sluit", "de poort om tien uur sluit"),
        ("Remember my birthday is in May", "my birthday is in May"),
        ("Hey Sash, please remember that the cat is allowed in", "the cat is allowed in"),
        ("Please note that Anna and Ben come on Monday", "Anna and Ben come on Monday"),
    ],
)
async def test_a_fact_is_remembered_without_a_model(run, sentence, fact):
    model = ScriptedModel("never asked")
    runtime = await run(model=model)
    session = await runtime.start_session()
    result = await turn(runtime, session, sentence)
    assert fact in result.response.final_message
    assert [(f.text, f.scope) for f in await runtime.list_facts()] == [(fact, "owner")]
    assert model.requests == []
    assert [s.type for s in result.steps] == ["plan", "tool_call", "tool_result", "summary"]
    stored = await runtime.store.messages("local", session.id)
    assert all("local_intent" in m.message.tags for m in stored)
    assert result.continuation.stats.local_turns == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Do you remember that we met?",
        "Remember when we met",
        "remember to turn off the lights at eight",
        "forget about it",
        "Forget that.",
        "Vergiss es",
        "Note that the kitchen light is broken, so turn on the hallway light instead.",
        "Forget about the kitchen light, turn on the bedroom one.",
        "Remember that song I told you about? Play it now.",
        "Remember: turn off the oven in 10 minutes.",
        "Forget that I said that and lock the door.",
        "Vergiss das mit dem Licht und mach die Heizung an.",
        "Remember that Anna comes at 8. Now turn off the heating.",
        "Note that " + "x" * 500,
    ],
)
async def test_what_only_sounds_like_it_goes_to_the_model(run, sentence):
    model = ScriptedModel("hm")
    runtime = await run(model=model)
    session = await runtime.start_session()
    assert await answer(runtime, session, sentence) == "hm"
    assert await runtime.list_facts() == ()


async def test_a_fact_is_forgotten_without_a_model(run):
    model = ScriptedModel("never asked")
    runtime = await run(model=model)
    session = await runtime.start_session()
    for text in ("the key is under the mat", "the mat is red", "tea is good"):
        await runtime.remember(text, session_id=session.id)
    assert await answer(runtime, session, "forget about the mat") == (
        "I have forgotten: the key is under the mat; the mat is red"
    )
    assert [f.text for f in (await runtime.get_session(session.id)).memory.facts] == ["tea is good"]
    assert "nothing" in await answer(runtime, session, "forget everything about coffee")
    assert model.requests == []


async def test_forgetting_goes_by_the_telling_words(run):
    runtime = await run("hm")
    session = await runtime.start_session()
    await runtime.remember("I liked tea with the dog", session_id=session.id)
    assert "nothing" in await answer(runtime, session, "forget about the cat")
    assert "I liked tea with the dog" in await answer(runtime, session, "Vergiss, dass I like tea with a dog")


async def test_intents_that_may_not_call_tools_leave_it_to_the_model(run):
    runtime = await run("I cannot note that down.")
    session = await runtime.start_session()
    said = await answer(runtime, session, "remember that I like tea", allow_tools=False)
    assert said == "I cannot note that down."


async def test_intents_that_fail_leave_it_to_the_model(run):
    class Broken:
        async def understand(self, heard):
            raise RuntimeError("no vocabulary")

    runtime = await run("hello", intents=[Broken()])
    session = await runtime.start_session()
    assert await answer(runtime, session) == "hello"


async def test_notes_reach_the_model_behind_the_window_until_the_next_cut(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL, preferences={"language": "German"})
    await turn(runtime, session, "before")
    before = model.requests[-1].messages
    clock.advance(60)
    fact = await runtime.remember("the cellar is damp", session_id=session.id)
    pin = await runtime.pin("answer in one sentence", session_id=session.id)
    await turn(runtime, session, "after")
    after = model.requests[-1].messages
    assert "German" in after[1]["content"]
    assert after[:2] == before[:2], "a new note does not move the head of the prompt"
    place = next(n for n, m in enumerate(after) if "the cellar is damp" in m["content"])
    assert after[place]["role"] == "system"
    assert place > next(n for n, m in enumerate(after) if m["content"].endswith("] before"))
    clock.advance(60)
    await fill(runtime, session)
    head = model.requests[-1].messages[1]["content"]
    assert "the cellar is damp" in head
    assert "answer in one sentence" in head
    with pytest.raises(NoteNotFound, match="no fact 'cellar'"):
        await runtime.drop_fact("cellar", session_id=session.id)
    assert await runtime.drop_fact(fact.id, session_id=session.id) == fact
    await runtime.unpin(pin.id, session_id=session.id)
    await runtime.set_preferences(session.id, {"language": None, "units": "metric"})
    await turn(runtime, session)
    said = "\n".join(system_texts(model.requests[-1]))
    assert "cellar" not in said
    assert "one sentence" not in said
    assert "German" not in said
    assert "units: metric" in said


async def test_notes_are_checked(run):
    runtime = await run()
    session = await runtime.start_session()
    for wrong in ("", "  ", None, 7, "x" * 501, "\ud800"):
        with pytest.raises(InvalidInput):
            await runtime.remember(wrong, session_id=session.id)
        with pytest.raises(InvalidInput):
            await runtime.pin(wrong, session_id=session.id)
    with pytest.raises(NoteNotFound):
        await runtime.unpin("nope", session_id=session.id)
    with pytest.raises(SessionNotFound):
        await runtime.remember("mine?", session_id=session.id, owner="bob")
    again = [await runtime.remember("the same", session_id=session.id) for _ in range(2)]
    assert again[0] == again[1]
    for n in range(MAX_NOTES - 1):
        await runtime.remember(f"fact {n}", session_id=session.id)
    with pytest.raises(InvalidInput, match="remove some"):
        await runtime.remember("one too many", session_id=session.id)
    assert len((await runtime.get_session(session.id)).memory.facts) == MAX_NOTES


async def test_notes_taken_at_once_are_all_kept(run):
    runtime = await run()
    session = await runtime.start_session()
    await asyncio.gather(
        *(runtime.remember(f"fact {n}", session_id=session.id) for n in range(8)), turn(runtime, session)
    )
    facts = (await runtime.get_session(session.id)).memory.facts
    assert {f.text for f in facts} == {f"fact {n}" for n in range(8)}


async def test_secrets_are_not_remembered(run):
    key = "sk-proj-" + "a1B2" * 10
    summary = f"They spoke of {key}."
    runtime = await run(
        lambda r: summary if "Summarise" in r.messages[0]["content"] else "ok", summaries=True
    )
    session = await runtime.start_session(window=SMALL, preferences={"note": f"use {key}"})
    await turn(runtime, session, f"remember that the api key is {key}")
    await runtime.remember(f"the key is {key}", session_id=session.id)
    await runtime.pin(f"always use {key}", session_id=session.id)
    await runtime.set_preferences(session.id, {"other": f"or {key}", "password": "hunter2x"})
    await turn(runtime, session, "hi", model=ModelConfig(name="m", options={"api_key": key}))
    await turn(runtime, session, "hi", planner_hints={"hint": key})
    await fill(runtime, session)
    await runtime.wait_for_background()
    everything = json.dumps(await runtime.export_session(session.id))
    assert "They spoke of [redacted]" in everything
    assert key not in everything
    assert "hunter2x" not in everything


async def test_a_message_with_an_image_goes_to_the_model(run):
    runtime = await run("I see.")
    session = await runtime.start_session()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert await answer(runtime, session, "remember that this is me", attachments=[image]) == "I see."
