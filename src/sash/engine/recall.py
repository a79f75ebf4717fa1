"""Recall: finds evicted turns and shows them verbatim when the conversation returns to them.

Messages are found by their words and ranked with the conversation around them. A turn also gets a part of the
score of the turns before and after it, and of the best turns in the same stretch of conversation. A stretch
ends with a long silence.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from statistics import fmean, pstdev

from sash.engine.redaction import redact
from sash.memory.words import extract_stems, normalize, split_words
from sash.ports.embedder import Embedder, compare_vectors, pack_vector
from sash.ports.store import Store, StoredMessage

HITS_PER_WORD = 50
BEST_HITS = 12
REACH = 8
LONGEST_TURN = 40
RARE = 3
SAME = 0.6
LONG_STEM = 7
STRETCH = timedelta(hours=1)
EMBED_TIMEOUT_S = 3.0
# A turn is similar to the question if its similarity is this many standard deviations above the mean.
STANDS_OUT = 2.0
FEWEST_VECTORS = 8
# A search reads this many messages more than it returns, to put the questions among them last.
MAX_REPEATED_QUESTIONS = 20
MAX_QUESTION_CHARS = 1000

_logger = logging.getLogger(__name__)

_PREVIOUS, _NEXT, _STRETCH = 0.6, 0.3, 0.5
_SPEAKER = 1.3
_K1, _B = 1.2, 0.75
_LONG = 300

_SPEAKERS = {
    "user": frozenset({"i", "me", "my", "ich", "mir", "mich"}),
    "assistant": frozenset({"you", "du"}),
}


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """An evicted turn that matches a query, with its score."""

    messages: tuple[StoredMessage, ...]
    score: float

    @property
    def key(self) -> int:
        return self.messages[0].position


def find_missing(stems: Iterable[str], texts: Collection[str]) -> list[str]:
    """Return the stems that occur in none of the texts. The texts are in normal form (`words.normalize`)."""
    return [stem for stem in stems if not any(stem in text for text in texts)]


async def recall(
    store: Store, owner: str, session_id: str, query: str, embedder: Embedder | None = None
) -> list[RecalledTurn]:
    """Find evicted turns that share words with the query, or are similar in meaning, best first."""
    stems = extract_stems(query)
    hits = await store.recall(owner, session_id, stems, limit=HITS_PER_WORD) if stems else []
    scores = _scores(hits, stems, query) if hits else {}
    return await _rank_hits(store, owner, session_id, query, scores, embedder)


async def recall_rare(
    store: Store,
    owner: str,
    session_id: str,
    query: str,
    unknown: Sequence[str],
    embedder: Embedder | None = None,
) -> list[RecalledTurn]:
    """Find the evicted turns that a query clearly means, by its words that the window does not contain.

    A frequent word does not point to a turn. If the query has several important words, a turn must contain
    two of them, or one that is long or a number. If the user repeats a question, the turn of the old question
    is left out.
    """
    hits = await store.recall(owner, session_id, unknown, limit=RARE + 1, skip_tools=True) if unknown else []
    counts = _count_stems({hit.position: split_words(hit.message.text) for hit in hits}, unknown)
    times = Counter(stem for counted in counts.values() for stem in counted)
    rare = [stem for stem in unknown if 0 < times[stem] <= RARE]
    asked = extract_stems(query)
    enough = min(2, len(asked))
    meant = [
        hit
        for hit in hits
        if sum(_weigh(stem) for stem in rare if stem in counts[hit.position]) >= enough
        and not _repeats_question(hit, asked)
    ]
    scores = _scores(meant, rare, query) if meant else {}
    return await _rank_hits(store, owner, session_id, query, scores, embedder)


async def _rank_hits(
    store: Store,
    owner: str,
    session_id: str,
    query: str,
    scores: dict[int, float],
    embedder: Embedder | None,
) -> list[RecalledTurn]:
    """Read the messages around the hits, add the turns of similar meaning, and rank all turns."""
    if embedder is not None:
        most = max(scores.values(), default=1.0)
        for position, alike in (await _find_similar(store, owner, session_id, query, embedder)).items():
            scores[position] = scores.get(position, 0.0) + alike * most
    best = sorted(scores, key=lambda position: -scores[position])[:BEST_HITS]
    around: dict[int, StoredMessage] = {}
    for first, last in _merge_spans(best):
        found = await store.messages(owner, session_id, after=first - 1, limit=last - first + 1)
        if found and found[0].message.role != "user":
            found = await _extend_to_question(store, owner, session_id, found)
        around |= {m.position: m for m in found if not m.in_window}
    return rank([around[position] for position in sorted(around)], scores)


async def _extend_to_question(
    store: Store, owner: str, session_id: str, found: list[StoredMessage]
) -> list[StoredMessage]:
    """Add the messages before the first one, back to its user message, so that the turn is complete."""
    first = found[0].position
    after = max(0, first - 1 - LONGEST_TURN)
    before = (
        await store.messages(owner, session_id, after=after, limit=first - 1 - after) if first > 1 else []
    )
    asked = next((n for n in range(len(before) - 1, -1, -1) if before[n].message.role == "user"), None)
    return found if asked is None else [*before[asked:], *found]


async def _find_similar(
    store: Store, owner: str, session_id: str, query: str, embedder: Embedder
) -> dict[int, float]:
    """Return unusually similar turns, from position to similarity; empty if the embedder fails."""
    vectors = [v for v in await store.vectors(owner, session_id) if v.model == embedder.name]
    if len(vectors) < FEWEST_VECTORS:
        return {}
    try:
        async with asyncio.timeout(EMBED_TIMEOUT_S):
            [made] = await embedder.embed([query])
        asked = pack_vector(made)
        found = await asyncio.to_thread(lambda: {v.position: compare_vectors(asked, v.data) for v in vectors})
    except Exception as error:
        _logger.warning(
            "the embedder failed, so recall uses words only: %s", redact(str(error) or type(error).__name__)
        )
        return {}
    limit = fmean(found.values()) + STANDS_OUT * pstdev(found.values())
    return {position: alike for position, alike in found.items() if alike > limit}


def rank(messages: Sequence[StoredMessage], scores: dict[int, float]) -> list[RecalledTurn]:
    """Return the turns of these messages, best first, by their own scores and those of the turns around them.

    `scores` maps positions of messages to scores. Turns without a score are left out.
    """
    turns = group_turns(messages)
    own = [sum(scores.get(m.position, 0.0) for m in turn) for turn in turns]
    with_neighbours = []
    for n, score in enumerate(own):
        if n and _touch(turns[n - 1], turns[n]):
            score += _PREVIOUS * own[n - 1]
        if n + 1 < len(turns) and _touch(turns[n], turns[n + 1]):
            score += _NEXT * own[n + 1]
        with_neighbours.append(score)
    stretches = _number_stretches(turns)
    bonus = {}
    for stretch in set(stretches):
        scored = sorted(
            (s for s, k in zip(with_neighbours, stretches, strict=True) if k == stretch), reverse=True
        )
        bonus[stretch] = _STRETCH * sum(scored[:3]) / len(scored[:3])
    ranked = [
        RecalledTurn(tuple(turn), score + bonus[stretch])
        for turn, score, stretch in zip(turns, with_neighbours, stretches, strict=True)
        if score > 0
    ]
    return sorted(ranked, key=lambda turn: (-turn.score, -turn.key))


def render(
    turns: Sequence[RecalledTurn],
    stems: Sequence[str],
    count: Callable[[str], int],
    budget: int,
    zone: tzinfo | None = None,
) -> tuple[str, list[RecalledTurn]]:
    """Return the text of the best turns within `budget` tokens, oldest first, with dates, and these turns.

    A turn that does not fit is cut around the hit. Tool results are left out: they may be outdated.
    """
    chosen: dict[int, tuple[str, RecalledTurn]] = {}
    for turn in turns:
        for longest in (math.inf, _LONG):
            text = _text(turn, stems, longest, zone)
            cost = count(text)
            if cost <= budget:
                budget -= cost
                chosen[turn.key] = (text, turn)
                break
    shown = [chosen[key] for key in sorted(chosen)]
    return "\n".join(text for text, _ in shown), [turn for _, turn in shown]


def _text(turn: RecalledTurn, stems: Sequence[str], longest: float, zone: tzinfo | None) -> str:
    at = turn.messages[0].message.timestamp.astimezone(zone)
    lines = [f"[{at:%Y-%m-%d %H:%M}]"]
    for stored in turn.messages:
        message, text = stored.message, stored.message.text
        if text and message.role != "tool":
            said = text if len(text) <= longest else _cut_around_hit(text, stems)
            lines.append(f"{message.name or message.role}: {said}")
    return "\n".join(lines)


def _cut_around_hit(text: str, stems: Sequence[str]) -> str:
    """Return at most `_LONG` characters of a text, around the first word that has one of the stems."""
    said = normalize(text)
    hits = [at for stem in stems if (at := said.find(stem)) >= 0]
    start = max(0, min(hits, default=0) - _LONG // 2)
    piece = text[start : start + _LONG]
    return f"{'… ' * (start > 0)}{piece}{' …' * (start + _LONG < len(text))}"


def _scores(hits: Sequence[StoredMessage], stems: Sequence[str], query: str) -> dict[int, float]:
    """Return BM25 scores by position. A message of a speaker whom the query names counts more."""
    texts = {hit.position: split_words(hit.message.text) for hit in hits}
    mean = sum(map(len, texts.values())) / len(texts) or 1
    counts = _count_stems(texts, stems)
    frequency = Counter(stem for counted in counts.values() for stem in counted)
    total = max(len(hits), hits[-1].position)
    weight = {stem: math.log(1 + (total - n + 0.5) / (n + 0.5)) for stem, n in frequency.items()}
    asked, scores = set(split_words(query)), {}
    for hit in hits:
        length = _K1 * (1 - _B + _B * len(texts[hit.position]) / mean)
        score = sum(weight[s] * n * (_K1 + 1) / (n + length) for s, n in counts[hit.position].items())
        message = hit.message
        named = {normalize(message.name)} if message.name else _SPEAKERS.get(message.role, frozenset())
        scores[hit.position] = score * (_SPEAKER if named & asked else 1)
    return scores


def _weigh(stem: str) -> int:
    """Return the weight of a stem, 1 or 2.

    Long words and names with digits weigh more, because they seldom match by coincidence.
    """
    return 1 if len(stem) < LONG_STEM and stem.isalpha() else 2


def _repeats_question(hit: StoredMessage, asked: Sequence[str]) -> bool:
    """Return True if a user message has nearly the same stems as the new question (`asked`)."""
    if hit.message.role != "user":
        return False
    said = set(extract_stems(hit.message.text))
    return len(said.intersection(asked)) >= SAME * len(said.union(asked))


def repeats_query(hit: StoredMessage, query: str) -> bool:
    """Return True if a message is a question of the user that has only the words of the query."""
    text = hit.message.text[:MAX_QUESTION_CHARS]
    if hit.message.role != "user":
        return False
    said, asked = split_words(text), split_words(query)
    return said == asked or (text.rstrip().endswith("?") and {*said} <= {*asked})


def _count_stems(texts: dict[int, list[str]], stems: Iterable[str]) -> dict[int, Counter[str]]:
    """Return for each text, by its key, how many of its words start with each stem."""
    by_key: dict[str, list[str]] = {}
    for stem in stems:
        by_key.setdefault(stem[:3], []).append(stem)
    return {
        position: Counter(stem for word in text for stem in by_key.get(word[:3], ()) if word.startswith(stem))
        for position, text in texts.items()
    }


def _merge_spans(positions: Collection[int]) -> list[tuple[int, int]]:
    """Return ranges (first, last) of the transcript around positions. Ranges that touch are joined."""
    spans: list[tuple[int, int]] = []
    for position in sorted(positions):
        first, last = max(1, position - REACH), position + REACH
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans


def group_turns(messages: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
    """Group stored messages into turns. A user message starts a turn, and so does a gap between positions."""
    turns: list[list[StoredMessage]] = []
    for stored in messages:
        follows = bool(turns) and turns[-1][-1].position + 1 == stored.position
        if stored.message.role == "user" or not follows:
            turns.append([])
        turns[-1].append(stored)
    return turns


def _touch(one: Sequence[StoredMessage], other: Sequence[StoredMessage]) -> bool:
    return one[-1].position + 1 == other[0].position


def _number_stretches(turns: Sequence[Sequence[StoredMessage]]) -> list[int]:
    """Return a stretch number for each turn. A long silence or a missing position starts a new stretch."""
    numbers: list[int] = []
    for n, turn in enumerate(turns):
        last = turns[n - 1] if n else None
        silence = last is not None and turn[0].message.timestamp - last[-1].message.timestamp > STRETCH
        new = last is None or silence or not _touch(last, turn)
        numbers.append((numbers[-1] if numbers else 0) + new)
    return numbers
