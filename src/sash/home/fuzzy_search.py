"""Full-text search over short texts that tolerates word endings and typing mistakes."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import log
from typing import NamedTuple

from sash.memory.words import extract_keywords, normalize, split_words, stem

# The quality of a match that is not exact.
STEM_QUALITY = 0.85
PREFIX_QUALITY = 0.7
TYPO_QUALITY = 0.6
SUBSTRING_QUALITY = 0.5
# Shorter words match too many others.
MIN_TYPO_LENGTH = 4
MIN_SUBSTRING_LENGTH = 4
MIN_IDEOGRAM_LENGTH = 2
# Words of at least this length may have two mistakes.
MIN_TWO_TYPOS_LENGTH = 8
MAX_CACHED_WORDS = 4096
MAX_QUERY_CHARS = 500
MAX_WORD_CHARS = 40
# A word that matches more entries than this only ranks the matches of rarer words.
MAX_COMMON_MATCHES = 2000
EXACT_NAME_BONUS = 10.0

# Short parts that an apostrophe joins to a word: what's, l'entrée.
_CONTRACTION = re.compile(r"(?<=\w)['’](?:\w|ll|re|ve)\b|\b\w['’](?=\w)")


class SearchResult(NamedTuple):
    """The ids of the best matches, best first, and the number of all matches."""

    ids: list[str]
    total: int


class FuzzySearch:
    """Searches entries by the words of their weighted texts, and by their full names.

    If no entry has a word, similar words match: with the same stem, longer ones, or with typing mistakes.
    """

    def __init__(
        self, texts: Mapping[str, Iterable[tuple[str, float]]], names: Mapping[str, Iterable[str]]
    ) -> None:
        self._ids = list(texts)
        self._postings: dict[str, dict[int, float]] = defaultdict(dict)
        for number, weighted_texts in enumerate(texts.values()):
            for text, weight in weighted_texts:
                for word in split_words(text):
                    if len(word) > MAX_WORD_CHARS:
                        continue
                    posting = self._postings[word]
                    posting[number] = max(weight, posting.get(number, 0.0))
        self._numbers = {entry_id: number for number, entry_id in enumerate(self._ids)}
        self._names: dict[str, set[int]] = defaultdict(set)
        for entry_id, entry_names in names.items():
            for name in entry_names:
                self._names[_normalize_name(name)].add(self._numbers[entry_id])
        self._vocabulary = sorted(self._postings)
        self._stems: dict[str, list[str]] = defaultdict(list)
        self._deletions: dict[str, list[str]] = defaultdict(list)
        for word in self._vocabulary:
            self._stems[stem(word)].append(word)
            if len(word) >= MIN_TYPO_LENGTH - 1:
                for shorter in _list_deletions(word):
                    self._deletions[shorter].append(word)
        self._find_similar = lru_cache(MAX_CACHED_WORDS)(self._find_similar_uncached)

    def find_by_name(self, name: str) -> list[str]:
        """Return the ids of the entries with exactly this name, ignoring case, accents and spaces."""
        return [self._ids[number] for number in sorted(self._names.get(_normalize_name(name), ()))]

    def search(self, query: str, limit: int, accepts: Callable[[str], bool] | None = None) -> SearchResult:
        """Return the best matches first: entries with more of the words, then with the rarer words.

        `accepts` filters the entries by id.
        """
        telling_words, all_words = self._split(query)
        scores: dict[int, float] = {}
        for word in sorted(dict.fromkeys(telling_words or all_words), key=self._count_matches):
            is_common = self._count_matches(word) > MAX_COMMON_MATCHES
            if is_common and len(scores) > MAX_COMMON_MATCHES:
                continue
            word_scores = self._score(word, len(telling_words))
            if not scores:
                scores = word_scores
                continue
            for number in scores.keys() & word_scores.keys() if is_common else word_scores.keys():
                scores[number] = scores.get(number, 0.0) + word_scores[number]
        for number in self._names.get(_normalize_name(query), ()):
            scores[number] = scores.get(number, 0.0) + EXACT_NAME_BONUS
        if accepts is not None:
            scores = {number: score for number, score in scores.items() if accepts(self._ids[number])}
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:limit]
        return SearchResult([self._ids[number] for number in best], len(scores))

    def find_unmatched_words(self, query: str, entry_id: str) -> list[str]:
        """Return the words of a query that match an entry neither exactly nor by a similar word."""
        number, telling_words = self._numbers[entry_id], self._split(query)[0]
        return [
            word
            for word in dict.fromkeys(telling_words)
            if not any(number in self._postings[similar] for similar, _ in self._find_similar(word))
        ]

    def _split(self, query: str) -> tuple[list[str], list[str]]:
        """Return the words of a query without common words such as "the", and then all its words."""
        text = _CONTRACTION.sub("", query[:MAX_QUERY_CHARS])
        all_words = [word for word in split_words(text) if len(word) <= MAX_WORD_CHARS]
        not_common = frozenset(extract_keywords(text))
        return [word for word in all_words if word in not_common or self._is_short_name(word)], all_words

    def _count_matches(self, word: str) -> int:
        """Return the number of entries that have a word or a similar one."""
        return sum(len(self._postings[similar]) for similar, _ in self._find_similar(word))

    def _score(self, word: str, bonus: float) -> dict[int, float]:
        """Return the scores of entries for one word, by entry number. Each entry also gets the bonus."""
        best: dict[int, float] = {}
        for similar, quality in self._find_similar(word):
            posting = self._postings[similar]
            rarity = quality * log(1 + len(self._ids) / len(posting))
            if not best:
                best = {number: rarity * weight + bonus for number, weight in posting.items()}
                continue
            for number, weight in posting.items():
                if (score := rarity * weight + bonus) > best.get(number, 0.0):
                    best[number] = score
        return best

    def _find_similar_uncached(self, word: str) -> list[tuple[str, float]]:
        """Return known words that are similar to a word, each with the quality of the match."""
        if word in self._postings:
            alike = [other for other in self._stems[stem(word)] if other != word]
            return [(word, 1.0), *((other, STEM_QUALITY) for other in alike)]
        if alike := self._stems.get(stem(word), []):
            return [(other, STEM_QUALITY) for other in alike]
        if longer := self._find_by_prefix(word):
            return [(other, PREFIX_QUALITY) for other in longer]
        if mistyped := self._find_mistyped(word):
            return [(other, TYPO_QUALITY / mistakes) for other, mistakes in mistyped]
        min_length = MIN_SUBSTRING_LENGTH if word.isascii() else MIN_IDEOGRAM_LENGTH
        if len(word) < min_length:
            return []
        return [
            (other, SUBSTRING_QUALITY)
            for other in self._vocabulary
            if word in other or (len(other) >= min_length and other in word)
        ]

    def _is_short_name(self, word: str) -> bool:
        """Return whether a very short word is part of a name: TV, AC, 3."""
        return len(word) <= 2 and word in self._postings

    def _find_by_prefix(self, prefix: str) -> list[str]:
        if len(prefix) < MIN_TYPO_LENGTH - 1:
            return []
        found = []
        for position in range(bisect_left(self._vocabulary, prefix), len(self._vocabulary)):
            if not self._vocabulary[position].startswith(prefix):
                break
            found.append(self._vocabulary[position])
        return found

    def _find_mistyped(self, word: str) -> list[tuple[str, int]]:
        """Return the known words that differ by one mistake, or by two if the word is long."""
        if len(word) < MIN_TYPO_LENGTH:
            return []
        max_mistakes = 2 if len(word) >= MIN_TWO_TYPOS_LENGTH else 1
        candidates = {
            other for shorter in _list_deletions(word) for other in self._deletions.get(shorter, ())
        }
        if len(word) == MIN_TYPO_LENGTH:
            candidates = {other for other in candidates if other[0] == word[0]}  # "ball" is not "hall"
        counted = [(other, _count_mistakes(word, other, max_mistakes)) for other in sorted(candidates)]
        return [(other, mistakes) for other, mistakes in counted if mistakes <= max_mistakes]


def _normalize_name(text: str) -> str:
    """Return a name in a form that ignores case, accents and spaces. The end of a long name is cut off."""
    text = text[: MAX_QUERY_CHARS + 1]
    return "".join(split_words(text)) or normalize(text)


def _list_deletions(word: str) -> set[str]:
    """Return a word and its forms without one letter, or without two if the word is long.

    Two words that differ by that many mistakes share at least one of these forms.
    """
    shorter = {word[:n] + word[n + 1 :] for n in range(len(word))}
    if len(word) >= MIN_TWO_TYPOS_LENGTH:
        shorter |= {less[:n] + less[n + 1 :] for less in shorter for n in range(len(less))}
    return {word, *shorter}


def _count_mistakes(word: str, other: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance of two words. Any result above `limit` may be inexact."""
    if abs(len(word) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        previous, before, row = before, row, [i]
        for j, other_letter in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == other_letter:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
    return row[-1]
