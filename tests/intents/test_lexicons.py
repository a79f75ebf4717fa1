"""The lexicons of all languages have the same meanings, and each phrase has one."""

import tomllib
from collections import defaultdict
from importlib.resources import files
from typing import Any

import pytest

from sash.intents.words.lexicon import LANGUAGES, Lexicon, load_lexicon
from sash.intents.words.phrases import expand

# Sections that only some languages need.
OF_ONE_LANGUAGE = frozenset(
    {"rewrite", "plural", "number", "known", "particle", "attached", "relative", "after_number", "participle"}
)
# A preposition has several roles in times, "no thanks" answers several questions, and "what did I say" asks two things.
# "I like" is a fact and part of a question, and "clear" removes items, too.
# "Never" stands between a subject and its verb, and takes a request back.
MAY_MEAN_MORE = frozenset({"time", "talk", "self", "pronoun", "memory", "item", "mood"})

# "In carica" is said of a robot that docked and of a phone that charges.
STATE_OF_ANYTHING = frozenset({"charging", "detected", "plugged_in"})


def _read(language: str) -> dict[str, dict[str, Any]]:
    path = files("sash") / "data" / "words" / f"{language}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


WRITTEN = [language for language in LANGUAGES if _read(language)]


def _list_keys(language: str) -> set[str]:
    return {
        f"{section}.{key}"
        for section, table in _read(language).items()
        if section not in OF_ONE_LANGUAGE
        for key in table
    }


@pytest.mark.parametrize("language", WRITTEN)
def test_every_language_has_the_sections_and_keys_of_english(language: str):
    assert _list_keys(language) == _list_keys("en")


@pytest.mark.parametrize("language", WRITTEN)
def test_no_phrase_has_two_meanings_in_one_section(language: str):
    doubtful = []
    for section, table in _read(language).items():
        meanings = defaultdict(set)
        for key, phrases in table.items() if section not in OF_ONE_LANGUAGE | MAY_MEAN_MORE else ():
            for phrase in phrases:
                for words in expand(phrase.casefold()):
                    meanings[words].add(key)
        doubtful += [
            (section, words, keys) for words, keys in meanings.items() if len(keys - STATE_OF_ANYTHING) > 1
        ]
    assert doubtful == []


@pytest.mark.parametrize("language", WRITTEN)
def test_every_act_and_thing_is_found_by_its_own_phrases(language: str):
    lexicon = load_lexicon(language)
    lost = [
        (section, key, phrase)
        for section in ("do", "ask", "kind", "room", "noun", "property", "refer")
        for key, phrases in _read(language)[section].items()
        for phrase in phrases
        for words in expand(phrase.casefold())
        if f"{section}.{key}" not in {match.tag for match in lexicon.finder.find_all(_say(words, lexicon))}
    ]
    assert lost == []


@pytest.mark.parametrize("language", WRITTEN)
def test_a_rewrite_does_not_hide_a_word_of_a_phrase(language: str):
    lexicon = load_lexicon(language)
    phrases = [
        phrase
        for section, table in _read(language).items()
        if section not in OF_ONE_LANGUAGE
        for listed in table.values()
        for phrase in listed
    ]
    hidden = {
        word for phrase in phrases for words in expand(phrase.casefold()) for word in words
    } & lexicon.rewrites.keys()
    assert {word for word in hidden if word not in lexicon.rewrites[word]} == set()


def _say(words: tuple[str, ...], lexicon: Lexicon) -> list[str]:
    """Return the words of a sentence with a phrase: a gap becomes a word."""
    said = ["thing" if word == "…" else word.rstrip("*") for word in words]
    return [part for word in said for part in lexicon.split_pronouns(word)]
