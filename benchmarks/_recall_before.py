"""The first scoring of recall, for comparison: turns by the 50 newest messages of each word."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from sash.memory.words import extract_stems, normalize, split_words
from sash.values.messages import MessageEntry

HITS_PER_WORD = 50
BEST_HITS = 12
REACH = 8
STRETCH = timedelta(hours=1)
_PREVIOUS, _NEXT, _STRETCH = 0.6, 0.3, 0.5
_SPEAKER = 1.3
_K1, _B = 1.2, 0.75
_SPEAKERS = {
    "user": frozenset({"i", "me", "my", "ich", "mir", "mich"}),
    "assistant": frozenset({"you", "du"}),
}

_Placed = tuple[int, MessageEntry]


def rank_turns(messages: Sequence[MessageEntry], query: str) -> list[int]:
    """Return the positions of the messages of the best turns, best turn first."""
    stems = extract_stems(query)
    hits = _find_newest(messages, stems)
    scores = _scores(hits, stems, query) if hits else {}
    best = sorted(scores, key=lambda position: -scores[position])[:BEST_HITS]
    around = sorted({n for at in best for n in range(max(1, at - REACH), min(len(messages), at + REACH) + 1)})
    ranked = _rank([(at, messages[at - 1]) for at in around], scores)
    return [at for turn in ranked for at, _ in turn]


def _find_newest(messages: Sequence[MessageEntry], stems: Sequence[str]) -> list[_Placed]:
    found: set[int] = set()
    words = [split_words(message.text) for message in messages]
    for stem in stems:
        with_stem = [n for n in range(len(messages)) if any(word.startswith(stem) for word in words[n])]
        found.update(with_stem[-HITS_PER_WORD:])
    return [(n + 1, messages[n]) for n in sorted(found)]


def _rank(placed: Sequence[_Placed], scores: dict[int, float]) -> list[list[_Placed]]:
    turns = _group_turns(placed)
    own = [sum(scores.get(at, 0.0) for at, _ in turn) for turn in turns]
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
        (score + bonus[stretch], turn)
        for turn, score, stretch in zip(turns, with_neighbours, stretches, strict=True)
        if score > 0
    ]
    return [turn for _, turn in sorted(ranked, key=lambda item: (-item[0], -item[1][0][0]))]


def _scores(hits: Sequence[_Placed], stems: Sequence[str], query: str) -> dict[int, float]:
    texts = {at: split_words(message.text) for at, message in hits}
    mean = sum(map(len, texts.values())) / len(texts) or 1
    counts = _count_stems(texts, stems)
    frequency = Counter(stem for counted in counts.values() for stem in counted)
    total = max(len(hits), hits[-1][0])
    weight = {stem: math.log(1 + (total - n + 0.5) / (n + 0.5)) for stem, n in frequency.items()}
    asked, scores = set(split_words(query)), {}
    for at, message in hits:
        length = _K1 * (1 - _B + _B * len(texts[at]) / mean)
        score = sum(weight[s] * n * (_K1 + 1) / (n + length) for s, n in counts[at].items())
        named = {normalize(message.name)} if message.name else _SPEAKERS.get(message.role, frozenset())
        scores[at] = score * (_SPEAKER if named & asked else 1)
    return scores


def _count_stems(texts: dict[int, list[str]], stems: Iterable[str]) -> dict[int, Counter[str]]:
    return {
        at: Counter(stem for word in text for stem in stems if word.startswith(stem))
        for at, text in texts.items()
    }


def _group_turns(placed: Collection[_Placed]) -> list[list[_Placed]]:
    turns: list[list[_Placed]] = []
    for at, message in placed:
        follows = bool(turns) and turns[-1][-1][0] + 1 == at
        if message.role == "user" or not follows:
            turns.append([])
        turns[-1].append((at, message))
    return turns


def _touch(one: Sequence[_Placed], other: Sequence[_Placed]) -> bool:
    return one[-1][0] + 1 == other[0][0]


def _number_stretches(turns: Sequence[Sequence[_Placed]]) -> list[int]:
    numbers: list[int] = []
    for n, turn in enumerate(turns):
        last = turns[n - 1] if n else None
        silence = last is not None and turn[0][1].timestamp - last[-1][1].timestamp > STRETCH
        new = last is None or silence or not _touch(last, turn)
        numbers.append((numbers[-1] if numbers else 0) + new)
    return numbers
