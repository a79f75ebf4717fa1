"""Answers which problems there were in a time: the things that had them, and their likely cause."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sash.errors import HomeError
from sash.home.incidents import TIMEFRAMES, analyze_incidents
from sash.intents.past.question import find_span
from sash.intents.past.span_words import SpanWords
from sash.intents.past.why import explain_problem, find_problem
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.moments import Span
from sash.intents.situation import Reply, Situation
from sash.ports.home import Entity

TOOL = "analyze_errors"
MAX_NAMED = 4
_DAY = timedelta(hours=24)
# These acts say that something is wrong, or belong to the name of a thing or of the home: "the leak sensor".
_PROBLEM_ACTS = frozenset({"broken", "happen", "leak", "moving", "heat", "cool", "home"})


async def answer_problems(situation: Situation, clause: Clause, entities: tuple[Entity, ...]) -> Reply | None:
    """Return the problems of the named things, or of the whole home; None for another question."""
    if "errors" not in clause.properties or not _PROBLEM_ACTS.issuperset(clause.do):
        return None
    try:
        if entities:
            return await explain_problem(situation, clause, entities)
        is_about_home = all(word.has("property") or word.has("room") for word in clause.words)
        return await _list_problems(situation, clause) if is_about_home else None
    except HomeError:
        return Reply(situation.writer.say("past.unreadable"))


async def _list_problems(situation: Situation, clause: Clause) -> Reply | None:
    if TOOL not in situation.utterance.tools:
        return None
    writer, now = situation.writer, situation.now
    asked = find_span(clause.time, now)
    span = asked or Span(now - _DAY, now)
    incidents = [each for each in await _read_incidents(situation, span) if _is_within(each, span)]
    words = SpanWords(writer, now, asked, clause.time).say_span()
    if not incidents:
        key = "why.no_problems" if asked else "why.no_problems_now"
        return Reply(writer.say(key, span=words))
    words = words or writer.phrase("past.span_last", duration=writer.duration(_DAY.total_seconds()))
    entities = list(_find_entities(situation, incidents))
    if not entities:
        return Reply(writer.say("why.problems_of_log", span=words, count=len(incidents)))
    text = writer.say("why.problems", span=words, names=writer.names(entities[:MAX_NAMED]))
    for entity in entities:
        if problem := await find_problem(situation, entity):
            text = f"{text} {problem}"
            break
    return Reply(text, topic={"entity_ids": [entity.id for entity in entities[:MAX_NAMED]]})


async def _read_incidents(situation: Situation, span: Span) -> list[dict[str, Any]]:
    """Return the incidents of the shortest timeframe that holds a span, newest first."""
    length = situation.now - span.start
    timeframe = next((name for name, known in TIMEFRAMES.items() if length <= known), "7d")
    found = await analyze_incidents(situation.home, timeframe, "warning", situation.now, situation.now.tzinfo)
    incidents: list[dict[str, Any]] = found["incidents"]
    return incidents


def _is_within(incident: dict[str, Any], span: Span) -> bool:
    first, last = (datetime.fromisoformat(incident[key]) for key in ("first_at", "last_at"))
    return first <= span.end and last >= span.start


def _find_entities(situation: Situation, incidents: Iterable[dict[str, Any]]) -> Iterable[Entity]:
    """Yield one entity for each device of the incidents, in their order."""
    index, seen = situation.index, set[str]()
    for key in (key for incident in incidents for key in incident["entities"]):
        entity = index.entities.get(key)
        if entity is None or (entity.device_id or entity.id) in seen:
            continue
        seen.add(entity.device_id or entity.id)
        yield entity
