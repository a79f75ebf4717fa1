"""Answers whether it was more or less than at another time: "was it colder than the night before"."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sash.errors import HomeError
from sash.intents.past.measurements import read_consumed, read_measured
from sash.intents.past.question import METERED, find_span
from sash.intents.past.sources import choose_sensors, find_meters, is_numeric, list_consumer_words
from sash.intents.past.span_words import SpanWords
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import Span
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Reply, Situation
from sash.ports.home import Entity

# The days before a time that tell what is usual.
USUAL_DAYS = 7
# Fewer days are not enough to tell it.
MIN_DAYS = 3
TOOL = "get_history"
_DAY = timedelta(days=1)
_UNFINISHED = timedelta(minutes=2)
# "More" is also an act: "more!".
_DIRECTIONS = frozenset({"up", "down"})
_COMPARED = frozenset({"warmer", "colder"})
# Numbers that differ by less than this part are alike.
ALIKE = 0.01


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two times: the one asked for and another one, or `count` others whose mean is meant."""

    span: Span
    said_span: str
    others: tuple[Span, ...]
    said_others: str


async def answer_comparison(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> Reply | None:
    """Return whether a number was higher at a time than at another; None for other questions."""
    said = {match.value for match in situation.sentence.find("compare")}
    refers = bool(clause.refer) or clause.tense == "past" or bool(said & {"more", "less"})
    is_comparison = ("usual" in said and refers) or ("than" in said and said & {"more", "less"})
    is_comparison = is_comparison or ("versus" in said and not clause.time.is_empty)
    is_asked = clause.is_question or clause.ask or clause.tense == "past"
    if not is_comparison or not is_asked or TOOL not in situation.utterance.tools:
        return None
    is_used = _is_used(situation, clause, entities)
    is_warmth = _COMPARED.intersection(clause.do) or "temperature" in clause.properties
    measured = {situation.index.get_device_class(entity.id) for entity in entities}
    is_number = bool(entities) and all(is_numeric(situation, entity) for entity in entities)
    if not is_used and not is_warmth and not is_number:
        return None
    compared = _read_times(situation, clause)
    if compared is None:
        return None
    chosen = (
        find_meters(situation, list_consumer_words(clause), entities, "energy")
        if is_used
        else entities
        if is_number and measured != {"temperature"}
        else choose_sensors(situation, replace(clause, properties=("temperature",)), entities)
    )
    if not chosen:
        return None
    try:
        text = await _compare(situation, chosen[0], compared, said, is_used=is_used)
    except HomeError:
        text = situation.writer.say("past.unreadable")
    return Reply(text, topic={"entity_ids": [chosen[0].id]})


def _is_used(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> bool:
    measured = {situation.index.get_device_class(entity.id) for entity in entities}
    named = {match.value for match in situation.sentence.find("property")} & METERED
    acts = set(clause.do) - _DIRECTIONS
    return bool(named or "used" in acts or (measured & METERED and not acts))


def _read_times(situation: Situation, clause: Clause) -> _Compared | None:
    """Return the two times of a comparison; None if one of them is not known."""
    sentence, reader, now = situation.sentence, situation.reader, situation.now
    marks = {match.value: match for match in sentence.find("compare")}
    parting = marks.get("than") or marks.get("versus")
    cut = parting.start if parting else len(sentence.words)
    time = reader.read_clause(sentence, 0, cut).time
    right = reader.read_clause(sentence, cut, len(sentence.words))
    if right.words and marks.keys().isdisjoint({"before", "usual"}):
        return None  # "Warmer than the living room" compares two places.
    other_time = right.time
    if time.is_empty and other_time.is_empty:
        time = clause.time  # A follow-up has the time of the last question.
    if time.is_empty and "versus" in marks and other_time.day == "yesterday":
        time = TimeWords(day="today")
    time = TimeWords(day="today") if time.is_empty else time
    span = find_span(time, now)
    if span is None or span.start == span.end:
        return None
    said = SpanWords(situation.writer, now, span, time).say_span()
    if "usual" in marks:
        others = tuple(_shift(span, n) for n in range(1, USUAL_DAYS + 1))
        return _Compared(span, said, others, situation.writer.phrase("past.usually", count=len(others)))
    if "before" in marks:
        days = max(1, round((span.end - span.start) / _DAY))
        is_night = time.part in ("night", "last_night")
        key = "night_before" if is_night else "day_before" if days == 1 else "time_before"
        return _Compared(span, said, (_shift(span, days),), situation.writer.phrase(f"past.{key}"))
    other = find_span(other_time, now)
    if other is None or other.start == other.end:
        return None
    first, second = _even(span, other, now), _even(other, span, now)
    said_other = SpanWords(situation.writer, now, other, other_time).say_span()
    if first != span:
        said = situation.writer.phrase("past.by_then", span=said)
    if second != other:
        said_other = situation.writer.phrase("past.by_then", span=said_other)
    return _Compared(first, said, (second,), said_other)


def _even(span: Span, other: Span, now: datetime) -> Span:
    """Return a span as long as the other one, if that is not over: yesterday up to this time of the day."""
    length = other.end - other.start
    is_unfinished = now - other.end < _UNFINISHED and span.end - span.start > length
    return Span(span.start, span.start + length) if is_unfinished else span


async def _compare(
    situation: Situation, entity: Entity, compared: _Compared, said: set[str], *, is_used: bool
) -> str:
    writer = situation.writer
    value = await _read(situation, entity, compared.span, is_used=is_used)
    others = [await _read(situation, entity, span, is_used=is_used) for span in compared.others]
    known = [other for other in others if other is not None]
    state = situation.index.states.get(entity.id)
    unit = state.unit if state else ""
    if value is None or len(known) < min(MIN_DAYS, len(others)):
        if value is None or len(others) > 1:
            return writer.say("past.unrecorded")
        said_value = writer.quantity(round(value, 1), unit)
        return writer.say(
            "past.compared_alone", value=said_value, span=compared.said_span, other_span=compared.said_others
        )
    other = sum(known) / len(known)
    is_same = abs(value - other) <= ALIKE * max(abs(value), abs(other))
    is_so = (value < other) == ("less" in said)
    key = "more_same" if is_same else "more_yes" if is_so else "more_no"
    if not is_same and said.isdisjoint({"more", "less"}):
        key = "compared"  # "Is that normal?"
    return writer.say(
        f"past.{key}",
        value=writer.quantity(round(value, 1), unit),
        span=compared.said_span,
        other=writer.quantity(round(other, 1), unit),
        other_span=compared.said_others,
    )


async def _read(situation: Situation, entity: Entity, span: Span, *, is_used: bool) -> float | None:
    """Return the consumption or the mean of a time; None if the record does not hold all of it."""
    home = situation.home.home
    if is_used:
        consumed = await read_consumed(home, entity.id, span)
        return consumed.amount if consumed and consumed.recorded_from is None else None
    measured = await read_measured(home, entity.id, span)
    return measured.mean if measured and measured.recorded_from is None else None


def _shift(span: Span, days: int) -> Span:
    return Span(span.start - days * _DAY, span.end - days * _DAY)
