"""Recall: finds old messages of a conversation, and shows them word for word."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from sash.engine.period_search import PeriodSearch
from sash.engine.similar_messages import SimilarMessages, find_similar
from sash.memory.asked_words import AskedWord
from sash.memory.excerpt import cut_excerpt
from sash.memory.recall_question import ANY_AGENT, ANY_USER, MAX_CHARS, RecallQuestion, read_question
from sash.memory.recall_ranking import (
    REACH,
    SPOKEN_ROLES,
    Place,
    WordHits,
    choose_best,
    list_around,
    rank_messages,
)
from sash.memory.words import ends_with_question_mark, split_words
from sash.ports.embedder import Embedder
from sash.ports.store import Store, StoredMessage
from sash.values.messages import MessageEntry

# The maximum number of messages that are read to fill a budget, and of those that are read at a time.
MAX_READ, BATCH = 60, 20
# Messages with less than this part of the best score do not fill a budget.
MIN_SCORE = 0.2
# A smaller rest of a budget is not filled.
MIN_TOKENS = 4
# A message with more characters per token of the budget cannot fit.
MAX_CHARS_PER_TOKEN = 20
# The best messages are cut if they do not fit: those with at least this part of the best score, up to this
# length, if the rest of the budget is large enough for a sentence or two.
CUT_SCORE, MAX_CUT_CHARS, MIN_EXCERPT_TOKENS = 0.5, 20_000, 30
# The question of a turn is looked for in this number of messages before its answer.
MAX_TURN_MESSAGES = 40
# The score of the most similar message. The message whose words weigh most has 1.
SIMILARITY_WEIGHT = 0.5
# The maximum number of characters of a message that is compared with a question.
MAX_COMPARED_CHARS = 1000


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """When and in which language something is asked, by whom and of whom.

    `names` are the names of speakers that are known before the search. The search finds others.
    """

    now: datetime
    language: str | None = None
    names: tuple[str, ...] = ()
    asker: str = ANY_USER
    agent: str = ANY_AGENT

    def read(self, text: str) -> RecallQuestion:
        """Return what a question asks for."""
        return read_question(
            text,
            names=self.names,
            asker=self.asker,
            agent=self.agent,
            language=self.language,
            now=self.now,
        )

    def add_speakers(self, text: str, places: Iterable[Place]) -> "QuestionContext | None":
        """Return the context with those speakers of messages that a text names; None if all are known."""
        names = {place.speaker for place in places} - SPOKEN_ROLES - {*self.names}
        said = {*split_words(text[:MAX_CHARS])}
        named = {name for name in names if not said.isdisjoint(list_name_forms(name))}
        return replace(self, names=(*self.names, *sorted(named))) if named else None


def list_name_forms(name: str) -> list[str]:
    """Return the words of a name in normal form, also with the "s" of a genitive."""
    return [form for word in split_words(name) for form in (word, f"{word}s")]


@dataclass(frozen=True, slots=True)
class Found:
    """The positions of old messages with their scores, best first, and what the search knows of them.

    `has_clear_match` is True if one message is clearly similar in meaning. `own` are the scores by words and
    meaning, without those of the messages around.
    """

    question: RecallQuestion
    ranked: tuple[tuple[int, float], ...]
    hits: WordHits[int]
    places: Mapping[int, Place]
    has_clear_match: bool = False
    own: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecalledMessage:
    """An old message that was found, with its score. `text` is its text, or an excerpt that fits a budget."""

    stored: StoredMessage
    score: float
    text: str

    @property
    def position(self) -> int:
        return self.stored.position


class _Chosen:
    """Messages that fit a budget of tokens together, as `render` shows them."""

    def __init__(self, words: Sequence[AskedWord], count: Callable[[str], int], budget: int) -> None:
        self._words = words
        self._count = count
        self._rest = budget
        self._headed: set[datetime] = set()
        self.messages: list[RecalledMessage] = []

    @property
    def is_full(self) -> bool:
        return self._rest < MIN_TOKENS

    def _count_lines(self, text: str) -> int:
        return self._count(_indent(text))

    def add(self, stored: StoredMessage, score: float, *, may_cut: bool = False) -> None:
        """Add a message if it fits, or with `may_cut` an excerpt of it."""
        message, text = stored.message, stored.message.text
        hour = _round_to_hour(message.timestamp)
        rest = self._rest
        if hour not in self._headed:
            rest -= self._count(_write_date(message.timestamp))
        if len(text) > MAX_CHARS_PER_TOKEN * max(0, rest) or self._count(_write(message, text)) > rest:
            if not may_cut or rest < MIN_EXCERPT_TOKENS or len(text) > MAX_CUT_CHARS:
                return
            text = cut_excerpt(text, self._words, self._count_lines, rest - self._count(_write(message, "")))
        if text and (cost := self._count(_write(message, text))) <= rest:
            self._rest = rest - cost
            self._headed.add(hour)
            self.messages.append(RecalledMessage(stored, score, text))


class OldMessages:
    """The messages of one session that have left its window."""

    def __init__(self, store: Store, owner: str, session_id: str, embedder: Embedder | None = None) -> None:
        self._store = store
        self._owner = owner
        self._session_id = session_id
        self._embedder = embedder

    async def find(self, text: str, context: QuestionContext, *, by_meaning: bool = True) -> Found:
        """Find the messages that a question means, best first.

        If the question has a time and no message has its words, return what was said at that time.
        """
        question = context.read(text)
        is_compared = by_meaning and not question.is_about_time
        similar = await self._find_similar(text) if is_compared else SimilarMessages()
        found = await self._find(question, similar)
        if (named := context.add_speakers(text, found.places.values())) is not None:
            found = await self._find(named.read(text), similar)
        return found

    async def _find(self, question: RecallQuestion, similar: SimilarMessages) -> Found:
        if question.is_about_time:
            return await self._find_period(question)
        hits = await self._store.find_words(self._owner, self._session_id, question.words)
        places = {**hits.places, **await self._read_places(similar.scores.keys() - hits.found.keys())}
        own = choose_best(hits)
        for position, score in similar.scores.items():
            if position in places:
                own[position] = own.get(position, 0.0) + SIMILARITY_WEIGHT * score
        places |= await self._read_places(list_around(own) - places.keys())
        ranked = rank_messages(own, places.values(), question.said_by, question.period)
        if not ranked and question.period is not None:
            return await self._find_period(question)
        return Found(question, tuple(ranked), hits, places, similar.has_clear, own)

    async def rank_without(self, found: Found, left_out: Collection[int]) -> Found:
        """Rank what was found again, without the scores of some positions."""
        own = {at: score for at, score in found.own.items() if at not in left_out}
        read = await self._read_places(list_around(own) - found.places.keys())
        places = {**found.places, **read}
        question = found.question
        ranked = rank_messages(own, places.values(), question.said_by, question.period)
        return replace(found, ranked=tuple(ranked), places=places, own=own)

    async def _find_period(self, question: RecallQuestion) -> Found:
        search = PeriodSearch(self._store, self._owner, self._session_id)
        ordered = await search.find(question.period) if question.period else []
        ranked = tuple((place.position, 1.0) for place in ordered)
        return Found(question, ranked, WordHits((), {}, 0), {place.position: place for place in ordered})

    async def read_best(
        self, found: Found, count: Callable[[str], int], budget: int, leave_out: Collection[int] = ()
    ) -> list[RecalledMessage]:
        """Read the best messages that fit a budget of tokens together, best first.

        One of the best that does not fit is cut, others are skipped. The remaining tokens are filled with the
        question or the answer of each message.
        """
        least = MIN_SCORE * max((score for _, score in found.ranked), default=0.0)
        likely = found.ranked[:MAX_READ]
        scores = {at: score for at, score in likely if score >= least and at not in leave_out}
        chosen = _Chosen(found.question.words, count, budget)
        enough = CUT_SCORE * max(scores.values(), default=0.0)
        cut = {at for at in found.hits.found if scores.get(at, 0.0) >= enough}
        longest = MAX_CHARS_PER_TOKEN * budget
        best = [at for at in scores if found.places[at].length <= (MAX_CUT_CHARS if at in cut else longest)]
        for n in range(0, len(best), BATCH):
            for stored in await self.read(best[n : n + BATCH]):
                chosen.add(stored, scores[stored.position], may_cut=stored.position in cut)
            if chosen.is_full:
                return chosen.messages
        partners = await self._find_partners([each.position for each in chosen.messages], found.places)
        others = [at for at in partners if at not in scores and at not in leave_out]
        for stored in await self.read(others[:BATCH]):
            chosen.add(stored, 0.0)
        return chosen.messages

    async def read(self, positions: Sequence[int]) -> list[StoredMessage]:
        """Return the messages at some positions, in the same order. Damaged ones are left out."""
        if not positions:
            return []
        found = await self._store.messages_at(self._owner, self._session_id, positions)
        by_position = {stored.position: stored for stored in found}
        return [by_position[at] for at in positions if at in by_position]

    async def _find_similar(self, text: str) -> SimilarMessages:
        return await find_similar(self._store, self._owner, self._session_id, self._embedder, text)

    async def _read_places(self, positions: Collection[int]) -> dict[int, Place]:
        if not positions:
            return {}
        found = await self._store.read_places(self._owner, self._session_id, positions)
        return {place.position: place for place in found}

    async def _find_partners(self, positions: Sequence[int], places: Mapping[int, Place]) -> list[int]:
        """Return the positions of the messages that belong to others, also behind many calls of tools."""
        found = {at: find_partner(at, places) for at in positions}
        alone = [at for at in positions if found[at] is None and places[at].role == "assistant"]
        before = await self._read_places(
            {n for at in alone for n in range(max(1, at - MAX_TURN_MESSAGES), at)}
        )
        asked = [place.position for place in before.values() if place.role == "user"]
        found |= {at: max((n for n in asked if n < at), default=None) for at in alone}
        return list(dict.fromkeys(at for at in found.values() if at is not None))


def find_partner(position: int, places: Mapping[int, Place]) -> int | None:
    """Return the position of the answer to a message, or of the message that an answer belongs to."""
    place = places[position]
    step = -1 if place.role == "assistant" else 1
    near = (position + step * n for n in range(1, REACH + 1))
    other = next((places[at] for at in near if at in places), None)
    return other.position if other is not None and other.role != place.role else None


def group_by_turn(messages: Sequence[RecalledMessage]) -> list[list[RecalledMessage]]:
    """Return messages by the turns that they belong to, the turn with the best message first."""
    by_turn: dict[str | int, list[RecalledMessage]] = {}
    last: RecalledMessage | None = None
    for each in sorted(messages, key=lambda each: each.position):
        is_answer = each.stored.message.role != "user"
        follows = last is not None and each.position == last.position + 1 and is_answer
        key = each.stored.continuation_id or (next(reversed(by_turn)) if follows else each.position)
        by_turn.setdefault(key, []).append(each)
        last = each
    return sorted(by_turn.values(), key=lambda turn: -max(each.score for each in turn))


def repeats_query(hit: StoredMessage, query: str) -> bool:
    """Return True if a user message equals the query, or is a question with only its words."""
    text = hit.message.text[:MAX_COMPARED_CHARS]
    if hit.message.role != "user":
        return False
    said, asked = split_words(text), split_words(query)
    return said == asked or (ends_with_question_mark(text) and {*said} <= {*asked})


def render(messages: Sequence[RecalledMessage], zone: tzinfo | None = None) -> str:
    """Return the text of messages, oldest first. The first of each hour has its date."""
    parts: list[str] = []
    headed: set[datetime] = set()
    for each in sorted(messages, key=lambda each: each.position):
        message = each.stored.message
        if (hour := _round_to_hour(message.timestamp)) not in headed:
            headed.add(hour)
            parts.append(_write_date(message.timestamp.astimezone(zone)))
        parts.append(_write(message, each.text))
    return "".join(parts).removesuffix("\n")


def _round_to_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _write_date(at: datetime) -> str:
    return f"[{at:%Y-%m-%d %H:%M}]\n"


def _write(message: MessageEntry, text: str) -> str:
    """Return a message as lines. Its later lines are indented, so that none looks like another message."""
    name = " ".join((message.name or message.role).split())
    return f"{name}: {_indent(text)}\n"


def _indent(text: str) -> str:
    return "\n  ".join(text.splitlines())
