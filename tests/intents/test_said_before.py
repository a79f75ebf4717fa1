"""Questions about what was said before, in long, copied and moved conversations."""

from datetime import timedelta

import pytest

from sash.testing import ScriptedModel
from sash.values.sessions import SessionPolicy, WindowLimits
from tests.intents.speaker import Speaker, in_demo_house

FEW_TURNS = WindowLimits(max_turns=4, evict_to=0.5)
MODEL = "The model answers."
CELLO = "I bought a cello for Mira for 1450 euros"
FIRST = "Hello from the garden"


async def start(house, **options):
    """Return a speaker in another session of a house, with a small window."""
    runtime = house.runtime
    session = await runtime.start_session(window=FEW_TURNS, policy=SessionPolicy(), **options)
    return Speaker(runtime, house.home, house.clock, session)


async def copy(speaker, how):
    """Return a speaker in a copy of the session."""
    runtime, session_id = speaker.runtime, speaker.session.id
    if how == "fork":
        session = await runtime.fork_session(session_id)
    else:
        exported = await runtime.export_session(session_id)
        await runtime.delete_session(session_id)
        exported["continuations"], exported["steps"] = [], []
        for stored in exported["messages"]:
            stored["continuation_id"] = None
        session = await runtime.import_session(exported | {"signature": ""})
    return Speaker(runtime, speaker.home, speaker.clock, session)


async def talk_of_cello(house):
    speaker = await start(house)
    await speaker.say(FIRST, CELLO, *(f"the neighbour has {n} hens" for n in range(3, 11)))
    return speaker


@pytest.mark.parametrize("how", ["fork", "import"])
async def test_a_copied_session_knows_what_was_said(how):
    async with in_demo_house() as house:
        speaker = await talk_of_cello(house)
        house.clock.advance(timedelta(days=1).total_seconds())
        copied = await copy(speaker, how)
        about = await copied.say("What did I say about the cello?")
        assert CELLO in about and "yesterday" in about
        assert CELLO in await copied.say("What did we talk about yesterday?")
        assert FIRST in await copied.say("What was the first thing I said?")


async def test_a_model_is_asked_what_the_transcript_does_not_tell():
    async with in_demo_house(ScriptedModel(MODEL)) as house:
        copied = await copy(await talk_of_cello(house), "fork")
        for text in ("What did I say about the violin?", "What did we talk about last month?"):
            assert await copied.say(text) == MODEL


async def test_the_first_sentence_is_that_of_the_transcript_however_long_it_is():
    async with in_demo_house() as house:
        speaker = await start(house)
        for text in (FIRST, *(f"the neighbour has {n} hens" for n in range(3, 220))):
            await house.runtime.record_turn(speaker.session.id, text, "I see.")
        assert "219 hens" in await speaker.say("What was the last thing I said?")
        assert FIRST in await speaker.say("What was the first thing I said?")


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("de", "Was haben wir vor zwei Tagen besprochen?"),
        ("de", "Worüber haben wir vor zwei Tagen gesprochen?"),
        ("de", "Worüber haben wir vorgestern geredet?"),
        ("en", "What did we talk about two days ago?"),
        ("en", "What did we discuss the day before yesterday?"),
        ("fr", "De quoi avons-nous parlé avant-hier ?"),
        ("fr", "De quoi avons-nous parlé il y a deux jours ?"),
        ("es", "¿De qué hablamos anteayer?"),
        ("es", "¿De qué hablamos hace dos días?"),
        ("it", "Di cosa abbiamo parlato l'altro ieri?"),
        ("it", "Di cosa abbiamo parlato due giorni fa?"),
        ("nl", "Waar hebben we het twee dagen geleden over gehad?"),
        ("nl", "Wat hebben we eergisteren besproken?"),
    ],
)
async def test_a_question_about_an_earlier_day_is_answered_with_what_mattered(language, question):
    async with in_demo_house() as house:
        speaker = await start(house)
        trivial = [f"turn on the light in the {room}" for room in ("kitchen", "hallway", "bedroom")]
        await speaker.say(
            "hello", *trivial, "The plumber Pavlik repaired the tap", *trivial, *trivial, "thanks"
        )
        house.clock.advance(timedelta(days=2).total_seconds())
        answer = await speaker.say(question, language=language)
        assert "Pavlik" in answer and "light" not in answer and "thanks" not in answer
        assert [citation.text for citation in speaker.result.response.citations] == [
            "The plumber Pavlik repaired the tap"
        ]


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("de", "Was habe ich für Chloé gekauft?"),
        ("en", "What did I buy for Chloé?"),
        ("fr", "Qu'est-ce que j'ai acheté pour Chloé ?"),
        ("es", "¿Qué compré para Chloé?"),
        ("it", "Cosa ho comprato per Chloé?"),
        ("nl", "Wat heb ik voor Chloé gekocht?"),
    ],
)
async def test_a_question_about_an_own_deed_is_no_question_about_the_calendar(language, question):
    said = {
        "de": "Ich habe für Chloé eine Geige gekauft",
        "en": "I bought a violin for Chloé",
        "fr": "J'ai acheté un violon pour Chloé",
        "es": "Compré un violín para Chloé",
        "it": "Ho comprato un violino per Chloé ieri",
        "nl": "Ik heb voor Chloé een viool gekocht",
    }[language]
    async with in_demo_house(ScriptedModel(MODEL)) as house:
        assert await house.say(question, language=language) == MODEL
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say(said, language=language)
        assert said in await speaker.say(question, language=language)


