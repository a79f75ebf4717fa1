"""Answers where a person was: at home and away, with the times."""

from sash.intents.past.question import PastQuestion
from sash.intents.past.records import Records
from sash.intents.past.span_words import SpanWords
from sash.intents.past.state_periods import Period, StateRecord
from sash.intents.situation import Situation

MAX_STAYS = 6
_AWAY = "not_home"


def answer_where(situation: Situation, question: PastQuestion, words: SpanWords, records: Records) -> str:
    """Return where persons were. The records are those of the state "home"."""
    writer = situation.writer
    texts = []
    for target, record in records:
        name = writer.name(target.entity)
        home, away = writer.state_name("home"), writer.state_name(_AWAY)
        if question.is_moment and question.span is not None:
            moment = question.span.start
            is_home = any(period.start <= moment <= period.end for period in record.periods)
            texts.append(writer.say("past.where", name=name, stays=home if is_home else away))
            continue
        stays = [
            _say_stay(situation, words, record, stay, home if is_home else away)
            for stay, is_home in _list_stays(record)[:MAX_STAYS]
        ]
        texts.append(writer.say("past.where", name=name, stays=writer.join(stays)))
    return " ".join(texts)


def _list_stays(record: StateRecord) -> list[tuple[Period, bool]]:
    """Return the times at home and away in their order."""
    stays: list[tuple[Period, bool]] = []
    at = record.recorded_from or record.start
    for period in record.periods:
        if period.start > at:
            stays.append((Period(at, period.start), False))
        stays.append((period, True))
        at = period.end
    if at < record.end:
        stays.append((Period(at, record.end), False))
    return stays


def _say_stay(situation: Situation, words: SpanWords, record: StateRecord, stay: Period, place: str) -> str:
    begins, ends = stay.start <= (record.recorded_from or record.start), stay.end >= record.end
    key = "stay_all" if begins and ends else "stay_until" if begins else "stay_since" if ends else "stay_from"
    start, end = words.say_clock(stay.start), words.say_clock(stay.end)
    return situation.writer.phrase(f"past.{key}", place=place, start=start, end=end)
