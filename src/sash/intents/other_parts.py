"""Asks the parts that understand other sentences than those about devices, one after the other."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from sash.intents.about_sash import answer_about_sash
from sash.intents.calendar import answer_calendar_question
from sash.intents.memory_questions import answer_memory_question, report_name
from sash.intents.said_before import answer_about_conversation
from sash.intents.shopping import answer_list_sentence, report_items
from sash.intents.situation import Reply, Situation
from sash.intents.small_talk import answer_small_talk
from sash.intents.statements import note_statement
from sash.intents.sun import answer_sun_question
from sash.intents.weather import answer_weather_question

Part = Callable[[Situation], Awaitable[Reply | None]]
# The first one with a reply is taken. A guess is kept until another part is certain.
_TALK_PARTS: tuple[Part, ...] = (
    answer_small_talk,
    answer_about_conversation,
    answer_about_sash,
    answer_memory_question,
    note_statement,
)
_PARTS: tuple[Part, ...] = (
    *_TALK_PARTS,
    answer_list_sentence,
    answer_calendar_question,
    answer_sun_question,
    answer_weather_question,
)


async def answer_other(situation: Situation) -> Reply | None:
    """Return the reply of the first part that understands the sentence; None if none does."""
    if situation.utterance.results:
        return report_items(situation) or report_name(situation)
    return await _ask_parts(situation, _PARTS)


async def answer_talk(situation: Situation) -> Reply | None:
    """Return the reply to a sentence that needs no home; None for any other sentence."""
    if situation.utterance.results:
        return report_name(situation)
    return await _ask_parts(situation, _TALK_PARTS)


async def _ask_parts(situation: Situation, parts: tuple[Part, ...]) -> Reply | None:
    guess: Reply | None = None
    for answer in parts:
        reply = await answer(situation)
        if reply is not None and not reply.is_guess:
            return reply
        guess = guess or reply
    return replace(guess, is_guess=True) if guess else None
