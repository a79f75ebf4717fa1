"""Search: finds messages of one session or of all sessions of an owner, also those in a window."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sash.engine.period_search import PeriodSearch
from sash.engine.recall import MAX_CHARS_PER_TOKEN, SIMILARITY_WEIGHT, QuestionContext, repeats_query
from sash.engine.similar_messages import find_similar
from sash.errors import SessionNotFound
from sash.memory.asked_words import AskedWord
from sash.memory.recall_question import MAX_WORDS, RecallQuestion, is_asking
from sash.memory.recall_ranking import (
    MAX_BEST,
    MAX_CANDIDATES,
    Period,
    Place,
    Spot,
    choose_best,
    list_around,
    rank_messages,
)
from sash.memory.words import split_index_words
from sash.ports.embedder import Embedder
from sash.ports.store import Store, StoredMessage

# A search reads this many messages more than it returns, to put the questions among them last.
MAX_REPEATED_QUESTIONS = 20
# So many messages are read at a time, until they have this many characters.
BATCH, MAX_FOUND_CHARS = 20, 4 << 20
# A question with a time and no topic looks through this number of sessions and pages of sessions at most.
MAX_SESSIONS, MAX_PAGES = 200, 20


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How many tokens the results of a search may have together, and how to count them."""

    max_tokens: int
    count: Callable[[str], int]


