"""The words of the page: every key that a file uses exists, none is left over, and all languages have the same ones."""

import json
import re
from functools import cache

import pytest

from sash.web import PAGE_FOLDER

LANGUAGES = ("de", "fr", "es", "it", "nl")
# `t("chat.send")`, a key in a table of keys, or a key whose last part is computed: `t(`chat.${status}`)`.
KEY = re.compile(r"""["'`]([a-z_]+(?:\.[a-z_0-9]+)*)["'`]""")
COMPUTED = re.compile(r"""`([a-z_.]+[._])\$\{[^`]*\}([a-z_.]*)`|\btValue\("([a-z_.]+)",""")
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# French, Spanish and Italian have a form of their own for millions.
FORMS = {"one", "many", "other"}


@cache
def read(language: str) -> dict[str, str | dict[str, str]]:
    return dict(json.loads((PAGE_FOLDER / "languages" / f"{language}.json").read_text("utf-8")))


def list_texts(entry: str | dict[str, str]) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())


def read_sources() -> str:
    files = [path for path in PAGE_FOLDER.rglob("*.js") if path.parent.name != "vendor"]
    return "\n".join(path.read_text("utf-8") for path in files)


def test_every_key_that_is_used_exists():
    used = set(re.findall(r"""\bt\("([^"]+)\"""", read_sources()))
    assert len(used) > 200
    assert not used.difference(read("en"))


def test_no_key_is_left_over():
    sources = read_sources()
    named = set(KEY.findall(sources))
    computed = [
        (start or f"{group}.", end) for start, end, group in COMPUTED.findall(sources) if start or group
    ]
    left_over = [
        key
        for key in read("en")
        if key not in named
        and not any(key.startswith(start) and key.endswith(end) for start, end in computed)
    ]
    assert left_over == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_all_keys_in_the_same_order(language):
    assert list(read(language)) == list(read("en")) == sorted(read("en"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_the_same_placeholders(language):
    for key, entry in read("en").items():
        expected = set().union(*(PLACEHOLDER.findall(text) for text in list_texts(entry)))
        for text in list_texts(read(language)[key]):
            found = set(PLACEHOLDER.findall(text))
            assert found <= expected and expected - found <= {"count"}, key


@pytest.mark.parametrize("language", ("en", *LANGUAGES))
def test_a_counted_text_has_the_forms_of_its_language(language):
    for key, entry in read("en").items():
        translated = read(language)[key]
        assert isinstance(translated, dict) == isinstance(entry, dict), key
        if isinstance(translated, dict):
            assert {"one", "other"} <= translated.keys() <= FORMS, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_left_in_english(language):
    english = read("en")
    same = [
        key
        for key, entry in read(language).items()
        if entry == english[key] and any(len(text.split()) > 3 for text in list_texts(entry))
    ]
    assert not same
