"""Answers questions about the calendars of the home: what is on a day, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from sash.errors import SashError
from sash.intents.concepts import find_concepts, has_all
from sash.intents.quotes import quote
from sash.intents.sentence.moments import find_day_of
from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.intents.words.phrases import choose_matches
from sash.ports.home import Entity

MAX_LISTED = 10
_SERVICE = "calendar.get_events"
_DAYS_AHEAD = 60
_KIND = "kind.calendar"
_ORDER = (
    *("calendar", "name", "kind", "property", "time", "unit", "ask", "refer", "any", "all"),
    *("filler", "do", "value", "join", "memory", "self", "not", "talk"),
)
# Calendars are read. Words of other requests belong to other answers.
_OTHER_SECTIONS = frozenset({"room", "colour", "amount"})
_PROPERTIES = frozenset({"property.time", "property.date", "property.playing"})
_WASTE = frozenset({"pickup", "waste"})
_PAST = frozenset({"yesterday", "day_before_yesterday", "last_week", "last_month"})
_PARTS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (20, 24)}


@dataclass(frozen=True, slots=True)
class Appointment:
    """An event of a calendar. `is_all_day` is True if it has no time of day."""

    summary: str
    start: datetime
    end: datetime
    is_all_day: bool


async def answer_calendar_question(situation: Situation) -> Reply | None:
    """Return the reply to a question about appointments; None for any other sentence."""
    sentence = situation.sentence
    own = _find_meanings(sentence)
    goes_on = any(entity_id.startswith("calendar.") for entity_id in situation.focus_ids[:1])
    is_named = (
        bool(own) or any(match.tag == _KIND for match in sentence.matches) or bool(_find_named(situation))
    )
    topic = _find_topic(situation) if is_named or goes_on else None
    if topic is None or (not is_named and topic):
        return None
    writer = situation.writer
    calendars = [entity for entity in situation.index.entities.values() if entity.domain == "calendar"]
    if own >= _WASTE and (noted := await _find_noted(situation)):
        return Reply(writer.say("memory.quoted", fact=quote(noted)))
    words = next(
        (c.time for c in situation.reader.read_clauses(sentence) if not c.time.is_empty), TimeWords()
    )
    if words.day in _PAST or words.role == "ago":
        return None
    if not calendars:
        key = "calendar.no_pickup" if own >= _WASTE else "calendar.none"
        return Reply(writer.say(key), is_guess=not _asks(sentence))
    if "add" in own or any(
        match.kind == "item" and match.value == "add" and match.start == 0 for match in sentence.matches
    ):
        return Reply(writer.say("calendar.cannot_add"), is_guess=True)
    try:
        if not is_named and words.is_empty:
            return None
        chosen = _find_named(situation) or calendars
        return Reply(
            await _answer(situation, chosen, words, topic),
            topic=Topic("other", (), (chosen[0].id,)).to_json(),
        )
    except SashError:
        return Reply(writer.say("calendar.unreadable"))


async def _find_noted(situation: Situation) -> str | None:
    """Return the newest noted fact about when the paper or the like is collected."""
    asked = _find_waste_words(situation.sentence)
    for fact in reversed(await situation.utterance.dialogue.list_facts()):
        if asked & _find_waste_words(situation.reader.read(fact)):
            return fact
    return None


def _find_waste_words(sentence: Sentence) -> set[str]:
    found = [match for match in sentence.find("calendar") if match.value == "waste"]
    return {sentence.words[place] for match in found for place in match.places}


def _find_meanings(sentence: Sentence) -> set[str]:
    """Return the meanings of the calendar words in a sentence.

    A word for waste, such as "the paper", counts only if the sentence asks when it is collected.
    """
    own = {match.value for match in sentence.find("calendar")}
    tags = {match.tag for match in sentence.matches}
    asks_when = bool(tags & {"ask.when", "property.date", "condition.when", "refer.that_time"})
    return own if own >= _WASTE and asks_when else own - _WASTE


def _asks(sentence: Sentence) -> bool:
    return bool(sentence.find("ask")) or "?" in sentence.words


def _find_named(situation: Situation) -> list[Entity]:
    """Return the calendar that the sentence names."""
    for match in situation.sentence.find("name"):
        ids = situation.words.names[tuple(match.value.split())].entity_ids
        if found := [situation.index.entities[one] for one in ids if one.startswith("calendar.")]:
            return found
    return []


def _find_topic(situation: Situation) -> frozenset[str] | None:
    """Return the words for an appointment, such as "dentist"; None for a sentence about other things."""
    sentence = situation.sentence
    usable = [match for match in sentence.matches if match.tag != "calendar.waste"]
    chosen = choose_matches(match for kind in _ORDER for match in usable if match.kind == kind)
    taken = {place for match in chosen for place in match.places}
    if any(m.kind in _OTHER_SECTIONS and not taken.issuperset(m.places) for m in sentence.matches):
        return None
    named = {match.tag for match in chosen if match.kind in ("kind", "property")}
    if not named <= {_KIND, *_PROPERTIES}:
        return None
    rest = [place for place, word in enumerate(sentence.words) if place not in taken and word.isalpha()]
    if not rest:
        return frozenset()
    return find_concepts(situation.reader.read(" ".join(sentence.words[place] for place in rest)))


async def _answer(
    situation: Situation, calendars: Sequence[Entity], words: TimeWords, topic: frozenset[str]
) -> str:
    now = situation.now
    start, end = _find_span(situation, words)
    is_next = any(match.tag == "do.next" for match in situation.sentence.matches) and start is None
    first = start or now
    last = end or now + timedelta(days=_DAYS_AHEAD)
    found = await _read(situation, calendars, first, last)
    if topic:
        found = [one for one in found if has_all(find_concepts(situation.reader.read(one.summary)), topic)]
        if not found:
            return situation.writer.say("calendar.no_such")
        return (
            _tell_next(situation, found) if start is None else _tell_day(situation, found, words, first, last)
        )
    if start is not None:
        return _tell_day(situation, found, words, first, last)
    today = [one for one in found if one.start.date() <= now.date()]
    asks_when = any(match.tag == "ask.when" for match in situation.sentence.matches)
    if is_next or asks_when or not today:
        upcoming = [one for one in found if one.start >= now] or found
        return _tell_next(situation, upcoming)
    return _tell_day(situation, today, TimeWords(day="today"), now, now)


def _find_span(situation: Situation, words: TimeWords) -> tuple[datetime | None, datetime | None]:
    """Return the span of time that the sentence asks for; None for both ends without one."""
    now = situation.now
    today = datetime.combine(now.date(), time(0), now.tzinfo)
    monday = today - timedelta(days=now.weekday())
    tags = {match.tag for match in situation.sentence.matches}
    if {"do.next", "unit.week"} <= tags:
        return monday + timedelta(days=7), monday + timedelta(days=14)
    if words.day == "this_week":
        return now, monday + timedelta(days=7)
    if words.day == "weekend":
        return max(now, monday + timedelta(days=5)), monday + timedelta(days=7)
    day = find_day_of(words, now, is_future=True)
    if day is None and words.part is None:
        return None, None
    start = datetime.combine(day or now.date(), time(0), now.tzinfo)
    first, last = _PARTS.get(words.part or "", (0, 24))
    return start + timedelta(hours=first), start + timedelta(hours=last)


async def _read(
    situation: Situation, calendars: Sequence[Entity], start: datetime, end: datetime
) -> list[Appointment]:
    """Return the appointments of some calendars, the earliest first."""
    response = await situation.home.home.call_service(
        _SERVICE,
        {
            "start_date_time": start.isoformat(timespec="seconds"),
            "end_date_time": end.isoformat(timespec="seconds"),
        },
        [entity.id for entity in calendars],
        return_response=True,
    )
    found = [
        appointment
        for entity in calendars
        if isinstance(listed := (response or {}).get(entity.id), dict)
        for event in listed.get("events") or ()
        if isinstance(event, dict) and (appointment := _read_event(event, situation.now)) is not None
    ]
    return sorted(dict.fromkeys(found), key=lambda one: (one.start, one.summary))


def _read_event(event: dict[str, object], now: datetime) -> Appointment | None:
    try:
        start, is_all_day = _read_time(str(event.get("start")), now)
        end, _ = _read_time(str(event.get("end")), now)
    except ValueError:
        return None
    return Appointment(str(event.get("summary") or "").strip(), start, end, is_all_day)


def _read_time(text: str, now: datetime) -> tuple[datetime, bool]:
    """Return a time and whether it is a whole day."""
    if "T" not in text and ":" not in text:
        return datetime.combine(date.fromisoformat(text), time(0), now.tzinfo), True
    at = datetime.fromisoformat(text)
    return (at.astimezone(now.tzinfo) if at.tzinfo else at.replace(tzinfo=now.tzinfo)), False


def _tell_next(situation: Situation, found: Sequence[Appointment]) -> str:
    if not found:
        return situation.writer.say("calendar.nothing_soon")
    first, writer = found[0], situation.writer
    day = writer.day(first.start, situation.now)
    when = day if first.is_all_day else writer.moment(first.start, situation.now)
    return writer.say("calendar.next", summary=first.summary, when=when)


def _tell_day(
    situation: Situation, found: Sequence[Appointment], words: TimeWords, start: datetime, end: datetime
) -> str:
    writer, now = situation.writer, situation.now
    is_one_day = end - start <= timedelta(days=1)
    day = writer.day(start, now) if is_one_day else ""
    if not found:
        return writer.say("calendar.nothing_on", day=day) if day else writer.say("calendar.nothing_then")
    listed = [_describe(situation, one, with_day=not is_one_day) for one in found[:MAX_LISTED]]
    text = writer.join(listed)
    more = len(found) - len(listed)
    key = "calendar.on_more" if more > 0 else "calendar.on"
    return (
        writer.say(key, day=day, events=text, count=more) if day else writer.say("calendar.then", events=text)
    )


def _describe(situation: Situation, one: Appointment, *, with_day: bool) -> str:
    writer, now = situation.writer, situation.now
    if one.is_all_day or (not with_day and one.start.date() < now.date()):
        return f"{one.summary} ({writer.day(one.start, now)})" if with_day else one.summary
    if with_day:
        return f"{one.summary} ({writer.moment(one.start, now)})"
    return writer.phrase("calendar.at", summary=one.summary, clock=writer.clock(one.start))
