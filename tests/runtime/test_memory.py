"""What a session remembers beside its window: facts, pins, preferences, and what was evicted."""

import asyncio
import json
import re
from dataclasses import replace

import pytest

from sash.engine.notes import MAX_NOTES
from sash.engine.recall import recall
from sash.errors import InvalidInput, ModelUnreachable, NoteNotFound, SessionChanged, SessionNotFound
from sash.memory.tokens import TokenCounter
from sash.ports.model import Answer, Usage
from sash.ports.tools import ToolSpec
from sash.testing import FaultyStore, ScriptedModel, calling
from sash.values.sessions import Budgets, ModelConfig, WindowLimits
from tests.runtime.talk import answer, system_texts, turn

SMALL = WindowLimits(max_turns=4, evict_to=0.5)


async def fill(runtime, session, *first, turns=8):
    """Say something, and then enough that it is evicted."""
    for message in first:
        await turn(runtime, session, message)
    for n in range(turns):
        await turn(runtime, session, f"small talk number {n}")


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
    assert [f.text for f in (await runtime.get_session(session.id)).memory.facts] == [fact]
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
    assert (await runtime.get_session(session.id)).memory.facts == ()


async def test_a_fact_is_forgotten_without_a_model(run):
    model = ScriptedModel("never asked")
    runtime = await run(model=model)
    session = await runtime.start_session()
    for text in ("the key is under the mat", "the mat is red", "tea is good"):
        await runtime.remember(session.id, text)
    assert await answer(runtime, session, "forget about the mat") == (
        "I have forgotten: the key is under the mat; the mat is red"
    )
    assert [f.text for f in (await runtime.get_session(session.id)).memory.facts] == ["tea is good"]
    assert "nothing" in await answer(runtime, session, "forget everything about coffee")
    assert model.requests == []


async def test_forgetting_goes_by_the_telling_words(run):
    runtime = await run("hm")
    session = await runtime.start_session()
    await runtime.remember(session.id, "I liked tea with the dog")
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
    fact = await runtime.remember(session.id, "the cellar is damp")
    pin = await runtime.pin(session.id, "answer in one sentence")
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
        await runtime.drop_fact(session.id, "cellar")
    assert await runtime.drop_fact(session.id, fact.id) == fact
    await runtime.unpin(session.id, pin.id)
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
            await runtime.remember(session.id, wrong)
        with pytest.raises(InvalidInput):
            await runtime.pin(session.id, wrong)
    with pytest.raises(NoteNotFound):
        await runtime.unpin(session.id, "nope")
    with pytest.raises(SessionNotFound):
        await runtime.remember(session.id, "mine?", owner="bob")
    again = [await runtime.remember(session.id, "the same") for _ in range(2)]
    assert again[0] == again[1]
    for n in range(MAX_NOTES - 1):
        await runtime.remember(session.id, f"fact {n}")
    with pytest.raises(InvalidInput, match="remove some"):
        await runtime.remember(session.id, "one too many")
    assert len((await runtime.get_session(session.id)).memory.facts) == MAX_NOTES


