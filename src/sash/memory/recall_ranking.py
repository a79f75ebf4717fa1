"""Ranks old messages for a question, by their words and by the conversation around them.

All values are plain: positions, lengths, speakers, times. So every store gets the same order.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Generic, NamedTuple, TypeVar

from sash.memory.words import ends_with_question_mark
from sash.values.messages import MessageEntry

# The maximum number of messages with the rarest words of a question that are compared.
MAX_CANDIDATES = 150
# The maximum number of candidates, best score first, that share their score with the messages around them.
MAX_BEST = 60
# This number of positions before and after a message is read. Calls of tools stand between what is said.
REACH = 4
# Messages around one with less of the best score are not read.
_MIN_SHARED_SCORE = 0.3
# The roles of messages that are found again. Results of tools may be outdated.
SPOKEN_ROLES = frozenset({"user", "assistant"})
# A silence of so many seconds ends a stretch of conversation.
SILENCE_S = 7200.0

# Okapi BM25. A message is short, so that a word counts once.
_K1, _B = 1.2, 0.3
_MIN_WEIGHT = 1e-6
# A question seldom holds its own answer, and the message after it often does.
_IS_QUESTION, _AFTER_QUESTION = 0.85, 1.3
# What a message gets from the messages before and after it, by their distance.
_SHARES: Mapping[int, float] = {-2: 0.2, -1: 0.6, 1: 0.3, 2: 0.15}
_SPOKEN_BY = 1.8
_STRETCH, _BEST_OF_STRETCH = 0.6, 3
_IN_TIME = 2.0
# Days before or after the time that is asked for until its bonus falls to 1/e.
_DAYS_AFTER, _DAYS_BEFORE = 10.0, 2.0
_DAY_S = 86_400.0


# A word that only similar words stand for tells less.
_GUESSED = 0.7


class Spot(NamedTuple):
    """A message of an owner: its session, and its position there."""

    session_id: str
    position: int


# A message among others: its position in one session, or its `Spot`. It has an order.
K = TypeVar("K", int, Spot)


class Place(NamedTuple):
    """A message as the ranking sees it. `at` is its time in seconds, and `length` is in characters.

    `speaker` is its name, or else its role.
    """

    position: int
    role: str
    speaker: str
    at: float
    length: int
    is_question: bool


@dataclass(frozen=True, slots=True)
class WordHits(Generic[K]):
    """The messages with the words of a question.

    `weights` are those of the words: the rarer a word is, the more it tells. `found` has for each message
    the numbers of its words in `weights`, as the bits of a number. `places` has the same messages as `found`.
    """

    weights: tuple[float, ...]
    found: Mapping[K, int]
    message_count: int
    places: Mapping[K, Place] = field(default_factory=dict)

    def at_places(self, places: Mapping[K, Place]) -> "WordHits[K]":
        """Return the hits with their places. Messages without a place are left out."""
        return replace(self, found={at: self.found[at] for at in places}, places=places)

    def sum_weights(self, words: int) -> float:
        """Return the sum of the weights of some words, given as bits."""
        return sum(weight for n, weight in enumerate(self.weights) if words >> n & 1)


@dataclass(frozen=True, slots=True)
class Period:
    """The time that a question is about, in seconds."""

    start: float
    end: float


def weigh_word(hit_count: int, message_count: int) -> float:
    """Return how much a word tells that `hit_count` of all messages have."""
    if not hit_count:
        return 0.0
    return max(_MIN_WEIGHT, math.log((max(0, message_count - hit_count) + 0.5) / (hit_count + 0.5)))


def choose_candidates(
    lists: Sequence[Collection[K]],
    message_count: int,
    guessed: frozenset[int] = frozenset(),
    count: int = MAX_CANDIDATES,
) -> WordHits[K]:
    """Return the messages with the rarest words, at most `count`. `lists` has the messages with each word.

    `guessed` are the numbers of words that no message has: other words stand for them that are written alike.
    """
    weights = tuple(
        weigh_word(len(messages), message_count) * (_GUESSED if n in guessed else 1)
        for n, messages in enumerate(lists)
    )
    found: dict[K, int] = {}
    for n, messages in enumerate(lists):
        bit = 1 << n
        for message in messages:
            found[message] = found.get(message, 0) | bit
    hits = WordHits(weights, found, message_count)
    if len(found) <= count:
        return hits
    sums = {words: hits.sum_weights(words) for words in set(found.values())}
    best = nlargest(count, found.items(), key=lambda item: (sums[item[1]], item[0]))
    return replace(hits, found=dict(best))


def make_place(position: int, message: MessageEntry) -> Place:
    """Return what the ranking knows of a message."""
    text = message.text
    at = message.timestamp.timestamp()
    speaker = message.name or message.role
    return Place(position, message.role, speaker, at, len(text), ends_with_question_mark(text))


def choose_best(hits: WordHits[K], count: int = MAX_BEST) -> dict[K, float]:
    """Return the scores of the best candidates, from 0 to 1. Of the same words, a short message has more."""
    mean = sum(place.length for place in hits.places.values()) / max(1, len(hits.places)) or 1.0
    sums = {words: hits.sum_weights(words) for words in set(hits.found.values())}
    scores = {
        at: sums[words] / (1 + _K1 * (1 - _B + _B * hits.places[at].length / mean))
        for at, words in hits.found.items()
    }
    most = max(scores.values(), default=0.0)
    best = nlargest(count, scores.items(), key=lambda item: (item[1], item[0]))
    return {at: score / most for at, score in best} if most > 0 else {}


def list_around(scores: Mapping[int, float]) -> set[int]:
    """Return the positions of messages with good scores, and of those around them."""
    least = _MIN_SHARED_SCORE * max(scores.values(), default=0.0)
    good = [at for at, score in scores.items() if score >= least]
    return {n for at in good for n in range(max(1, at - REACH), at + REACH + 1)}


def rank_messages(
    own: Mapping[int, float],
    places: Iterable[Place],
    said_by: str | None = None,
    period: Period | None = None,
) -> list[tuple[int, float]]:
    """Return the positions of messages with their scores, best first.

    `own` are the scores from `choose_best`. `places` are those of these messages and of the ones around them.
    What was said by `said_by` counts more: by the speaker with this name, or by all with this role.
    """
    ordered = sorted(places, key=lambda place: place.position)
    stretches = _number_stretches(ordered)
    scores = _add_neighbours(own, ordered, stretches)
    scores = [
        score * (_SPOKEN_BY if said_by in (place.speaker, place.role) else 1)
        for score, place in zip(scores, ordered, strict=True)
    ]
    best = _score_stretches(own, ordered, stretches)
    ranked = []
    for place, stretch, score in zip(ordered, stretches, scores, strict=True):
        if score <= 0:
            continue
        score += _STRETCH * best.get(stretch, 0.0)
        if period is not None:
            score *= 1 + _IN_TIME * _weigh_time(place.at, period)
        ranked.append((place.position, score))
    return sorted(ranked, key=lambda item: (-item[1], -item[0]))


def order_by_stretch(places: Iterable[Place]) -> list[Place]:
    """Return messages: the first turn of each stretch of conversation, then the second of each, and so on.

    So the first messages tell of many stretches.
    """
    ordered = sorted(places, key=lambda place: place.position)
    turns: dict[int, int] = {}
    keys: dict[int, tuple[int, int]] = {}
    for place, stretch in zip(ordered, _number_stretches(ordered), strict=True):
        turns[stretch] = turns.get(stretch, 0) + (place.role == "user")
        keys[place.position] = (turns[stretch], place.position)
    return sorted(ordered, key=lambda place: keys[place.position])


def _number_stretches(ordered: Sequence[Place]) -> list[int]:
    """Return the number of the stretch of conversation of each message. A long silence ends a stretch."""
    numbers: list[int] = []
    for n, place in enumerate(ordered):
        is_new = n == 0 or place.at - ordered[n - 1].at > SILENCE_S
        numbers.append((numbers[-1] if numbers else 0) + is_new)
    return numbers


def _add_neighbours(
    own: Mapping[int, float], ordered: Sequence[Place], stretches: Sequence[int]
) -> list[float]:
    """Return the scores with parts of those of the messages before and after, in the same stretch."""
    scores = [0.0] * len(ordered)
    for n, place in enumerate(ordered):
        if not (score := own.get(place.position, 0.0)):
            continue
        scores[n] += score * (_IS_QUESTION if place.is_question else 1)
        for distance, share in _SHARES.items():
            to = n - distance
            if not 0 <= to < len(ordered) or stretches[to] != stretches[n]:
                continue
            if abs(ordered[to].position - place.position) > REACH:
                continue
            is_answer = distance == -1 and place.is_question
            scores[to] += share * score * (_AFTER_QUESTION if is_answer else 1)
    return scores


def _score_stretches(
    own: Mapping[int, float], ordered: Sequence[Place], stretches: Sequence[int]
) -> dict[int, float]:
    """Return the mean of the best scores of each stretch."""
    by_stretch: dict[int, list[float]] = {}
    for place, stretch in zip(ordered, stretches, strict=True):
        if score := own.get(place.position):
            by_stretch.setdefault(stretch, []).append(score)
    return {
        stretch: sum(sorted(scores)[-_BEST_OF_STRETCH:]) / _BEST_OF_STRETCH
        for stretch, scores in by_stretch.items()
    }


def _weigh_time(at: float, period: Period) -> float:
    """Return 1 for a time that is asked for, and less for others. What is said later may report of it."""
    if at > period.end:
        return math.exp(-(at - period.end) / _DAY_S / _DAYS_AFTER)
    return math.exp(-max(0.0, period.start - at) / _DAY_S / _DAYS_BEFORE)