class TranscriptSearch:
    """Searches one session, or all sessions of an owner."""

    def __init__(
        self, store: Store, owner: str, session_id: str | None, embedder: Embedder | None = None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._owner = owner
        self._session_id = session_id

    async def search(
        self, query: str, context: QuestionContext, limit: int, budget: TokenBudget | None = None
    ) -> list[StoredMessage]:
        """Return the best messages for a query, best first.

        Questions that repeat the query, and the answers to them, come last. With a budget, messages that do
        not fit are skipped, and messages around the matches are found, too. A question finds these anyway,
        because an answer seldom repeats its words. Other queries find only messages with one of their words.
        """
        question = context.read(query)
        asks = is_asking(query, context.language)
        wanted = _Wanted(
            limit + MAX_REPEATED_QUESTIONS,
            uses_period=asks,
            with_neighbours=asks or budget is not None,
            max_chars=None if budget is None else MAX_CHARS_PER_TOKEN * budget.max_tokens,
        )
        uses_meaning = wanted.with_neighbours and not question.is_about_time
        similar = await self._find_similar(query) if uses_meaning else {}
        ranked = await self._rank(question, similar, query, context, wanted)
        if not ranked and asks and question.period is not None:
            ranked = await self._find_period(question.period)
        found = await self._read(ranked[: wanted.count])
        repeated = {Spot(each.session_id, each.position) for each in found if repeats_query(each, query)}
        if repeated:
            # They would lend their high scores to the messages around them.
            last = sorted(
                filter(lambda each: _find_rank(each, repeated), found),
                key=lambda each: _find_rank(each, repeated),
            )
            without = replace(wanted, leave_out=frozenset(repeated))
            others = await self._rank(question, similar, query, context, without)
            shown = {Spot(each.session_id, each.position) for each in last}
            found = [*await self._read([spot for spot in others if spot not in shown][: wanted.count]), *last]
        return (found if budget is None else list(_choose_fitting(found, budget)))[:limit]

    async def _rank(
        self,
        question: RecallQuestion,
        similar: Mapping[Spot, float],
        query: str,
        context: QuestionContext,
        wanted: "_Wanted",
    ) -> list[Spot]:
        """Return the messages, best first. A name among the words of the query is a speaker."""
        if wanted.uses_period and question.is_about_time:
            return []
        question = _complete(question, query, uses_period=wanted.uses_period)
        ranked, places = await self._rank_for(question, similar, wanted)
        named = context.add_speakers(query, (place for known in places.values() for place in known.values()))
        if named is None:
            return ranked
        question = _complete(named.read(query), query, uses_period=wanted.uses_period)
        return (await self._rank_for(question, similar, wanted))[0]

    async def _find_similar(self, query: str) -> Mapping[Spot, float]:
        """Return the messages of similar meaning. Vectors of all sessions would be too many."""
        session_id = self._session_id
        if session_id is None:
            return {}
        similar = await find_similar(self._store, self._owner, session_id, self._embedder, query)
        return {Spot(session_id, at): SIMILARITY_WEIGHT * score for at, score in similar.scores.items()}

    async def _find_period(self, period: Period) -> list[Spot]:
        """Return what was said in a period, so that the first messages tell of all sessions and topics."""
        found: list[tuple[int, Spot]] = []
        for session_id in await self._list_sessions(period):
            search = PeriodSearch(self._store, self._owner, session_id, with_window=True)
            with suppress(SessionNotFound):
                ordered = await search.find(period)
                found += ((n, Spot(session_id, place.position)) for n, place in enumerate(ordered))
        return [spot for _, spot in sorted(found)]

    async def _list_sessions(self, period: Period) -> list[str]:
        """Return the id of the session, or those of the newest ones that may have messages of a period."""
        if self._session_id is not None:
            return [self._session_id]
        found: list[str] = []
        cursor = None
        for _ in range(MAX_PAGES):
            page = await self._store.list_sessions(self._owner, limit=MAX_SESSIONS, cursor=cursor)
            found += (
                session.id
                for session in page.items
                if session.created_at.timestamp() < period.end
                and session.updated_at.timestamp() >= period.start
            )
            cursor = page.next_cursor
            if cursor is None or len(found) >= MAX_SESSIONS:
                break
        return found[:MAX_SESSIONS]

    async def _rank_for(
        self, question: RecallQuestion, similar: Mapping[Spot, float], wanted: "_Wanted"
    ) -> tuple[list[Spot], Mapping[str, Mapping[int, Place]]]:
        """Return the messages, best first, and the places that were compared, by session."""
        hits = await self._store.search_words(
            self._owner, question.words, session_id=self._session_id, count=max(MAX_CANDIDATES, wanted.count)
        )
        best: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for (session_id, at), score in choose_best(hits, max(MAX_BEST, wanted.count)).items():
            best[session_id][at] = score
        for (session_id, at), score in similar.items():
            best[session_id][at] = best[session_id].get(at, 0.0) + score
        for session_id, at in wanted.leave_out:
            best[session_id].pop(at, None)
        places: dict[str, Mapping[int, Place]] = {}
        scores: list[tuple[Spot, float]] = []
        for session_id, own in best.items():
            places[session_id] = await self._read_places(session_id, {*own, *list_around(own)})
            ranked = rank_messages(own, places[session_id].values(), question.said_by, question.period)
            scores += [
                (Spot(session_id, at), score)
                for at, score in ranked
                if wanted.max_chars is None or places[session_id][at].length <= wanted.max_chars
            ]
        scores.sort(key=lambda item: (-item[1], item[0]))
        return [spot for spot, _ in scores if wanted.with_neighbours or spot in hits.found], places

    async def _read_places(self, session_id: str, positions: Iterable[int]) -> dict[int, Place]:
        """Return what was said at some positions; nothing of a session that is deleted meanwhile."""
        try:
            found = await self._store.read_places(self._owner, session_id, [*positions], with_window=True)
        except SessionNotFound:
            return {}
        return {place.position: place for place in found}

    async def _read(self, spots: Sequence[Spot]) -> list[StoredMessage]:
        """Read messages in their order, until they are large together. Damaged ones are left out."""
        found: list[StoredMessage] = []
        chars = 0
        for start in range(0, len(spots), BATCH):
            batch = spots[start : start + BATCH]
            by_spot: dict[Spot, StoredMessage] = {}
            for session_id in {spot.session_id for spot in batch}:
                at = [spot.position for spot in batch if spot.session_id == session_id]
                by_spot |= await self._read_session(session_id, at)
            read = [by_spot[spot] for spot in batch if spot in by_spot]
            found += read
            chars += sum(len(stored.message.text) for stored in read)
            if chars > MAX_FOUND_CHARS:
                break
        return found

    async def _read_session(self, session_id: str, positions: Sequence[int]) -> dict[Spot, StoredMessage]:
        try:
            read = await self._store.messages_at(self._owner, session_id, positions)
        except SessionNotFound:
            return {}
        return {Spot(session_id, stored.position): stored for stored in read}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The limits of a search: the number of messages, and their maximum length.

    With `with_neighbours` it also returns messages around those with the words of the query. The messages in
    `leave_out` have no score of their own.
    """

    count: int
    uses_period: bool
    with_neighbours: bool
    max_chars: int | None
    leave_out: frozenset[Spot] = frozenset()


def _find_rank(stored: StoredMessage, questions: Collection[Spot]) -> int:
    """Return 2 for one of some questions, 1 for an answer to one, and 0 for other messages."""
    if Spot(stored.session_id, stored.position) in questions:
        return 2
    before = Spot(stored.session_id, stored.position - 1)
    return int(stored.message.role == "assistant" and before in questions)


def _complete(question: RecallQuestion, query: str, *, uses_period: bool) -> RecallQuestion:
    """Return a question without its time if it asks nothing, and with all words if none has a topic."""
    if not uses_period:
        question = replace(question, period=None)
    if question.words:
        return question
    said = dict.fromkeys(split_index_words(query))
    return replace(question, words=tuple(AskedWord(word, (word,)) for word in said)[:MAX_WORDS])


def _choose_fitting(found: Iterable[StoredMessage], budget: TokenBudget) -> Iterable[StoredMessage]:
    """Yield the messages that fit a budget together, in their order."""
    rest = budget.max_tokens
    for stored in found:
        cost = stored.message.token_count or budget.count(stored.message.text)
        if cost <= rest:
            rest -= cost
            yield stored
