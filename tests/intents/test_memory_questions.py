"""Questions about facts, and about what was said before."""

from datetime import timedelta

import pytest

from sash.intents.memory_questions import find_liked_number, report_name
from sash.intents.other_parts import answer_other
from sash.ports.intents import LocalCallResult
from tests.intents.everyday import NOW, Earlier, Talk, action, turn

FACTS = [
    "our cat is called Minka",
    "I like 21 degrees in the living room",
    "I like the bedroom at 17 degrees",
    "the spare key is under the flower pot",
    "the hallway lamp needs an E14 bulb",
    "mum's birthday is on the 4th of May",
    "the boiler showed E119 this morning",
    "my name is Tom",
]
TURNS = [
    turn("turn on the kitchen light", at=NOW - timedelta(days=1), actions=(action(),)),
    turn("my dishwasher shows error code F28 again", at=NOW - timedelta(minutes=9)),
    turn("remember that the wine is in the cellar", at=NOW - timedelta(minutes=8)),
    turn("how warm is it in the bedroom?", at=NOW - timedelta(minutes=5)),
]


async def ask(talk: Talk, text: str, facts: list[str] | None = None) -> str:
    earlier = Earlier(TURNS, FACTS if facts is None else facts)
    reply = await answer_other(talk.situate(text, earlier=earlier))
    return reply.text if reply else ""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what is the cat called?", "Your cat is called Minka."),
        ("whats my cats name again", "Your cat is called Minka."),
        ("do you know what our cat is called", "Your cat is called Minka."),
        ("how warm do i like the bedroom", "You like the bedroom at 17 degrees."),
        ("which temperature do I prefer in the living room?", "You like 21 degrees in the living room."),
        ("where is the spare key?", "The spare key is under the flower pot."),
        ("where did I put the spare key", "The spare key is under the flower pot."),
        ("which bulb does the hallway lamp need?", "The hallway lamp needs an E14 bulb."),
        ("when is mum's birthday", "Mum's birthday is on the 4th of May."),
        ("what was that code on the boiler", "The boiler showed E119 this morning."),
        ("what's my name?", "Your name is Tom."),
    ],
)
async def test_a_fact_is_told_in_the_second_person(talk: Talk, text: str, answer: str) -> None:
    assert await ask(talk, text) == answer


async def test_a_renamed_cat_has_its_newest_name_only(talk: Talk) -> None:
    facts = ["the cat is called Minka", "the cat is called Felix now"]
    assert await ask(talk, "what's the cat's name?", facts) == "The cat is called Felix now."


async def test_what_nobody_told_is_an_honest_no(talk: Talk) -> None:
    for text in ("what is the dog called?", "what's my favourite colour?", "how do I like my coffee?"):
        assert (await ask(talk, text)).startswith("You have not told me that.")
    assert await ask(talk, "what's my name?", []) == "You have not told me your name yet."
    assert (await ask(talk, "what do you know about me?", [])).startswith(
        "I have nothing noted about you yet."
    )


@pytest.mark.parametrize(
    "text",
    [
        "how warm is it in the bedroom",
        "is the kitchen light on?",
        "which lights are on in the hallway?",
        "set the living room to the temperature I like",
        "where is Anna?",
        "did you understand me",
        "call me at seven",
    ],
)
async def test_a_fact_never_answers_a_question_about_the_house(talk: Talk, text: str) -> None:
    assert await ask(talk, text) == ""


async def test_a_statement_is_found_and_a_request_to_remember_is_not(talk: Talk) -> None:
    said = await ask(talk, "which error code did my dishwasher show?")
    assert said == "You said today at 13:51: “my dishwasher shows error code F28 again”."
    assert await ask(talk, "where is the wine?", []) == ""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "what did I ask you first?",
            "The first thing you said was “turn on the kitchen light”, yesterday at 14:00.",
        ),
        ("what was the last thing I asked?", "The last thing you said was “how warm is it in the bedroom?”"),
        ("what did I ask you yesterday?", "Yesterday you said “turn on the kitchen light”."),
        ("what did I say about the dishwasher?", "You said “my dishwasher shows error code F28 again”."),
        ("did I ask you to turn on the kitchen light?", "Yes, yesterday at 14:00 you said"),
        ("did I ask you to turn off the kitchen light?", "No, you did not"),
        ("did I ask you to turn on the coffee machine?", "No, you did not"),
    ],
)
async def test_the_conversation_is_quoted(talk: Talk, text: str, answer: str) -> None:
    assert (await ask(talk, text)).startswith(answer)


async def test_a_name_is_noted_and_confirmed(talk: Talk) -> None:
    reply = await answer_other(talk.situate("my name is Tom"))
    assert reply is not None
    assert [(call.tool, call.arguments) for call in reply.calls] == [("remember", {"text": "my name is Tom"})]
    done = LocalCallResult("remember", '{"fact": "my name is Tom", "id": "f"}')
    confirmed = report_name(talk.situate("my name is Tom", results=[done]))
    assert confirmed is not None
    assert confirmed.text == "I will remember that your name is Tom."


async def test_the_liked_number_of_a_room_is_found(talk: Talk) -> None:
    situation = talk.situate("set the living room to the temperature I like")
    words = situation.reader.read_clauses(situation.sentence)[0].words
    assert find_liked_number(situation.reader, FACTS, words) == 21
    assert find_liked_number(situation.reader, ["I like it at 20.5 degrees"], words) == 20.5
    assert find_liked_number(situation.reader, ["I like the bedroom at 17 degrees"], words) is None
