"""Answers questions about the conversation, such as what the user asked first or yesterday."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sash.intents.concepts import add_implied, find_concepts, has_all
from sash.intents.memory_intents import is_memory_request
from sash.intents.quotes import quote
from sash.intents.sentence.moments import Span, find_past_span
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Reply, Situation
from sash.intents.words.phrases import Match, choose_matches

MAX_TURNS = 200
MAX_LISTED = 10
_MEANINGS = frozenset(
    {"asked_first", "asked_last", "asked_before", "asked_when", "did_i_ask", "heard", "added"}
)
# Which of the sentences is asked for, and how it is told.
_PLACES = {
    "asked_first": (slice(1), "memory.said_first"),
    "asked_before": (slice(-2, -1), "memory.said_before"),
    "asked_last": (slice(-1, None), "memory.said_last"),
}
_AROUND = ("time", "unit", "ask", "refer", "filler", "value", "memory", "join")
# A sentence that begins with one of these says nothing that a person may ask for later.
_NO_STATEMENTS = frozenset({"ask", "do", "item", "later", "self", "talk", "refer"})


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the user with its local time. `is_act` is True if it changed the home."""

    text: str
    at: datetime
    is_act: bool = False


async def answer_about_conversation(situation: Situation) -> Reply | None:
    """Return the reply to a question about what the user said before; None for any other sentence."""
    sentence = situation.sentence
    asked = next((match for match in sentence.find("self") if match.value in _MEANINGS), None)
    is_plan = bool(sentence.find("calendar"))
    if asked is None or is_plan or sentence.find("self")[0].value not in _MEANINGS:
        return None
    times = (clause.time for clause in situation.reader.read_clauses(sentence))
    # "Eerste" in "wat vroeg ik je als eerste" is no day of a month.
    time = next((time for time in times if not time.places <= set(asked.places)), TimeWords())
    span = find_past_span(time, situation.now)
    said = await list_said(situation)
    if not said and span is None and asked.value != "did_i_ask":
        return Reply(situation.writer.say("self.nothing_said"))
    within = said if span is None else [one for one in said if span.start <= one.at <= _end_of(span)]
    if asked.value == "did_i_ask":
        return _confirm(situation, asked, within)
    if asked.value == "added":
        return Reply(_list(situation, [one for one in within if _adds(situation.reader, one)], span))
    if asked.value in ("asked_when", "heard") and (topic := _find_topic(situation, asked)):
        matching = [one for one in within if _is_about(situation.reader, one, topic)]
        if not matching and span is None and (fact := await _find_fact(situation, topic)):
            return Reply(situation.writer.say("memory.quoted", fact=quote(fact)))
        return Reply(_list(situation, matching, span), is_guess=not matching)
    if asked.value == "heard" and span is None:
        return None
    place = "asked_last" if span is None and asked.value == "asked_when" else asked.value
    if place in _PLACES:
        chosen, key = _PLACES[place]
        return Reply(_tell_one(situation, within[chosen], key))
    return Reply(_list(situation, within, span))


async def list_said(situation: Situation) -> list[Said]:
    """Return the sentences of the user in this session, oldest first, since the last fresh start."""
    turns = await situation.utterance.dialogue.list_recent(MAX_TURNS)
    since = situation.utterance.session.memory.reset_at
    return [
        Said(
            turn.request.message,
            turn.created_at.astimezone(situation.now.tzinfo),
            bool(turn.response and turn.response.actions),
        )
        for turn in turns
        if turn.request.fired is None and (since is None or turn.created_at >= since)
    ]


def find_said(reader: SentenceReader, said: Sequence[Said], wanted: frozenset[str]) -> Said | None:
    """Return the newest statement of the user with all wanted concepts; None without one."""
    for one in reversed(said):
        if one.is_act or is_memory_request(one.text):
            continue
        sentence = reader.read(one.text)
        if is_statement(reader, sentence) and has_all(add_implied(find_concepts(sentence), sentence), wanted):
            return one
    return None