async def test_notes_taken_at_once_are_all_kept(run):
    runtime = await run()
    session = await runtime.start_session()
    await asyncio.gather(
        *(runtime.remember(session.id, f"fact {n}") for n in range(8)), turn(runtime, session)
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
    await runtime.remember(session.id, f"the key is {key}")
    await runtime.pin(session.id, f"always use {key}")
    await runtime.set_preferences(session.id, {"other": f"or {key}", "password": "hunter2x"})
    await turn(runtime, session, "hi", model=ModelConfig(name="m", options={"api_key": key}))
    await turn(runtime, session, "hi", planner_hints={"hint": key})
    await fill(runtime, session)
    await runtime.wait_for_background()
    everything = json.dumps(await runtime.export_session(session.id))
    assert "They spoke of [redacted]" in everything
    assert key not in everything
    assert "hunter2x" not in everything


async def test_what_was_recalled_is_not_looked_up_again_after_a_crash(run, make_store, clock):
    asked = asyncio.Event()

    class Stuck(ScriptedModel):
        async def stream(self, request):
            if "boiler" in str(request.messages[-1]) and len(self.requests) > 3:
                asked.set()
                await asyncio.Event().wait()
            async for delta in super().stream(request):
                yield delta

    store = FaultyStore(make_store())
    first = await run(model=Stuck("ok"), store=store)
    session = await first.start_session(window=SMALL)
    await fill(first, session, "The boiler in the cellar is loud in the night since the storm")
    sent = await first.send_message(session.id, "Was the boiler loud?")
    await asyncio.wait_for(asked.wait(), 10)
    await first.close()
    clock.advance(31)
    store.fail("recall", AssertionError("looked up again"))
    model = ScriptedModel("yes")
    second = await run(model=model, store=store)
    await second.resume(sent.id)
    await second.await_continuation(sent.id, timeout_s=10)
    assert any("loud in the night" in text for text in system_texts(model.requests[0]))


async def test_a_message_with_an_image_goes_to_the_model(run):
    runtime = await run("I see.")
    session = await runtime.start_session()
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    assert await answer(runtime, session, "remember that this is me", attachments=[image]) == "I see."


async def test_evicted_turns_come_back_when_the_talk_turns_to_them(run, clock):
    model = ScriptedModel(
        lambda request: "The boiler is a Vaillant ecoTEC." if "boiler" in str(request.messages[-1]) else "ok"
    )
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "Our boiler in the cellar was serviced by Mr Novak")
    clock.advance(3600)
    result = await turn(runtime, session, "When was the boiler serviced?")
    retrieval = next(step for step in result.steps if step.type == "retrieval")
    assert "boil" in retrieval.detail["query"]
    told = system_texts(model.requests[-1])[-1]
    assert "[2026-01-01 00:00]" in told
    assert "user: Our boiler in the cellar was serviced by Mr Novak" in told
    assert "assistant: The boiler is a Vaillant ecoTEC." in told
    assert "small talk" not in told.replace("small talk number 0", "")
    window = await runtime.store.window("local", session.id)
    assert not any("Novak" in m.text for m in window.messages), "what was recalled is not said again"


