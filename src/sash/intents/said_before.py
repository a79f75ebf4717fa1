"""Answers questions about the conversation, such as what the user asked first or yesterday."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sash.intents.concepts import add_implied, find_concepts, has_all
from sash.intents.memory_intents import is_memory_request
from sash.intents.quotes import quote
from sash.intents.sentence.moments import Span, find_past_span
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.sentence import Sentence
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Reply, Situation
from sash.intents.words.phrases import Match, choose_matches
from sash.ports.intents import SaidMessage, SaidSearch
from sash.values.citations import MAX_CITATIONS, TurnCitation, shorten

MAX_SAID = 200
MAX_LISTED = 10
# So much of a message is read and quoted.
MAX_CHARS = 600
# A sentence with fewer known words may be in another language.
MIN_KNOWN = 0.3
ASKED = frozenset(
    {"asked_first", "asked_last", "asked_before", "asked_when", "did_i_ask", "heard", "added", "talked"}
)
# Which of the sentences is asked for, and how it is told.
_PLACES = {
    "asked_first": (slice(1), "memory.said_first"),
    "asked_before": (slice(-2, -1), "memory.said_before"),
    "asked_last": (slice(-1, None), "memory.said_last"),
}
_WITH_TOPIC = frozenset({"asked_when", "heard", "talked"})
_AROUND = ("time", "unit", "ask", "refer", "filler", "value", "memory", "join")
# A sentence that begins with one of these says nothing that a person may ask for later.
_NO_STATEMENTS = frozenset({"ask", "do", "item", "later", "self", "talk", "refer"})
_PLANS = frozenset({"plans", "free", "add"})
_COMMANDS = frozenset({"do", "item", "later"})
# The sentences that tell most of a conversation come first.
_TOLD, _ASKED, _ORDERED, _EMPTY, _ASKS_BACK = range(5)
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the user with its local time. `is_act` is True if it changed the home.

    `is_local` is True if no model answered it.
    """

    text: str
    at: datetime
    id: str
    is_act: bool = False
    is_local: bool = False


async def answer_about_conversation(situation: Situation) -> Reply | None:
    """Return the reply to a question about what the user said before; None for any other sentence."""
    sentence = situation.sentence
    asked = next((match for match in sentence.find("self") if match.value in ASKED), None)
    if asked is None or sentence.find("self")[0].value not in ASKED or _denies(sentence, asked):
        return None
    times = (clause.time for clause in situation.reader.read_clauses(sentence))
    # "Eerste" in "wat vroeg ik je als eerste" is no day of a month.
    time = next((time for time in times if not time.places <= set(asked.places)), TimeWords())
    if _is_plan(sentence, time):
        return None
    search = await _search(situation)
    span = _find_span(situation, time, search)
    said = await list_said(situation, span)
    if not said and span is None and asked.value != "did_i_ask":
        has_hidden = situation.utterance.session.memory.reset_at is not None
        return Reply(situation.writer.say("self.nothing_said"), is_guess=has_hidden)
    if asked.value == "did_i_ask":
        found = await _add_found(situation, (), search.exact + search.similar[:MAX_LISTED], span)
        return _confirm(situation, asked, said, found)
    if asked.value == "added":
        return _list(situation, [one for one in said if _adds(situation.reader, one)], span)
    if asked.value in _WITH_TOPIC and (topic := _find_topic(situation, asked, time)):
        return await _answer_topic(situation, topic, said, search, span)
    if asked.value == "heard" and span is None:
        return None
    place = "asked_last" if span is None and asked.value == "asked_when" else asked.value
    if place == "asked_first" and span is None:
        said = await _make_said(situation, await _list_between(situation, None))
    if place in _PLACES:
        chosen, key = _PLACES[place]
        return _tell_one(situation, said[chosen], key)
    telling = _choose_telling(situation.reader, said, is_talk=asked.value == "talked")
    return _list(situation, telling or said, span)


async def list_said(situation: Situation, span: Span | None = None) -> list[Said]:
    """Return what the user said in this session, oldest first, since the last fresh start.

    Without a span, return only the newest sentences.
    """
    if span is None:
        return await _make_said(situation, await situation.utterance.dialogue.list_said(MAX_SAID))
    found = await _make_said(situation, await _list_between(situation, span))
    return [one for one in found if span.start <= one.at <= _end_of(span)]


