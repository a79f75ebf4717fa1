"""Reads sentences over the demo house, and compares the clauses with what a table says about them."""

from collections.abc import Mapping
from dataclasses import dataclass

from sash.demo.demo_home import demo_home
from sash.home.index import HomeIndex
from sash.intents.home_words import HomeWords
from sash.intents.sentence.clause import Clause
from sash.intents.sentence.reader import SentenceReader
from sash.intents.words.lexicon import load_lexicon


@dataclass(frozen=True, slots=True)
class Expected:
    """What the clauses of a sentence must contain. `has` lists entity ids and keys of their words."""

    do: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    time: Mapping[str, object] | None = None
    amount: tuple[float | str | None, ...] = ()
    refer: tuple[str, ...] = ()
    is_question: bool = False
    unknown: tuple[str, ...] = ()


_readers: dict[str, SentenceReader] = {}


async def read_clauses(language: str, text: str) -> list[Clause]:
    """Return the clauses of a sentence."""
    reader = await _find_reader(language)
    return reader.read_clauses(reader.read(text))


async def read_words(language: str, text: str) -> tuple[str, ...]:
    """Return the words of a sentence as they are compared."""
    return (await _find_reader(language)).read(text).words


async def check_sentence(language: str, text: str, expected: list[Expected]) -> None:
    """Assert that a sentence has these clauses."""
    clauses = await read_clauses(language, text)
    assert len(clauses) == len(expected)
    for clause, wanted in zip(clauses, expected, strict=True):
        _check_clause(clause, wanted)


async def _find_reader(language: str) -> SentenceReader:
    if language not in _readers:
        _readers[language] = make_reader(await read_demo_index(), language)
    return _readers[language]


async def read_demo_index() -> HomeIndex:
    """Return the index of the demo house."""
    home = demo_home()
    await home.open()
    try:
        return HomeIndex(await home.get_layout(), await home.get_states())
    finally:
        await home.close()


def make_reader(index: HomeIndex, language: str) -> SentenceReader:
    words = HomeWords(index, [load_lexicon(name) for name in dict.fromkeys((language, "en"))])
    return SentenceReader(load_lexicon(language), words)


def _check_clause(clause: Clause, expected: Expected) -> None:
    # No other act, amount, time or unknown word may be found. Other questions and keys may.
    assert clause.do == expected.do
    assert set(expected.ask) <= set(clause.ask)
    named = {key for word in clause.words for key in (*word.keys, *word.entity_ids)}
    assert set(expected.has) <= named
    time = {name: getattr(clause.time, name) for name in expected.time or {}}
    assert time == dict(expected.time or {})
    assert clause.time.is_empty == (expected.time is None)
    amount = clause.amount
    found = {amount.value, amount.unit, amount.colour, amount.size} - {None}
    assert set(expected.amount) == found
    assert set(expected.refer) <= clause.refer
    assert clause.is_question == expected.is_question
    unknown = {w.text for w in clause.words if not (w.is_known or w.entity_ids or _has_meaning(w.keys))}
    assert unknown == set(expected.unknown)


def _has_meaning(keys: frozenset[str]) -> bool:
    return any("." in key or ":" in key for key in keys)