def is_statement(reader: SentenceReader, sentence: Sentence) -> bool:
    """Return whether a sentence tells something: it is no question, no command and no small talk."""
    fillers = {place for match in sentence.matches if match.kind == "filler" for place in match.places}
    first = next((place for place in range(len(sentence.words)) if place not in fillers), None)
    starts = {match.kind for match in sentence.matches if match.start == first}
    if first and sentence.words[first - 1] in reader.lexicon.articles:
        starts.discard("do")  # "My heating shows F28" names a thing.
    return first is not None and "?" not in sentence.words and starts.isdisjoint(_NO_STATEMENTS)


def _adds(reader: SentenceReader, said: Said) -> bool:
    """Return whether a sentence has put something on a list."""
    return said.is_act and any(match.tag == "item.add" for match in reader.read(said.text).matches)


def _find_topic(situation: Situation, asked: Match) -> frozenset[str]:
    """Return the concepts of the rest of a question: "the boiler" in "what did I say about the boiler"."""
    rest = _cut_rest(situation.sentence, asked)
    return find_concepts(situation.reader.read(rest)) if rest else frozenset()


def _cut_rest(sentence: Sentence, asked: Match) -> str:
    """Return the words that neither belong to the question itself nor to a time."""
    around = [match for kind in _AROUND for match in sentence.matches if match.kind == kind]
    covered = {place for match in choose_matches(around, asked.places) for place in match.places}
    rest = [place for place in range(asked.end, len(sentence.words)) if place not in covered]
    return sentence.cut(rest[0], rest[-1] + 1) if rest else ""


def _is_about(reader: SentenceReader, said: Said, topic: frozenset[str]) -> bool:
    return has_all(find_concepts(reader.read(said.text)), topic)


async def _find_fact(situation: Situation, topic: frozenset[str]) -> str | None:
    """Return the newest noted fact about a topic: it may be from another conversation."""
    for fact in reversed(await situation.utterance.dialogue.list_facts()):
        if has_all(find_concepts(situation.reader.read(fact)), topic):
            return fact
    return None


def _confirm(situation: Situation, asked: Match, said: Sequence[Said]) -> Reply:
    """Say whether the user asked for something, such as "to turn on the coffee machine"."""
    reader, sentence = situation.reader, situation.sentence
    text = sentence.cut(asked.end, len(sentence.tokens))
    wanted = find_concepts(reader.read(text), prefers_acts=True)
    if not wanted:
        return Reply(_tell_one(situation, said[-1:], "memory.said_last"))
    for one in reversed(said):
        if has_all(find_concepts(reader.read(one.text), prefers_acts=True), wanted):
            return Reply(_tell_one(situation, [one], "memory.did_ask"))
    # What the user told may be a fact of another conversation. A command is not.
    is_command = any(concept.startswith("do.") for concept in wanted)
    return Reply(situation.writer.say("memory.did_not_ask"), is_guess=not is_command)


def _tell_one(situation: Situation, said: Sequence[Said], key: str) -> str:
    writer = situation.writer
    if not said:
        return writer.say("memory.said_nothing")
    return writer.say(key, sentence=quote(said[0].text), when=writer.moment(said[0].at, situation.now))


def _list(situation: Situation, said: Sequence[Said], span: Span | None) -> str:
    writer = situation.writer
    day = writer.day(span.start, situation.now) if span is not None and _is_one_day(span) else ""
    if not said:
        return writer.say("memory.said_nothing_then", day=day) if day else writer.say("memory.said_nothing")
    texts = list(dict.fromkeys(writer.phrase("talk.quoted", text=quote(one.text)) for one in said))
    listed = writer.join(texts[-MAX_LISTED:])
    more = len(texts) - MAX_LISTED
    if more > 0:
        return writer.say("memory.said_more", sentences=listed, count=more)
    key = "memory.said_then" if day else "memory.said"
    return writer.say(key, sentences=listed, day=day)


def _is_one_day(span: Span) -> bool:
    return span.end - span.start <= timedelta(days=1)


def _end_of(span: Span) -> datetime:
    """Return the end of a span, or half an hour later if it is a single moment."""
    return span.end if span.end > span.start else span.end + timedelta(minutes=30)