async def test_what_the_window_still_shows_is_not_recalled(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler is loud")
    await turn(runtime, session, "The boiler is loud again")
    result = await turn(runtime, session, "Is the boiler loud?")
    assert [s.type for s in result.steps] == ["summary"]


async def test_recall_that_fails_costs_no_turn(run, make_store, caplog):
    store = FaultyStore(make_store())
    runtime = await run("ok", store=store)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler is loud")
    store.fail("recall", ModelUnreachable("the index is gone"))
    assert await answer(runtime, session, "Is the boiler loud?") == "ok"
    assert "the index is gone" in caplog.text


async def test_the_recall_tool_finds_whole_turns_and_facts(run):
    recalled = calling("recall", query="what was wrong with the boiler?")
    runtime = await run(
        model=ScriptedModel(
            lambda request: recalled if request.messages[-1]["content"].endswith("] go") else "ok"
        )
    )
    session = await runtime.start_session(window=SMALL)
    await runtime.remember(session.id, "the boiler is from 2011")
    await fill(runtime, session, "The boiler leaks at the valve")
    result = await turn(runtime, session, "go")
    found = json.loads(next(s.detail["content"] for s in result.steps if s.type == "tool_result"))
    assert found["facts"] == ["the boiler is from 2011"]
    [first, *_] = found["turns"]
    assert first["said"] == [
        {"role": "user", "text": "The boiler leaks at the valve"},
        {"role": "assistant", "text": "ok"},
    ]
    assert first["date"].startswith("2026-01-01T00:00")


async def test_another_session_s_turns_are_not_recalled(run):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    mine, other = [await runtime.start_session(window=SMALL) for _ in range(2)]
    await fill(runtime, other, "The boiler leaks at the valve")
    await fill(runtime, mine)
    assert [s.type for s in (await turn(runtime, mine, "What about the boiler?")).steps] == ["summary"]


class Meanings:
    """An embedder that knows two words for the same thing."""

    name = "meanings"
    words = (("boiler", "heater"), ("talk",), ("cat", "pet"))

    def __init__(self):
        self.texts = []
        self.fails = self.closed = False

    async def close(self):
        self.closed = True

    async def embed(self, texts):
        if self.fails:
            raise ModelUnreachable("no embeddings today")
        self.texts += texts
        return [[0.01 + any(w in text for w in same) for same in self.words] for text in texts]


async def test_with_an_embedder_turns_are_found_by_their_meaning(run, make_store):
    embedder, model, store = Meanings(), ScriptedModel("ok"), make_store()
    runtime = await run(model=model, embedder=embedder, store=store)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks at the valve", turns=16)
    await runtime.wait_for_background()
    vectors = await store.vectors("local", session.id)
    assert len(vectors) >= 12
    turns = [text for text in embedder.texts if "\n" in text]
    assert len(turns) == len(set(turns)) == len(vectors), "each turn is embedded once, and whole"
    await turn(runtime, session, "How is the heater?")
    assert "The boiler leaks at the valve" in system_texts(model.requests[-1])[-1]
    embedder.fails = True
    assert await answer(runtime, session, "How is the pet?") == "ok"


async def test_a_summary_by_the_model_takes_the_digest_s_place_off_the_turn_s_path(run):
    def line(request):
        if "Summarise" in request.messages[0]["content"]:
            return f"They talked. ({request.messages[1]['content'].count('small talk')})"
        return "ok"

    model = ScriptedModel(line)
    runtime = await run(model=model, summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary.startswith("They talked.")
    assert memory.digest == ""
    await turn(runtime, session)
    assert memory.summary in system_texts(model.requests[-1])[1]
    stats = (await runtime.get_session(session.id)).stats
    assert stats.model_calls == stats.turns + 1


@pytest.mark.parametrize("line", ["", "   ", ModelUnreachable("no summary today")])
async def test_a_summary_that_fails_or_is_empty_leaves_the_digest(run, line):
    class Model(ScriptedModel):
        async def stream(self, request):
            summary = "Summarise" in request.messages[0]["content"]
            async for delta in ScriptedModel(line if summary else "ok").stream(request):
                yield delta

    runtime = await run(model=Model("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "error E-500 at /api/users/123", turns=5)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary == ""
    assert "E-500" in memory.digest


async def test_a_summary_covers_what_an_earlier_one_has_failed_to(run):
    failing = True

    def line(request):
        if "Summarise" not in request.messages[0]["content"]:
            return "ok"
        return "" if failing else " ".join(re.findall(r"E-\d+", request.messages[1]["content"]))

    runtime = await run(model=ScriptedModel(line), summaries=True)
    session = await runtime.start_session(window=SMALL)
    for n in range(12):
        failing = n < 8
        await turn(runtime, session, f"error E-{n}00")
        await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    window = await runtime.store.window("local", session.id)
    known = memory.summary + memory.digest + " ".join(m.text for m in window.messages)
    assert all(f"E-{n}00" in known for n in range(12))
    assert memory.summary


async def test_a_summary_that_was_cut_off_is_none(run):
    def line(request):
        cut_off = Answer("They talked about the", stop_reason="length")
        return cut_off if "Summarise" in request.messages[0]["content"] else "ok"

    runtime = await run(model=ScriptedModel(line), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session)
    await runtime.wait_for_background()
    memory = (await runtime.get_session(session.id)).memory
    assert memory.summary == ""
    assert "small talk number 0" in memory.digest


async def test_a_summary_is_kept_although_the_session_changes_meanwhile(run, make_store):
    store = FaultyStore(make_store())
    runtime = await run(
        lambda r: "A summary." if "Summarise" in r.messages[0]["content"] else "ok",
        summaries=True,
        store=store,
    )
    session = await runtime.start_session(window=SMALL)
    store.fail("save_session", SessionChanged("changed"), times=2)
    await fill(runtime, session)
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).memory.summary == "A summary."


class Failing(Meanings):
    """An embedder that raises `error` once that is set."""

    error = None

    async def embed(self, texts):
        if self.error is not None:
            raise self.error
        return await super().embed(texts)


@pytest.mark.parametrize(
    "error", [OSError("no"), KeyError("data"), ValueError("nan"), ModelUnreachable("no")]
)
async def test_an_embedder_that_fails_costs_no_turn(run, error):
    embedder = Failing()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=16)
    await runtime.wait_for_background()
    embedder.error = error
    assert await answer(runtime, session, "How is the boiler?") == "ok"


async def test_vectors_of_another_embedder_are_made_anew_and_not_compared(run, make_store):
    store, first = make_store(), Meanings()
    runtime = await run("ok", embedder=first, store=store)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=12)
    await runtime.wait_for_background()
    await runtime.close()
    other = Meanings()
    other.name = "other"
    again = await run("ok", embedder=other, store=store)
    result = await turn(again, session, "How is the heater?")
    assert [s.type for s in result.steps] == ["summary"]
    await fill(again, session, turns=4)
    await again.wait_for_background()
    assert {v.model for v in await store.vectors("local", session.id)} == {"other"}
    assert other.closed is False
    await again.close()
    assert other.closed


async def test_usage_of_a_summary_is_counted_as_reported(run):
    class Model(ScriptedModel):
        async def stream(self, request):
            async for delta in super().stream(request):
                yield Usage(100, 10) if isinstance(delta, Usage) else delta

    runtime = await run(model=Model("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).stats.input_tokens == 600


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            ["Should I run the dishwasher or wait for the sun?"],
            "Should I run the dishwasher or wait for the sun?",
        ),
        (
            [f"The boiler pressure is {n} bar again" for n in range(6)],
            "What about the boiler pressure, was it low?",
        ),
    ],
)
async def test_a_question_asked_again_and_a_habit_recall_nothing(run, said, asked):
    runtime = await run("ok")
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, *said)
    assert [step.type for step in (await turn(runtime, session, asked)).steps] == ["summary"]