def find_said(reader: SentenceReader, said: Sequence[Said], wanted: frozenset[str]) -> Said | None:
    """Return the newest statement of the user with all wanted concepts; None without one."""
    for one in reversed(said):
        if not _may_answer(reader, one):
            continue
        sentence = reader.read(one.text)
        if has_all(add_implied(find_concepts(sentence), sentence), wanted):
            return one
    return None


async def recall_said(situation: Situation, *, looks_back: bool) -> Reply | None:
    """Return what the user said with the words of a question; None if there is nothing of that kind.

    With `looks_back`, return None for a question that is not about the past. The reply is a guess, because
    only a model can tell whether the sentence answers the question.
    """
    search = await _search(situation)
    if looks_back and not search.question.looks_back:
        return None
    for found, key in ((search.exact[::-1], "memory.you_said"), (search.similar, "memory.you_said_similar")):
        for one in await _make_said(situation, found):
            if _may_answer(situation.reader, one):
                return Reply(tell_said(situation, one, key), citations=cite_said([one]), is_guess=True)
    return None


def tell_said(situation: Situation, said: Said, key: str = "memory.you_said") -> str:
    """Return a sentence that quotes the user, with its time."""
    when = situation.writer.moment(said.at, situation.now)
    return situation.writer.say(key, when=when, sentence=quote(said.text))


def is_statement(reader: SentenceReader, sentence: Sentence) -> bool:
    """Return whether a sentence tells something: it is no question, no command and no small talk."""
    first, starts = _find_start(reader, sentence)
    return first is not None and "?" not in sentence.words and starts.isdisjoint(_NO_STATEMENTS)


def _find_start(reader: SentenceReader, sentence: Sentence) -> tuple[int | None, set[str]]:
    """Return the place of the first word of a sentence that tells something, and the kinds of its phrases."""
    fillers = {place for match in sentence.matches if match.kind == "filler" for place in match.places}
    first = next((place for place in range(len(sentence.words)) if place not in fillers), None)
    begins = (match for match in sentence.matches if match.start == first)
    # "I bought a cello" tells something, if it has not changed a list.
    starts = {match.kind for match in begins if match.tag != "item.complete"}
    if first and sentence.words[first - 1] in reader.lexicon.articles:
        starts.discard("do")  # "My heating shows F28" names a thing.
    return first, starts


def _denies(sentence: Sentence, asked: Match) -> bool:
    """Return whether a sentence tells what was not said: "yo no dije"."""
    is_denied = any(match.end == asked.start for match in sentence.find("not"))
    return asked.value == "did_i_ask" and is_denied


def _is_plan(sentence: Sentence, time: TimeWords) -> bool:
    """Return whether a question is about the calendar, as "was haben wir vor" but not "… vor zwei Tagen"."""
    words = time.places if time.role == "ago" else frozenset()
    plans = (match for match in sentence.find("calendar") if match.value in _PLANS)
    return any(words.isdisjoint(match.places) for match in plans)


def _find_span(situation: Situation, time: TimeWords, search: SaidSearch) -> Span | None:
    """Return the time that a question is about. "Two days ago" is the whole day."""
    period = search.question.period
    is_long_ago = time.role == "ago" and (time.duration_s or 0) >= _DAY_S
    span = find_past_span(time, situation.now)
    if period is None or not (is_long_ago or span is None):
        return span
    zone = situation.now.tzinfo
    start = datetime.fromtimestamp(period.start, zone)
    return Span(start, min(datetime.fromtimestamp(period.end, zone), situation.now))


async def _search(situation: Situation) -> SaidSearch:
    language = situation.reader.lexicon.language
    return await situation.utterance.dialogue.search_said(situation.sentence.text, language, situation.now)


async def _list_between(situation: Situation, span: Span | None) -> list[SaidMessage]:
    start, end = (None, situation.now) if span is None else (span.start, _end_of(span))
    return await situation.utterance.dialogue.list_said_between(start, end)


async def _make_said(situation: Situation, found: Iterable[SaidMessage]) -> list[Said]:
    """Return messages as what was said, without the words with which a waiting turn began."""
    turns = await situation.utterance.dialogue.list_recent(MAX_SAID)
    fired = {turn.id for turn in turns if turn.request.fired is not None}
    acts = {turn.id for turn in turns if turn.response and turn.response.actions}
    zone = situation.now.tzinfo
    return [
        Said(
            each.text[:MAX_CHARS],
            each.at.astimezone(zone),
            each.id,
            each.continuation_id in acts,
            each.is_local,
        )
        for each in found
        if each.continuation_id not in fired
    ]


