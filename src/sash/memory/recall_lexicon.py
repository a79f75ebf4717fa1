"""The words of a language without a topic, and those for speakers, questions and times."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sash.memory.words import split_words

# One stop word of another language may be a word with a topic: the French "car".
_MIN_STOP_WORDS = 2
_WORD_SETS = (
    *("stop", "common", "me", "you", "openers", "question_words", "clause_openers"),
    *("past", "past_endings", "other_endings", "present", "current", "auxiliaries", "fillers"),
    *("since", "other_months", "before_month", "date_marks", "ordinal_endings"),
)
LANGUAGES = ("en", "de", "fr", "es", "it", "nl")


@dataclass(frozen=True, slots=True)
class RecallLexicon:
    """The words of one language, in normal form (`words.normalize`). Phrases are tuples of words.

    `forms` has the other forms of words whose beginnings differ: "bought" for "buy". `participles` has pairs:
    the beginnings and the ends of regular participles.
    """

    stop: frozenset[str]
    common: frozenset[str]
    me: frozenset[str]
    you: frozenset[str]
    openers: frozenset[str]
    question_words: frozenset[str]
    clause_openers: frozenset[str]
    past: frozenset[str]
    past_endings: frozenset[str]
    other_endings: frozenset[str]
    present: frozenset[str]
    current: frozenset[str]
    auxiliaries: frozenset[str]
    fillers: frozenset[str]
    since: frozenset[str]
    other_months: frozenset[str]
    before_month: frozenset[str]
    date_marks: frozenset[str]
    ordinal_endings: frozenset[str]
    participles: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    back: tuple[tuple[str, ...], ...]
    forms: Mapping[str, tuple[str, ...]]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    numbers: Mapping[str, int]
    dates: tuple[tuple[tuple[str, ...], str], ...]


@cache
def load_recall_lexicon(language: str) -> RecallLexicon:
    """Return the words of one of `LANGUAGES`."""
    read = tomllib.loads(files("sash").joinpath("data", "recall", f"{language}.toml").read_text("utf-8"))
    return RecallLexicon(
        **{key: frozenset(split_words(read[key])) for key in _WORD_SETS},
        participles=tuple(
            (tuple(split_words(starts)) or ("",), tuple(split_words(ends)))
            for starts, ends in read["participles"]
        ),
        back=tuple(tuple(split_words(phrase)) for phrase in read["back"]),
        forms=_read_forms(read["irregular"]),
        months=_number(read["months"], 1),
        weekdays=_number(read["weekdays"], 0),
        numbers=_number(read["numbers"], 0),
        dates=tuple(_read_dates(read["dates"])),
    )


def load_all_lexicons() -> None:
    """Read the words of all languages. Later calls cost nothing."""
    for language in LANGUAGES:
        load_recall_lexicon(language)


def choose_language(words: Sequence[str], default: str | None) -> str:
    """Return the language of a text by its stop words. Another one than the default has at least two."""
    tag = (default or "").lower().replace("_", "-").partition("-")[0]
    first = tag if tag in LANGUAGES else LANGUAGES[0]
    counts = {each: sum(word in load_recall_lexicon(each).stop for word in words) for each in LANGUAGES}
    best = max(counts, key=lambda each: counts[each] + 0.5 * (each == first))
    return best if counts[best] >= _MIN_STOP_WORDS else first


def _read_forms(lines: list[str]) -> dict[str, tuple[str, ...]]:
    forms: dict[str, tuple[str, ...]] = {}
    for line in lines:
        words = split_words(line)
        for word in words:
            forms[word] = tuple(dict.fromkeys((*forms.get(word, ()), *words)))
    return forms


def _number(lines: list[str], first: int) -> dict[str, int]:
    return {word: number for number, line in enumerate(lines, first) for word in split_words(line)}


def _read_dates(table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Return the phrases with their kinds, long ones first. "#" stands for a number or a weekday."""
    found = [
        (
            tuple(
                "#" if part == "#" else word for part in phrase.split() for word in (split_words(part) or "#")
            ),
            kind,
        )
        for kind, phrases in table.items()
        for phrase in phrases
        if phrase
    ]
    return sorted(found, key=lambda item: -len(item[0]))
