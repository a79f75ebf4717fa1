"""The part of a long message that a question asks for."""

import pytest

from sash.memory.asked_words import AskedWord
from sash.memory.excerpt import cut_excerpt

WORDS = [AskedWord("heron", ("heron",)), AskedWord("pond", ("pond",))]


def count(text):
    return len(text.split())


def cut(text, max_tokens):
    return cut_excerpt(text, WORDS, count, max_tokens)


def test_the_sentence_with_the_most_words_comes_with_as_many_around_it_as_fit():
    text = "One is here. A heron came. The heron left the pond. It was late.\nThen it rained. Last one."
    assert cut(text, 7) == "… The heron left the pond. …"
    assert cut(text, 11) == "… The heron left the pond. It was late. …"
    assert cut(text, 99) == text


def test_a_sentence_that_is_too_long_ends_between_two_words():
    text = f"the heron {'a b c ' * 50}"
    found = cut(text, 12)
    assert found.startswith("the heron a b c") and found.endswith(" …")
    assert count(found) <= 12 and found.removesuffix(" …") in text


@pytest.mark.parametrize("text", ["", "   ", "heron" * 2000])
def test_a_text_without_words_that_fit_has_no_excerpt(text):
    assert cut(text, 1) == ""


def test_an_excerpt_always_fits():
    text = "The heron stands. " * 30
    assert all(count(cut(text, n)) <= n for n in range(3, 60))


def test_each_line_is_a_sentence_and_all_words_of_the_question_are_looked_for():
    text = "\n".join(
        [
            *(f"- item {n}" for n in range(40)),
            "- the heron",
            *(f"- item {n}" for n in range(40)),
            "- the pond",
        ]
    )
    assert "- the heron" in cut(text, 20)
    assert "- the pond" in cut(text, 20)


def test_the_end_of_a_long_sentence_and_text_without_blanks_are_found():
    assert "heron" in cut(f"{'a b c ' * 50} the heron", 12)
    japanese = [AskedWord("レス", ("レス*",))]
    assert "レストラン" in cut_excerpt("あいう" * 200 + "レストラン" + "えお" * 100, japanese, len, 60)