async def _add_found(
    situation: Situation, said: Sequence[Said], found: Iterable[SaidMessage], span: Span | None
) -> list[Said]:
    """Return what was said with what a search has found in the same time, oldest first."""
    others = await _make_said(situation, found)
    if span is not None:
        others = [one for one in others if span.start <= one.at <= _end_of(span)]
    return sorted({one.id: one for one in (*others, *said)}.values(), key=lambda one: one.at)


async def _answer_topic(
    situation: Situation, topic: frozenset[str], said: Sequence[Said], search: SaidSearch, span: Span | None
) -> Reply:
    """Return what the user said about a topic. It is a guess if nothing clearly is about it."""
    about = [one for one in said if _is_about(situation.reader, one, topic)]
    about = await _add_found(situation, about, search.exact, span)
    if about := _choose_telling(situation.reader, about):
        return _list(situation, about, span)
    if span is None and (fact := await _find_fact(situation, topic)):
        return Reply(situation.writer.say("memory.quoted", fact=quote(fact)))
    similar = await _add_found(situation, (), search.similar[:1], span)
    if similar := _choose_telling(situation.reader, similar):
        text = tell_said(situation, similar[0], "memory.you_said_similar")
        return Reply(text, citations=cite_said(similar), is_guess=True)
    return _list(situation, [], span)


def _choose_telling(reader: SentenceReader, said: Sequence[Said], *, is_talk: bool = False) -> list[Said]:
    """Return what tells most of a conversation, oldest first, without questions such as this one.

    With `is_talk`, commands and small talk are left out if anything else was said.
    """
    ranks = {one.id: _rank(reader, one) for one in said}
    best = min(ranks.values(), default=_TOLD)
    limit = best if is_talk else max(best, _ORDERED)
    chosen = [one for one in said if ranks[one.id] <= limit and ranks[one.id] != _ASKS_BACK]
    newest_by_text = {one.text: one for one in chosen}
    newest = [one for one in reversed(chosen) if newest_by_text[one.text] is one]
    telling = sorted(newest, key=lambda one: ranks[one.id])
    listed = {one.id for one in telling[:MAX_LISTED]}
    return [*telling[MAX_LISTED:], *(one for one in reversed(newest) if one.id in listed)]


def _rank(reader: SentenceReader, said: Said) -> int:
    """Return how much a sentence tells of what a conversation was about: the lower, the more."""
    if is_memory_request(said.text):
        return _TOLD
    sentence = reader.read(said.text)
    if asks_about_conversation(sentence):
        return _ASKS_BACK
    _, starts = _find_start(reader, sentence)
    if sentence.covers("talk") or "self" in starts:
        return _EMPTY
    if said.is_act or starts & _COMMANDS:
        return _ORDERED
    is_read = reader.measure_known(said.text) >= MIN_KNOWN
    if (is_read and is_statement(reader, sentence)) or not said.is_local:
        return _TOLD
    return _ASKED


def asks_about_conversation(sentence: Sentence) -> bool:
    """Return whether a sentence asks what was said, as "what did we talk about yesterday?"."""
    return any(match.value in ASKED for match in sentence.find("self"))


def _asks_back(reader: SentenceReader, said: Said) -> bool:
    return asks_about_conversation(reader.read(said.text))


def _may_answer(reader: SentenceReader, said: Said) -> bool:
    """Return whether a sentence may hold the answer to a question. What is noted is answered by the notes."""
    is_told = not said.is_act and not is_memory_request(said.text)
    return is_told and is_statement(reader, reader.read(said.text))


def _adds(reader: SentenceReader, said: Said) -> bool:
    """Return whether a sentence has put something on a list."""
    return said.is_act and any(match.tag == "item.add" for match in reader.read(said.text).matches)


def _find_topic(situation: Situation, asked: Match, time: TimeWords) -> frozenset[str]:
    """Return the concepts of the rest of a question: "the boiler" in "what did I say about the boiler"."""
    rest = _cut_rest(situation.sentence, {*asked.places, *time.places})
    return find_concepts(situation.reader.read(rest)) if rest else frozenset()


