"""Answers a question about the past."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sash.errors import HomeError
from sash.intents.missing_words import find_place
from sash.intents.past.absence import BETWEEN, find_absence
from sash.intents.past.causes import ChangeCause, describe_action, find_cause
from sash.intents.past.happenings import answer_happenings
from sash.intents.past.measured_answer import answer_consumption, answer_number
from sash.intents.past.presence import answer_where
from sash.intents.past.question import PastQuestion, Target
from sash.intents.past.records import (
    Records,
    find_first_record,
    read_latest_records,
    read_records,
    read_with_slack,
)
from sash.intents.past.span_words import SpanWords
from sash.intents.past.state_answer import MOMENT_WINDOW, StateAnswerer
from sash.intents.sentence.moments import Span
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Reply, Situation
from sash.ports.home import Entity
from sash.values.citations import HistoryCitation, shorten

# A person asks for an event at about this time.
NEAR = timedelta(minutes=30)
WHO_WINDOW = 2 * MOMENT_WINDOW


async def answer_past(situation: Situation, question: PastQuestion) -> Reply | None:
    """Return the answer to a question about the past; None if the session may not read the history."""
    needed = "get_logbook" if question.ask == "happened" else "get_history"
    if question.ask not in ("future", "unrecorded") and needed not in situation.utterance.tools:
        return None
    try:
        if situation.sentence.find("absence"):
            absence = await find_absence(situation)
            if absence is None:
                return Reply(situation.writer.say("past.no_absence"))
            question = replace(question, span=absence, time=BETWEEN)
        words = SpanWords(situation.writer, situation.now, question.span, question.time)
        text = await _answer(situation, question, words)
    except HomeError:
        return Reply(situation.writer.say("past.unreadable"))
    ids = [target.entity.id for target in question.targets]
    topic = {"entity_ids": ids} if ids else None
    return Reply(text, topic=topic, citations=_cite(situation, question))


async def _answer(situation: Situation, question: PastQuestion, words: SpanWords) -> str:
    writer = situation.writer
    named = [word for word in question.unwatched if find_place(situation, [word])]
    if question.ask == "unrecorded" and (place := find_place(situation, named)) is not None:
        return writer.say("past.unwatched", place=place)
    if question.ask in ("future", "unrecorded"):
        return writer.say(f"past.{question.ask}")
    if question.ask == "happened":
        return await answer_happenings(situation, _widen(question, situation.now), words)
    if question.ask == "used":
        found = await answer_consumption(situation, question, words)
        if found and situation.sentence.find("price"):
            return f"{writer.say('past.no_price')} {found}"
        return found or await _say_unrecorded(situation, question, words)
    if question.ask in ("value", "highest", "lowest", "average"):
        found = await answer_number(situation, question, words)
        return found or await _say_unrecorded(situation, question, words)
    records = await _read(situation, question)
    if not records:
        return await _say_unrecorded(situation, question, words)
    if question.ask == "where":
        return answer_where(situation, question, words, records)
    if question.ask == "who" and any(target.entity.domain != "person" for target in question.targets):
        return await _say_who(situation, question, words, records)
    return StateAnswerer(situation, question, words).answer(records)


def _widen(question: PastQuestion, now: datetime) -> PastQuestion:
    """Return a question for a moment as one for the time around it. Others are returned as they are."""
    if question.span is None or not question.is_moment:
        return question
    return replace(question, span=Span(question.span.start - NEAR, min(question.span.end + NEAR, now)))


async def _read(situation: Situation, question: PastQuestion) -> Records:
    """Return the records that a question for a state needs."""
    if question.span is None:
        return await read_latest_records(situation, question.targets, 1 + question.back)
    if question.is_moment:
        window = WHO_WINDOW if question.ask == "who" else MOMENT_WINDOW
        start = question.span.start - window
        return await read_records(
            situation, question.targets, start, min(question.span.end + window, situation.now)
        )
    is_rough = question.ask in ("who", "when") and question.time.part is not None
    return await read_with_slack(situation, question.targets, question.span, is_rough=is_rough)


async def _say_who(situation: Situation, question: PastQuestion, words: SpanWords, records: Records) -> str:
    """Say who or what made the newest change into the asked state."""
    writer = situation.writer
    begun = [(period, target.entity) for target, record in records for period in record.begun]
    begun = sorted(begun, key=lambda each: each[0].start)[: -question.back or None]
    latest = max((period.start for period, _ in begun), default=None)
    if not question.back and (
        requested := await explain_request(situation, question.targets, question.span, latest)
    ):
        return requested
    if not begun:
        span = words.say_span()
        return writer.say("past.never", span=span) if span else writer.say("past.unrecorded")
    period, entity = max(begun, key=lambda each: each[0].start)
    cause = await find_cause(situation, entity, period.start)
    moment = words.say_moment(period.start)
    if text := say_cause(situation, cause, moment):
        return text
    if question.names_source:
        event = writer.say("past.did_open", name=writer.name(entity), moment=moment)
        return f"{event} {writer.say('past.by_unknown')}"
    return writer.say("past.who_unknown", moment=moment)


async def explain_request(
    situation: Situation, targets: Sequence[Target], span: Span | None, latest: datetime | None
) -> str | None:
    """Say who asked for the state of a target after its latest change; None without such a request.

    "Turn it off" changes nothing if it is off already, and still answers who turned it off.
    """
    for target in targets:
        state = situation.index.get_state(target.entity.id)
        if target.asked is None or not target.asked.matches(state):
            continue
        explanation = await situation.utterance.dialogue.explain_action(target.entity.id)
        if explanation is None or explanation.outcome != "done":
            continue
        at = explanation.acted_at
        if (latest is None or at > latest) and (span is None or span.start <= at <= span.end):
            cause = describe_action(situation, explanation)
            moment = SpanWords(situation.writer, situation.now, None, TimeWords()).say_moment(at)
            return say_cause(situation, cause, moment)
    return None


async def explain_last_action(situation: Situation, entities: Sequence[Entity]) -> Reply | None:
    """Say who asked for the last action on one of these things; None if Sash has changed none of them."""
    for entity in entities:
        explanation = await situation.utterance.dialogue.explain_action(entity.id)
        if explanation is None:
            continue
        cause = describe_action(situation, explanation)
        moment = SpanWords(situation.writer, situation.now, None, TimeWords()).say_moment(
            explanation.acted_at
        )
        text = say_cause(situation, cause, moment)
        return Reply(text, topic={"entity_ids": [entity.id]}) if text else None
    return None


def say_cause(situation: Situation, cause: ChangeCause | None, moment: str) -> str | None:
    """Return a sentence that names the cause of a change; None without a cause."""
    if cause is None:
        return None
    if cause.kind == "you" and cause.sentence:
        return situation.writer.say("why.you_asked", moment=moment, sentence=cause.sentence)
    if cause.kind == "user":
        return situation.writer.say("why.user_asked", name=cause.name, moment=moment, sentence=cause.sentence)
    key = f"why.{cause.kind}" if cause.name else f"why.hidden_{cause.kind}"
    return situation.writer.say(key, name=cause.name, moment=moment)


async def _say_unrecorded(situation: Situation, question: PastQuestion, words: SpanWords) -> str:
    """Say that nothing is recorded, and since when there are records."""
    writer = situation.writer
    first = None
    if question.span is not None and question.targets:
        first = await find_first_record(situation, question.targets, question.span.end)
    if first is None or question.span is None or first - question.span.end < MOMENT_WINDOW:
        return writer.say("past.unrecorded")
    return writer.say("past.nothing_recorded", day=words.say_date(first))


def _cite(situation: Situation, question: PastQuestion) -> tuple[HistoryCitation, ...]:
    """Return the histories that an answer rests on."""
    span = question.span
    if question.ask in ("future", "unrecorded", "happened") or span is None or span.start == span.end:
        return ()
    return tuple(
        HistoryCitation(target.entity.id, shorten(target.entity.name), span.start, span.end)
        for target in question.targets
    )
