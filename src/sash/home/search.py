"""Finding things by words, also by words that are not quite right."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import log
from typing import NamedTuple

from sash.memory.words import extract_keywords, normalize, split_words, stem

# How much a word counts that is found so, and not as it was written.
SAME_STEM = 0.85
BEGINS_SO = 0.7
MISTYPED = 0.6
WITHIN = 0.5
# A word that is shorter has too many neighbours.
SHORTEST_MISTYPED = 4
SHORTEST_WITHIN = 4
SHORTEST_IDEOGRAMS = 2
TWO_MISTAKES = 8
WORDS_KEPT = 4096
LONGEST_QUERY = 500
LONGEST_WORD = 40
# What so many things have is only looked at in what the rarer words have found.
COMMON = 2000
# What it is worth to be called exactly so.
CALLED_SO = 10.0

# What is joined to a word by an apostrophe and is no word itself: what's, l'entrée.
_joined = re.compile(r"(?<=\w)['’](?:\w|ll|re|ve)\b|\b\w['’](?=\w)")


class Found(NamedTuple):
    """The best of what was found, and how much that was in all."""

    ids: list[str]
    total: int


class WordSearch:
    """Finds things by the words of their texts, each of which has a weight, and by their names as a whole.

    A word that nothing has is taken for one that is near it: with the same stem, longer, or mistyped.
    """

    def __init__(
        self, texts: Mapping[str, Iterable[tuple[str, float]]], names: Mapping[str, Iterable[str]]
    ) -> None:
        self._ids = list(texts)
        self._postings: dict[str, dict[int, float]] = defaultdict(dict)
        for number, described in enumerate(texts.values()):
            for text, weight in described:
                for word in split_words(text):
                    if len(word) > LONGEST_WORD:
                        continue
                    posting = self._postings[word]
                    posting[number] = max(weight, posting.get(number, 0.0))
        self._numbers = {thing: number for number, thing in enumerate(self._ids)}
        self._names: dict[str, set[int]] = defaultdict(set)
        for thing, called in names.items():
            for name in called:
                self._names[_phrase(name)].add(self._numbers[thing])
        self._vocabulary = sorted(self._postings)
        self._stems: dict[str, list[str]] = defaultdict(list)
        self._deletes: dict[str, list[str]] = defaultdict(list)
        for word in self._vocabulary:
            self._stems[stem(word)].append(word)
            if len(word) >= SHORTEST_MISTYPED - 1:
                for shorter in _deletes(word):
                    self._deletes[shorter].append(word)
        self._near = lru_cache(WORDS_KEPT)(self._find_near)

    def called(self, name: str) -> list[str]:
        """Return the things that are called exactly so, without regard to case, accents and blanks."""
        return [self._ids[number] for number in sorted(self._names.get(_phrase(name), ()))]

    def search(self, query: str, most: int, fits: Callable[[str], bool] | None = None) -> Found:
        """Return what fits, best first: what has more of the words, then what has the rarer ones."""
        asked, said = self._asked(query)
        scores: dict[int, float] = {}
        for word in sorted(dict.fromkeys(asked or said), key=self._frequency):
            is_common = self._frequency(word) > COMMON
            if is_common and len(scores) > COMMON:
                continue  # it tells nothing more
            one = self._scores(word, len(asked))
            if not scores:
                scores = one
                continue
            for number in scores.keys() & one.keys() if is_common else one.keys():
                scores[number] = scores.get(number, 0.0) + one[number]
        for number in self._names.get(_phrase(query), ()):
            scores[number] = scores.get(number, 0.0) + CALLED_SO
        if fits is not None:
            scores = {number: score for number, score in scores.items() if fits(self._ids[number])}
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:most]
        return Found([self._ids[number] for number in best], len(scores))

    def unmatched(self, query: str, thing: str) -> list[str]:
        """Return the words of a query that a thing has not, nor any that may be meant by them."""
        number, asked = self._numbers[thing], self._asked(query)[0]
        return [
            word
            for word in dict.fromkeys(asked)
            if not any(number in self._postings[near] for near, _ in self._near(word))
        ]

    def _asked(self, query: str) -> tuple[list[str], list[str]]:
        """Return the words of a query that tell something, and all of them."""
        text = _joined.sub("", query[:LONGEST_QUERY])
        said = [word for word in split_words(text) if len(word) <= LONGEST_WORD]
        meant = frozenset(extract_keywords(text))
        return [word for word in said if word in meant or self._is_short_name(word)], said

    def _frequency(self, word: str) -> int:
        """Return how many things have a word, or one that may be meant by it."""
        return sum(len(self._postings[near]) for near, _ in self._near(word))

    def _scores(self, word: str, bonus: float) -> dict[int, float]:
        """Return what a word finds, each by the best of the words that may be meant, and a bonus for each."""
        best: dict[int, float] = {}
        for near, quality in self._near(word):
            posting = self._postings[near]
            worth = quality * log(1 + len(self._ids) / len(posting))
            if not best:
                best = {number: worth * weight + bonus for number, weight in posting.items()}
                continue
            for number, weight in posting.items():
                if (score := worth * weight + bonus) > best.get(number, 0.0):
                    best[number] = score
        return best

    def _find_near(self, word: str) -> list[tuple[str, float]]:
        """Return the known words that may be meant by a word, and how likely."""
        if word in self._postings:
            alike = [other for other in self._stems[stem(word)] if other != word]
            return [(word, 1.0), *((other, SAME_STEM) for other in alike)]
        if alike := self._stems.get(stem(word), []):
            return [(other, SAME_STEM) for other in alike]
        if longer := self._beginning_with(word):
            return [(other, BEGINS_SO) for other in longer]
        if mistyped := self._mistyped(word):
            return [(other, MISTYPED / mistakes) for other, mistakes in mistyped]
        shortest = SHORTEST_WITHIN if word.isascii() else SHORTEST_IDEOGRAMS
        if len(word) < shortest:
            return []
        return [
            (other, WITHIN)
            for other in self._vocabulary
            if word in other or (len(other) >= shortest and other in word)
        ]

    def _is_short_name(self, word: str) -> bool:
        """Whether a word is too short to be looked for in most texts, but names something here: TV, AC, 3."""
        return len(word) <= 2 and word in self._postings

    def _beginning_with(self, word: str) -> list[str]:
        if len(word) < SHORTEST_MISTYPED - 1:
            return []
        found = []
        for at in range(bisect_left(self._vocabulary, word), len(self._vocabulary)):
            if not self._vocabulary[at].startswith(word):
                break
            found.append(self._vocabulary[at])
        return found

    def _mistyped(self, word: str) -> list[tuple[str, int]]:
        """Return the known words that are one mistake away, or two if the word is long."""
        if len(word) < SHORTEST_MISTYPED:
            return []
        most = 2 if len(word) >= TWO_MISTAKES else 1
        near = {other for shorter in _deletes(word) for other in self._deletes.get(shorter, ())}
        if len(word) == SHORTEST_MISTYPED:
            near = {other for other in near if other[0] == word[0]}  # a ball is no hall
        measured = [(other, _mistakes(word, other, most)) for other in sorted(near)]
        return [(other, mistakes) for other, mistakes in measured if mistakes <= most]


def _phrase(text: str) -> str:
    return "".join(split_words(text)) or normalize(text)


def _deletes(word: str) -> set[str]:
    """Return a word, and what is left of it without one of its letters, or two if it is long.

    Words that are that many mistakes apart have one of these in common.
    """
    shorter = {word[:n] + word[n + 1 :] for n in range(len(word))}
    if len(word) >= TWO_MISTAKES:
        shorter |= {less[:n] + less[n + 1 :] for less in shorter for n in range(len(less))}
    return {word, *shorter}


def _mistakes(one: str, other: str, most: int) -> int:
    """Count the letters that are wrong, missing, too many or swapped; more than `most` is enough to know."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        previous, before, row = before, row, [i]
        for j, other_letter in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other_letter:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
    return row[-1]