async def test_a_turn_is_recalled_from_its_question_on_and_nothing_that_is_in_sight(run):
    async def look(arguments, context):
        return "seen"

    tool = ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")

    def line(request):
        calls = [m for m in request.messages if m["role"] == "tool"]
        if "heron" in str(request.messages) and len(calls) < 12:
            return calling("look", f"c{len(calls)}")
        return "It stands in the pond." if len(calls) == 12 else "ok"

    runtime = await run(model=ScriptedModel(line), tools=[tool])
    wide = WindowLimits(max_turns=3, evict_to=1.0)
    session = await runtime.start_session(window=wide, budgets=Budgets(max_steps=20))
    await turn(runtime, session, "Where is the heron?")
    for n in range(3):
        await turn(runtime, session, f"small talk number {n}")
    found = await recall(runtime.store, "local", session.id, "the pond")
    assert found[0].messages[0].message.text == "Where is the heron?"
    assert found[0].messages[-1].message.text == "It stands in the pond."
    assert not any(m.in_window for found_turn in found for m in found_turn.messages)


async def test_a_full_digest_drops_its_older_half_at_once(run):
    runtime = await run("ok")
    session = await runtime.start_session(window=WindowLimits(max_turns=2, evict_to=0.5))
    beginnings, moved = set(), 0
    for n in range(60):
        await turn(runtime, session, f"error E-{n} " + " ".join(f"/path/{n}/{k}" for k in range(12)))
        digest = (await runtime.get_session(session.id)).memory.digest
        assert TokenCounter().count_text(digest) <= 2000
        moved += bool(digest) and digest[:20] not in beginnings
        beginnings.add(digest[:20])
    assert 2 <= moved <= 8


async def test_a_summary_does_not_undo_what_has_changed_meanwhile(run):
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            if "Summarise" in request.messages[0]["content"]:
                asked.set()
                await go_on.wait()
            async for delta in super().stream(request):
                yield delta

    runtime = await run(model=Slow("ok"), summaries=True)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, turns=5)
    await asyncio.wait_for(asked.wait(), 10)
    latest = await runtime.get_session(session.id)
    memory = replace(latest.memory, summary="another one", digest="")
    await runtime.store.save_session(replace(latest, memory=memory))
    go_on.set()
    await runtime.wait_for_background()
    assert (await runtime.get_session(session.id)).memory.summary == "another one"