async def test_a_question_needs_not_all_words_of_what_was_said():
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say("Thomas said that the maintenance code is HK-4471-B.")
        assert "HK-4471-B" in await speaker.say("What was the maintenance code Thomas mentioned?")
        answer = await speaker.say("What was the maintenance code of the lift?")
        assert "not sure" in answer and "HK-4471-B" in answer


async def test_a_question_is_answered_in_its_own_language():
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say(
            "Heute kam Herr Kowalczyk und hat an der Wärmepumpe das Ventil erneuert", language=None
        )
        await speaker.say(
            "turn on the kitchen light", "what time is it?", "which lights are on?", language=None
        )
        answer = await speaker.say("Was hat Herr Kowalczyk an der Wärmepumpe erneuert?", language=None)
        assert answer.startswith("Du hast heute um 9:30 Uhr gesagt: „Heute kam Herr Kowalczyk")


async def test_an_old_sentence_is_quoted_with_its_date_and_cited_and_the_question_is_not():
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say(CELLO)
        house.clock.advance(timedelta(days=100).total_seconds())
        for _ in range(2):
            answer = await speaker.say("What did I say about the cello?")
            assert answer == f"You said on 18 January at 9:30: “{CELLO}”."
        [cited] = speaker.result.response.citations
        assert cited.text == CELLO and cited.at.date().isoformat() == "2026-01-18"
        house.clock.advance(timedelta(days=400).total_seconds())
        assert "on 18 January 2026" in await speaker.say("What did I say about the cello?")


async def test_a_topic_within_a_german_question_is_found():
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say("Das Cello ist verstimmt", "Die Nachbarin hat Hühner", language="de")
        answer = await speaker.say("Was habe ich über das Cello gesagt?", language="de")
        assert "verstimmt" in answer and "Hühner" not in answer


async def test_what_was_said_in_other_words_is_not_denied():
    async with in_demo_house() as house:
        speaker = await start(house)
        await speaker.say("The plumber Pavlik repaired the tap")
        assert "Pavlik" in await speaker.say("Did I say that the plumber came?")
        assert "you did not" in await speaker.say("Did I mention a violin?")
        assert "Pavlik" in await speaker.say("Did I say that Pavlik repaired the tap?")


@pytest.mark.parametrize(
    "question", ["Was haben wir vor zwei Tagen besprochen?", "What did we talk about two days ago?"]
)
async def test_a_question_about_the_conversation_moves_no_promise(question):
    async with in_demo_house() as speaker:
        await speaker.say("Turn on the kitchen light tomorrow at 7")
        [before] = await speaker.runtime.list_waiting(speaker.session.id)
        await speaker.say(question)
        assert [turn.at for turn in await speaker.runtime.list_waiting(speaker.session.id)] == [before.at]
