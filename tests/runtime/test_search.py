"""Searches of transcripts: questions, times, speakers, and a budget of tokens."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC

import pytest

from sash import Runtime
from sash.demo.simulated_home import SimulatedHome
from sash.errors import InvalidLimit
from sash.memory.tokens import TokenCounter
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from tests.home.small_home import LAYOUT, STATES
from tests.runtime.small_window import SMALL, fill
from tests.runtime.talk import system_texts, turn

DAY_S = 86_400


def texts(found):
    return [stored.message.text for stored in found]


async def talk(runtime, clock, session, *turns, seconds=60):
    for asked, answered in turns:
        await runtime.record_turn(session.id, asked, answered)
        clock.advance(seconds)


async def test_a_question_finds_the_answer_around_its_words_and_words_find_themselves(run, clock):
    runtime = await run()
    session, other = await runtime.start_session(), await runtime.start_session()
    await talk(runtime, clock, session, ("what do I need for the bass", "A sock and a metre of string."))
    await talk(runtime, clock, other, ("how is the weather", "It rains."), ("good night", "Sleep well."))
    assert "A sock and a metre of string." in texts(await runtime.search("what did I need for the bass?"))
    assert texts(await runtime.search("bass")) == ["what do I need for the bass"]
    assert texts(await runtime.search("zebra?")) == []


async def test_a_budget_skips_what_does_not_fit_and_is_filled_with_what_stands_around(run, clock):
    runtime = await run()
    session = await runtime.start_session()
    long = "the boiler " + "makes a noise " * 60
    await talk(
        runtime,
        clock,
        session,
        (long, "I see, that is loud, and it should not be so loud. " * 4),
        ("who repairs it", "Mr Novak repairs the boiler."),
    )
    wanted = ["Mr Novak repairs the boiler.", "who repairs it"]
    transcript = (await runtime.store.window("local", session.id)).messages
    budget = sum(each.token_count for each in transcript if each.text in wanted)
    found = await runtime.search("boiler", max_tokens=budget)
    assert texts(found) == wanted
    assert sum(each.message.token_count for each in found) <= budget
    with pytest.raises(InvalidLimit, match="max_tokens"):
        await runtime.search("boiler", max_tokens=0)


async def test_a_question_with_a_time_and_no_topic_finds_what_was_said_then(run, clock):
    runtime = await run()
    session = await runtime.start_session()
    await talk(runtime, clock, session, *((f"old {n}", f"old answer {n}") for n in range(30)))
    clock.advance(3 * DAY_S)
    await talk(
        runtime, clock, session, ("the tap drips", "Call the plumber."), ("and the roof", "It is dry.")
    )
    clock.advance(DAY_S)
    found = texts(await runtime.search("what did we talk about yesterday?", session_id=session.id))
    assert found == ["the tap drips", "Call the plumber.", "and the roof", "It is dry."]
    assert texts(await runtime.search("what did we say two months ago?", session_id=session.id)) == []


async def test_a_question_with_a_time_looks_through_the_sessions_of_that_time(run, clock):
    runtime = await run()
    first, second = await runtime.start_session(), await runtime.start_session()
    await talk(runtime, clock, first, ("the tap drips", "Call the plumber."), ("and the roof", "It is dry."))
    await talk(runtime, clock, second, ("who sang that", "Nina Simone."))
    clock.advance(DAY_S)
    await talk(runtime, clock, await runtime.start_session(), ("good morning", "Hello."))
    found = texts(await runtime.search("what did I ask yesterday?"))
    assert sorted(found[:2]) == ["the tap drips", "who sang that"]
    assert sorted(found[2:]) == ["Call the plumber.", "It is dry.", "Nina Simone.", "and the roof"]


async def test_a_long_period_is_told_by_the_beginning_of_each_conversation(run, clock):
    runtime = await run()
    session = await runtime.start_session()
    for day in range(1, 6):
        turns = ((f"day {day} turn {n}", "ok") for n in range(20))
        await talk(runtime, clock, session, *turns)
        clock.advance(DAY_S)
    found = texts(await runtime.search("what did we talk about this month?", session_id=session.id, limit=10))
    assert found[::2] == [f"day {day} turn 0" for day in range(1, 6)]


async def test_a_question_about_a_time_brings_what_was_said_into_the_prompt(run, clock):
    model = ScriptedModel("ok")
    runtime = await run(model=model)
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The tap in the garage drips since the storm")
    clock.advance(DAY_S)
    await turn(runtime, session, "What did we talk about yesterday?")
    assert "user: The tap in the garage drips" in system_texts(model.requests[-1])[-1]
    await turn(runtime, session, "turn it off")
    assert "user: The tap in the garage drips" not in system_texts(model.requests[-1])[-1]


async def test_a_name_in_a_question_is_its_speaker(run, clock):
    runtime = await run()
    session = await runtime.start_session()
    for said in ("The sofa should be blue", "I think the sofa should be red and large"):
        await talk(runtime, clock, session, (said, "ok"), seconds=DAY_S)
    export = await runtime.export_session(session.id)
    await runtime.delete_session(session.id)
    blue, _, red, _ = export["messages"]
    blue["message"]["name"], red["message"]["name"] = "Paul", "Ida"
    await runtime.import_session(export)
    assert texts(await runtime.search("the sofa"))[0] == "The sofa should be blue"
    assert texts(await runtime.search("what did Ida say about the sofa?"))[0].endswith("red and large")


async def test_a_feast_without_a_topic_means_its_days_and_the_language_is_that_of_the_session(run, clock):
    runtime = await run()
    session = await runtime.start_session(preferences={"language": "es"})
    clock.advance(358 * DAY_S)
    await talk(runtime, clock, session, ("el pavo pesa seis kilos", "De acuerdo."))
    clock.advance(20 * DAY_S)
    assert texts(await runtime.search("what did we talk about at Christmas?"))[0].startswith("el pavo")
    await talk(runtime, clock, session, ("llama al fontanero", "Hecho."))
    clock.advance(3 * DAY_S)
    found = texts(await runtime.search("qué dije hace tres días", session_id=session.id))
    assert found[0] == "llama al fontanero"


async def test_a_question_about_a_time_leaves_damaged_messages_out(tmp_path, clock):
    path = tmp_path / "sash.db"
    async with Runtime(
        SqliteStore(path, clock=clock), ScriptedModel("ok"), clock=clock, time_zone=UTC
    ) as runtime:
        session = await runtime.start_session()
        await talk(runtime, clock, session, ("the tap drips", "I see."), ("good night", "Sleep well."))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE messages SET body = '{bad' WHERE position = 4")
        clock.advance(DAY_S)
        found = texts(await runtime.search("what did we talk about yesterday?"))
        assert found == ["the tap drips", "I see.", "good night"]


async def test_a_question_about_a_time_reaches_sessions_behind_many_newer_ones(run, clock, monkeypatch):
    monkeypatch.setattr("sash.engine.transcript_search.MAX_SESSIONS", 3)
    runtime = await run()
    old = await runtime.start_session()
    await talk(runtime, clock, old, ("the tap drips", "Call the plumber."))
    clock.advance(DAY_S)
    for _ in range(7):
        await runtime.start_session()
    assert texts(await runtime.search("what did we talk about yesterday?"))[0] == "the tap drips"


async def test_messages_that_rank_alike_come_in_the_same_order_each_time(run, clock):
    runtime = await run()
    sessions = [await runtime.start_session() for _ in range(5)]
    for session in sessions:
        await runtime.record_turn(session.id, "the tap drips", "Call the plumber.")
    found = await runtime.search("tap")
    assert [stored.session_id for stored in found] == sorted(session.id for session in sessions)


async def test_a_message_that_cannot_fit_a_budget_is_not_counted(run, clock, monkeypatch):
    runtime = await run()
    session = await runtime.start_session()
    await talk(runtime, clock, session, ("the tap " * 40_000, "ok"), ("the tap drips", "ok"))
    counted = []
    count = TokenCounter.count_text
    monkeypatch.setattr(
        TokenCounter, "count_text", lambda self, text: counted.append(text) or count(self, text)
    )
    assert "the tap drips" in texts(await runtime.search("tap", max_tokens=200))
    assert max(map(len, counted), default=0) < 40_000


class Meanings:
    """An embedder to which a tap and a faucet are the same."""

    name = "meanings"

    async def close(self): ...

    async def embed(self, texts):
        groups = ("tap", "faucet"), ("talk",), ("ok",), ("cat",)
        return [[0.01 + any(word in text for word in group) for group in groups] for text in texts]


async def test_a_question_in_one_session_finds_messages_of_similar_meaning(run):
    runtime = await run("ok", embedder=Meanings())
    session = await runtime.start_session(window=SMALL)
    await fill(runtime, session, "The tap drips since the storm", turns=16)
    await runtime.wait_for_background()
    question = "Where is the faucet that drops water?"
    assert texts(await runtime.search(question, session_id=session.id))[0] == "The tap drips since the storm"
    assert "The tap drips since the storm" not in texts(await runtime.search(question))


async def test_a_search_knows_the_language_of_the_house(live):
    runtime = await live(home=SimulatedHome(replace(LAYOUT, language="de"), STATES, clock=FakeClock()))
    await runtime.home_ready()
    session = await runtime.start_session()
    await runtime.record_turn(session.id, "der Hahn tropft", "Rufe den Klempner.")
    runtime.clock.advance(2 * DAY_S)
    assert texts(await runtime.search("vor zwei Tagen?"))[0] == "der Hahn tropft"


async def test_a_question_that_was_asked_before_is_embedded_once(run):
    class Counting(Meanings):
        asked = 0

        async def embed(self, texts):
            self.asked += "faucet" in texts[0]
            return await super().embed(texts)

    embedder = Counting()
    runtime = await run("ok", embedder=embedder)
    session = await runtime.start_session(window=SMALL)
    question = "What was wrong with the faucet in the cellar?"
    await fill(runtime, session, "The tap in the cellar drips", turns=16)
    await turn(runtime, session, question)
    await fill(runtime, session, turns=16)
    await runtime.wait_for_background()
    embedder.asked = 0
    await turn(runtime, session, question)
    assert embedder.asked == 1
    await runtime.search(question, session_id=session.id)
    assert embedder.asked == 2
