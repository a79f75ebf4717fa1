"""Words that are written like an unknown word."""

import pytest

from sash.memory.asked_words import AskedWord
from sash.memory.similar_words import MAX_CHARS, MAX_SIMILAR, add_similar, choose_similar, list_parts


def test_a_word_has_all_its_parts_of_three_letters():
    assert list_parts("lamp") == [" la", "lam", "amp", "mp "]
    for odd in ("", "a", "tea", "e500", "1234", "x" * (MAX_CHARS + 1), "厨房的灯"):
        assert list_parts(odd) == [], odd


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("wartung", "warmepumpenwartung"),
        ("kellerfenster", "fenster"),
        ("thermostaat", "thermostat"),
        ("plumer", "plumber"),
        ("schornstienfeger", "schornsteinfeger"),
        ("brandweermelder", "melder"),
    ],
)
def test_compounds_and_typing_mistakes_are_similar(asked, known):
    assert choose_similar(asked, [known, "window", "garage"]) == [known]


@pytest.mark.parametrize(
    ("asked", "known"),
    [("lamp", "damp"), ("kitchen", "chicken"), ("corner", "unicorn"), ("garage", "fridge")],
)
def test_other_words_are_not_similar(asked, known):
    assert choose_similar(asked, [known]) == []


def test_the_most_similar_words_come_first_and_there_are_few():
    known = [f"plumb{letter}r" for letter in "abcdefghijklmnopqrstuvwxyz"]
    found = choose_similar("plumber", known)
    assert found[0] == "plumber"
    assert len(found) == MAX_SIMILAR


def test_only_words_that_no_message_has_get_similar_ones():
    lists = [{1}, set(), set()]
    words = [AskedWord(text, (text,)) for text in ("boiler", "boilr", "heron")]
    assert add_similar(lists, words, {"boiler": [9], "boilr": [1, 2]}.get) == {1}
    assert lists == [{1}, {1, 2}, set()]
