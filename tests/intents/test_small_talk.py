"""Small talk, the clock, and what Sash can do."""

import pytest

from sash.intents.small_talk import answer_small_talk, list_examples
from sash.ports.home import UNAVAILABLE
from tests.intents.everyday import Earlier, Talk, explanation


async def say(talk: Talk, text: str, **changes: object) -> str | None:
    reply = await answer_small_talk(talk.situate(text, **changes))  # type: ignore[arg-type]
    return reply.text if reply else None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("hey there!", "Hello!"),
        ("good morning sash", "Good morning!"),
        ("thank you very much", "You're welcome."),
        ("hello, how are you today?", "I am fine"),
        ("perfect, leave it like that", "Glad you like it."),
        ("never mind, thanks", "All right."),
        ("who are you?", "I am Sash"),
        ("do you speak German?", "German"),
        ("yes", "There is nothing to say yes to"),
        ("ok", "All right."),
    ],
)
async def test_small_talk_gets_a_short_answer(talk: Talk, text: str, answer: str) -> None:
    assert answer in (await say(talk, text) or "")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what time is it", "It is 14:00."),
        ("can you tell me what time it is?", "It is 14:00."),
        ("what day is it today?", "It is Saturday, 17 January 2026."),
        ("what's the date on friday", "On Friday is Friday, 23 January 2026."),
    ],
)
async def test_the_clock_and_the_calendar_are_read(talk: Talk, text: str, answer: str) -> None:
    assert await say(talk, text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "turn on the light",
        "is it cool in the bedroom?",
        "at what time was that",
        "what time is it in the kitchen",
        "what temperature is it",
        "thanks, and turn off the fan",
        "good night",
    ],
)
async def test_other_sentences_are_left_to_others(talk: Talk, text: str) -> None:
    assert await say(talk, text) is None


async def test_examples_are_things_of_the_home_that_work_now(talk: Talk) -> None:
    assert list_examples(talk.situate("help", area_id="bedroom")) == [
        "Turn on the bedroom ceiling light",
        "How warm is it in the bedroom?",
        "Close the bedroom blind",
        "Turn off the kitchen radio in 10 minutes",
        "Add butter to the shopping list",
    ]
    talk.home.set_state("light.bedroom_ceiling", UNAVAILABLE)
    talk.home.set_state("cover.bedroom_blind", UNAVAILABLE)
    answer = await say(talk, "what can you do?", area_id="bedroom") or ""
    assert "bedside lamp" in answer
    assert "living room blind" in answer


async def test_stop_means_what_runs_and_else_nothing(talk: Talk) -> None:
    assert await say(talk, "stop") == "All right."
    talk.home.set_state("media_player.kitchen_radio", "playing")
    assert await say(talk, "stop") is None


async def test_blame_offers_to_undo_only_what_was_done(talk: Talk) -> None:
    assert "undo" not in (await say(talk, "that was stupid") or "")
    acted = Earlier(explanations={None: explanation()})
    reply = await answer_small_talk(talk.situate("that was stupid", earlier=acted))
    assert reply is not None
    assert "undo that" in reply.text
    assert reply.is_guess