def _cut_rest(sentence: Sentence, taken: Collection[int]) -> str:
    """Return the words that neither belong to the question itself nor to a time, which are `taken`."""
    around = [match for kind in _AROUND for match in sentence.matches if match.kind == kind]
    covered = {*taken, *(place for match in choose_matches(around, taken) for place in match.places)}
    rest = [place for place in range(min(taken), len(sentence.words)) if place not in covered]
    rest = [place for place in rest if sentence.words[place][0].isalnum()]
    return sentence.cut(rest[0], rest[-1] + 1) if rest else ""


def _is_about(reader: SentenceReader, said: Said, topic: frozenset[str]) -> bool:
    return has_all(find_concepts(reader.read(said.text)), topic)


async def _find_fact(situation: Situation, topic: frozenset[str]) -> str | None:
    """Return the newest noted fact about a topic: it may be from another conversation."""
    for fact in reversed(await situation.utterance.dialogue.list_facts()):
        if has_all(find_concepts(situation.reader.read(fact)), topic):
            return fact
    return None


def _confirm(situation: Situation, asked: Match, said: Sequence[Said], found: Sequence[Said]) -> Reply:
    """Say whether the user asked for something, such as "to turn on the coffee machine".

    `found` has some of the words of the question.
    """
    reader, sentence = situation.reader, situation.sentence
    text = sentence.cut(asked.end, len(sentence.tokens))
    wanted = find_concepts(reader.read(text), prefers_acts=True)
    if not wanted:
        return _tell_one(situation, said[-1:], "memory.said_last")
    for one in (*reversed(said), *reversed(found)):
        is_told = has_all(find_concepts(reader.read(one.text), prefers_acts=True), wanted)
        if is_told and not _asks_back(reader, one):
            return _tell_one(situation, [one], "memory.did_ask")
    # What the user told may be a fact of another conversation. A command is not.
    is_command = any(concept.startswith("do.") for concept in wanted)
    told = next((one for one in reversed(found) if _may_answer(reader, one)), None)
    if not is_command and told is not None:
        text = tell_said(situation, told, "memory.you_said_similar")
        return Reply(text, citations=cite_said([told]), is_guess=True)
    # Older ones may have said it in other words.
    is_guess = not is_command or len(said) >= MAX_SAID
    return Reply(situation.writer.say("memory.did_not_ask"), is_guess=is_guess)


def _tell_one(situation: Situation, said: Sequence[Said], key: str) -> Reply:
    if not said:
        return Reply(situation.writer.say("memory.said_nothing"), is_guess=True)
    return Reply(tell_said(situation, said[0], key), citations=cite_said(said[:1]))


def _list(situation: Situation, said: Sequence[Said], span: Span | None) -> Reply:
    """Quote what was said, with the days. The last `MAX_LISTED` sentences are quoted, the others counted."""
    writer, now = situation.writer, situation.now
    day = writer.day(span.start, now) if span is not None and _is_one_day(span) else ""
    if not said:
        key = "memory.said_nothing_then" if day else "memory.said_nothing"
        return Reply(writer.say(key, day=day), is_guess=True)
    told = said[-MAX_LISTED:]
    more = len(said) - len(told)
    if len(said) == 1 and not day and said[0].at.date() != now.date():
        return Reply(tell_said(situation, said[0]), citations=cite_said(said))
    listed = writer.join([_quote_with_day(situation, one, is_dated=not day) for one in told])
    key = "memory.said_more" if more else "memory.said_then" if day else "memory.said"
    # A model tells better what much of a conversation was about.
    text = writer.say(key, sentences=listed, count=more, day=day)
    return Reply(text, citations=cite_said(told), is_guess=more > 0)


def _quote_with_day(situation: Situation, said: Said, *, is_dated: bool) -> str:
    """Return a quoted sentence, with its day behind it if it was not said today."""
    writer = situation.writer
    quoted = writer.phrase("talk.quoted", text=quote(said.text))
    is_old = said.at.date() != situation.now.date()
    return f"{quoted} ({writer.day(said.at, situation.now)})" if is_dated and is_old else quoted


def cite_said(said: Iterable[Said]) -> tuple[TurnCitation, ...]:
    """Return what was said as the sources of an answer."""
    found = [TurnCitation(one.at.astimezone(UTC), shorten(one.text), one.id) for one in said]
    return tuple(found[-MAX_CITATIONS:])


def _is_one_day(span: Span) -> bool:
    return span.end - span.start <= timedelta(days=1)


def _end_of(span: Span) -> datetime:
    """Return the end of a span, or half an hour later if it is a single moment."""
    return span.end if span.end > span.start else span.end + timedelta(minutes=30)
