"""Understands a new time for what was promised last: "make that an hour", "no, at eight"."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import find_moment
from sash.intents.sentence.time_words import NO_TIME, TimeWords
from sash.intents.situation import Situation
from sash.values.continuations import Continuation
from sash.values.waiting_turns import WaitingTurn

# The seconds of an hour, of a minute and of a second.
_UNITS = (3600, 60, 1)


def read_new_time(
    clause: Clause, situation: Situation, turn: WaitingTurn, said_s: float | None = None
) -> datetime | None:
    """Return the moment that a sentence names, if it says nothing else; None for other sentences.

    An hour without a day is the one that is closest to the time of the waiting turn.
    After a timer for ten minutes, or "in ten minutes", "make it 15" means minutes. `said_s` is the duration
    that the user named before.
    """
    is_corrected = clause.is_negated and "," in clause.text  # "Not ten, twenty".
    is_change = clause.has_make or "correct" in clause.refer or clause.is_fragment or is_corrected
    if clause.words or clause.do or clause.ask or clause.is_question or not is_change:
        return None
    time = clause.time
    if time.is_empty and clause.amount.value is not None and clause.amount.unit is None:
        if duration_s := read_duration(turn, situation) or said_s:
            unit = next(unit for unit in _UNITS if duration_s % unit == 0)
            return situation.now + timedelta(seconds=clause.amount.value * unit)
        time = TimeWords(role="at", hour=int(clause.amount.value), is_bare=True)
    if time == NO_TIME or time.role == "ago" or time.is_invalid or time.is_repeated or time.is_later:
        return None
    if time.duration_s and time.role != "in" and _names_clock(turn, situation):
        time = TimeWords(role="at", hour=int(time.duration_s // 3600), is_bare=True)
    at = find_moment(replace(time, role="in") if time.duration_s else time, situation.now)
    if at is None or turn.at is None or time.hour is None or time.day is not None or time.part is not None:
        return at
    zoned = turn.at.astimezone(situation.now.tzinfo)
    hours = {at.hour} if time.is_exact else {at.hour % 12, at.hour % 12 + 12}
    days = [zoned + timedelta(days=days) for days in (-1, 0, 1)]
    moments = [day.replace(hour=hour, minute=at.minute, second=0) for day in days for hour in hours]
    later = [moment for moment in moments if moment > situation.now]
    return min(later, key=lambda moment: abs(moment - zoned), default=at)


def read_said_duration(situation: Situation, turns: Sequence[Continuation]) -> float | None:
    """Return the seconds of the time that was named last, oldest turn first; None if it was no duration."""
    for turn in reversed(turns):
        sentence = situation.reader.read(turn.request.message)
        clauses = situation.reader.read_clauses_between(sentence, 0, len(sentence.words))
        times = [clause.time for clause in clauses if not clause.time.is_empty]
        if times:
            return times[-1].duration_s
    return None


def write_arguments(turn: WaitingTurn, at: datetime, situation: Situation) -> dict[str, Any]:
    """Return the tool arguments that schedule the same task for another time.

    In the texts of a timer, the new duration replaces the old one.
    """
    old_s, writer = read_duration(turn, situation), situation.writer
    new = writer.exact_duration((at - situation.now).total_seconds())

    def rename(text: str) -> str:
        return text if old_s is None else text.replace(writer.exact_duration(old_s), new)

    arguments: dict[str, Any] = {"summary": rename(turn.summary), "at": at.isoformat(timespec="seconds")}
    if turn.only_if:
        arguments["only_if"] = [
            {name: value for name, value in asdict(condition).items() if value} for condition in turn.only_if
        ]
    if turn.calls:
        arguments["calls"] = [call.arguments for call in turn.calls]
    if turn.say:
        arguments["say"] = rename(turn.say)
    return arguments


def _names_clock(turn: WaitingTurn, situation: Situation) -> bool:
    """Return whether a word for hours means a time of the day, as the Dutch "acht uur" does for an alarm."""
    says_clock = any(match.tag == "time.clock" for match in situation.sentence.matches)
    return says_clock and read_duration(turn, situation) is None


def read_duration(turn: WaitingTurn, situation: Situation) -> float | None:
    """Return the seconds that the summary of a timer names; None for other turns."""
    sentence = situation.reader.read(turn.summary)
    is_timer = any(match.value == "timer" for match in sentence.find("later"))
    clause = situation.reader.read_clause(sentence, 0, len(sentence.words))
    return clause.time.length_s if is_timer else None
