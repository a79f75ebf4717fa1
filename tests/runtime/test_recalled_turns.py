"""Evicted turns that recall brings back into the prompt."""

import asyncio
import json

import pytest

from sash.engine.automatic_recall import Evidence, is_enough
from sash.engine.recall import Found, OldMessages, QuestionContext, group_by_turn, render
from sash.errors import ModelUnreachable
from sash.memory.recall_question import read_question
from sash.memory.recall_ranking import WordHits
from sash.memory.tokens import count_text
from sash.ports.tools import ToolSpec
from sash.testing import FaultyStore, ScriptedModel, calling
from sash.values.sessions import Budgets, WindowLimits
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import answer, system_texts, turn


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
    store.fail("find_words", AssertionError("looked up again"))
    model = ScriptedModel("yes")
    second = await run(model=model, store=store)
    await second.resume(sent.id)
    await second.await_continuation(sent.id, timeout_s=10)
    assert any("loud in the night" in text for text in system_texts(model.requests[0]))


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
    assert retrieval.detail["query"] == ["boiler", "serviced"]
    assert len(retrieval.detail["scores"]) == len(retrieval.detail["message_ids"]) > 0
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
    store.fail("find_words", ModelUnreachable("the index is gone"))
    assert await answer(runtime, session, "Is the boiler loud?") == "ok"
    assert f"no old messages were looked up for session {session.id}: the index is gone" in caplog.text


async def test_the_recall_tool_finds_whole_turns_and_facts(run):
    recalled = calling("recall", query="what was wrong with the boiler?")
    runtime = await run(
        model=ScriptedModel(
            lambda request: recalled if request.messages[-1]["content"].endswith("] go") else "ok"
        )
    )
    session = await runtime.start_session(window=SMALL)
    await runtime.remember("the boiler is from 2011", session_id=session.id)
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
    words = (("boiler", "heater"), ("talk",), ("cat", "pet"), ("ok",))

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


async def test_with_an_embedder_messages_are_found_by_their_meaning(run, make_store):
    embedder, model, store = Meanings(), ScriptedModel("ok"), make_store()
    runtime = await run(model=model, embedder=embedder, store=store)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks at the valve", turns=16)
    await runtime.wait_for_background()
    result = await turn(runtime, session, "What was wrong with the heater?")
    assert "retrieval" in [step.type for step in result.steps]
    assert "The boiler leaks at the valve" in system_texts(model.requests[-1])[-1]
    embedder.fails = True
    assert await answer(runtime, session, "How is the pet?") == "ok"


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
async def test_an_embedder_that_fails_costs_no_turn(run, error, caplog):
    embedder = Failing()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=16)
    await runtime.wait_for_background()
    embedder.error = error
    caplog.clear()
    assert await answer(runtime, session, "How was the heater?") == "ok"
    assert "recall uses words only" in caplog.text


async def test_the_log_names_the_effect_and_the_remedy_of_an_embedder_that_fails(run, caplog):
    embedder = Failing()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The boiler leaks", turns=16)
    await runtime.wait_for_background()
    embedder.error = ModelUnreachable("no embeddings today")
    await answer(runtime, session, "What was wrong with the heater?")
    said = "the embedder failed, so recall uses words only: no embeddings today; run `sash doctor`"
    assert said in caplog.text
    await fill(runtime, session)
    await runtime.wait_for_background()
    said = (
        f"embedding old messages of session {session.id} failed, the next eviction tries again: "
        "no embeddings today; run `sash doctor`"
    )
    assert said in caplog.text


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
    result = await turn(again, session, "How was the heater?")
    assert [s.type for s in result.steps] == ["summary"]
    await fill(again, session, turns=4)
    await again.wait_for_background()
    assert {v.model for v in await store.vectors("local", session.id)} == {"other"}
    assert other.closed is False
    await again.close()
    assert other.closed


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


async def test_a_turn_is_recalled_from_its_question_on_and_nothing_that_is_in_sight(run, clock):
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
    old = OldMessages(runtime.store, "local", session.id)
    found = await old.find("the pond", QuestionContext(clock.now()))
    [best, *others] = group_by_turn(await old.read_best(found, len, 1000))
    assert [each.stored.message.text for each in best] == ["Where is the heron?", "It stands in the pond."]
    assert not any(each.stored.in_window for each in [*best, *(each for turn in others for each in turn)])


async def test_what_is_recalled_fits_its_budget_with_its_dates(run, clock):
    runtime = await run("ok")
    session = await runtime.start_session(window=SMALL)
    for n in range(40):
        await turn(runtime, session, f"the boiler {n}")
        clock.advance(7200)
    await fill(runtime, session)
    old = OldMessages(runtime.store, "local", session.id)
    found = await old.find("boiler", QuestionContext(clock.now()))
    best = await old.read_best(found, count_text, 200)
    assert len(best) > 5
    assert count_text(render(best)) <= 200


async def test_a_statement_with_most_words_of_a_question_is_no_earlier_question(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The licence plate of the caravan was KX71 OBD")
    await turn(runtime, session, "What was the licence plate of the caravan?")
    assert "user: The licence plate of the caravan was KX71 OBD" in system_texts(model.requests[-1])[-1]


def test_a_question_about_the_past_needs_less_evidence_than_one_about_the_home():
    past, home = (
        Found(read_question(text), (), WordHits((), {}, 100), {})
        for text in ("what did the boiler cost", "is the boiler on")
    )
    enough = [[is_enough(Evidence(weight), found) for found in (past, home)] for weight in (1, 3, 10)]
    assert enough == [[False, False], [True, False], [True, True]]
