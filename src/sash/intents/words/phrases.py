"""Finds the phrases of a lexicon in a sentence.

A phrase is written as `turn|switch (the) … off`: words separated by blanks, alternatives with a bar, optional
words in brackets, and `…` for any words between. A word that ends in `*` stands for all words with this
beginning.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

GAP = "…"
ANY_END = "*"
# Brackets with all their words, or a word.
_PART = re.compile(r"\([^)]*\)|\S+")


class Match(NamedTuple):
    """A phrase in a sentence: its tag, such as "do.on", with its two parts, and the places of its words."""

    tag: str
    places: tuple[int, ...]
    kind: str
    value: str

    @property
    def start(self) -> int:
        return self.places[0]

    @property
    def end(self) -> int:
        """The place after the last word."""
        return self.places[-1] + 1


def make_match(tag: str, places: Iterable[int]) -> Match:
    """Return a phrase of a sentence by its tag and the places of its words."""
    kind, _, value = tag.partition(".")
    return Match(tag, tuple(places), kind, value)


@dataclass(frozen=True, slots=True)
class _Pattern:
    tag: str
    words: tuple[str, ...]
    gaps: frozenset[int]


def expand(phrase: str) -> Iterator[tuple[str, ...]]:
    """Yield all forms of a phrase, each as its words."""
    choices: list[list[str]] = []
    for part in _PART.findall(phrase):
        is_optional = part.startswith("(") and part.endswith(")")
        options = (part[1:-1] if is_optional else part).split("|")
        choices.append(["", *options] if is_optional else options)
    for chosen in product(*choices):
        yield tuple(word for option in chosen for word in option.split())


class PhraseFinder:
    """Finds the phrases of some tags. It does not change, so that threads can share it."""

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        # Most patterns are told from others by their first two words.
        self._by_words: defaultdict[tuple[str, str], list[_Pattern]] = defaultdict(list)
        self._by_word: defaultdict[str, list[_Pattern]] = defaultdict(list)
        self._by_beginning: defaultdict[str, list[_Pattern]] = defaultdict(list)
        self.words: set[str] = set()
        self.beginnings: set[str] = set()
        for tag, phrase in phrases:
            for words in expand(phrase):
                self._add(tag, words)

    def _add(self, tag: str, words: tuple[str, ...]) -> None:
        kept = tuple(word for word in words if word != GAP)
        places = [place for place, word in enumerate(words) if word != GAP]
        gaps = frozenset(n for n, place in enumerate(places) if n and words[place - 1] == GAP)
        pattern = _Pattern(tag, kept, gaps)
        for word in kept:
            if word.endswith(ANY_END):
                self.beginnings.add(word[:-1])
            else:
                self.words.add(word)
        if kept[0].endswith(ANY_END):
            self._by_beginning[kept[0][:-1]].append(pattern)
        elif len(kept) > 1 and 1 not in gaps and not kept[1].endswith(ANY_END):
            self._by_words[kept[0], kept[1]].append(pattern)
        else:
            self._by_word[kept[0]].append(pattern)

    def find_all(self, words: Sequence[str]) -> list[Match]:
        """Return all phrases in a sentence. They may overlap."""
        following = (*words[1:], "")
        return [
            make_match(pattern.tag, places)
            for start, word in enumerate(words)
            for pattern in self._list_candidates(word, following[start])
            if (places := _match(pattern, words, start))
        ]

    def _list_candidates(self, word: str, following: str) -> Iterator[_Pattern]:
        """Yield the patterns that may begin with a word before another one."""
        yield from self._by_word.get(word, ())
        yield from self._by_words.get((word, following), ())
        for n in range(1, len(word) + 1) if self._by_beginning else ():
            yield from self._by_beginning.get(word[:n], ())


def choose_matches(matches: Iterable[Match], taken: Iterable[int] = ()) -> list[Match]:
    """Return matches that do not overlap, in the order of the sentence: those with more words win."""
    used = set(taken)
    chosen = []
    for match in sorted(matches, key=_rank):
        if used.isdisjoint(match.places):
            used.update(match.places)
            chosen.append(match)
    return sorted(chosen, key=lambda match: match.places)


def _rank(match: Match) -> tuple[int, int, int]:
    between = match.end - match.start - len(match.places)
    return -len(match.places), between, match.start


def _match(pattern: _Pattern, words: Sequence[str], start: int) -> tuple[int, ...]:
    """Return the places of a pattern whose first word is at `start`; empty if the rest does not match."""
    places = [start]
    for n, wanted in enumerate(pattern.words[1:], 1):
        place = places[-1] + 1
        if n in pattern.gaps:
            while place < len(words) and not _is_word(words[place], wanted):
                place += 1
        if place >= len(words) or not _is_word(words[place], wanted):
            return ()
        places.append(place)
    return tuple(places)


def _is_word(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith(ANY_END) else word == wanted
