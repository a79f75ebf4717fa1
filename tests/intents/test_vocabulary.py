"""The user's own vocabulary."""

import re
from pathlib import Path

import pytest

from sash.errors import InvalidConfig
from sash.intents.vocabulary import Rule, Vocabulary
from tests.intents.spoken_home import House

EXAMPLE = Path(__file__).parents[2] / "docs" / "vocabulary.toml"


def load(tmp_path: Path, text: str) -> Vocabulary:
    path = tmp_path / "vocabulary.toml"
    path.write_text(text, "utf-8")
    return Vocabulary.load(path)


def test_nothing_is_rewritten_by_an_empty_vocabulary(tmp_path: Path) -> None:
    assert load(tmp_path, "").rewrite("Turn on the telly!", "en") == "Turn on the telly!"
    assert Vocabulary().rewrite("x", "en") == "x"


def test_synonyms_are_whole_words_in_any_case() -> None:
    words = Vocabulary({"telly": "TV", "große Lampe": "Stehlampe"})
    assert words.rewrite("turn on the Telly, please", "en") == "turn on the TV, please"
    assert words.rewrite("the tellytubbies on the telly", "en") == "the tellytubbies on the TV"
    for said in ("große Lampe", "GROßE  lampe", "GROSSE Lampe"):
        assert words.rewrite(f"mach die {said} an", "de") == "mach die Stehlampe an"


def test_the_longest_synonym_is_replaced_and_its_meaning_is_not() -> None:
    words = Vocabulary(
        {"big": "Large", "big spots": "Spots in Kitchen", "spots": "Lamps", "lamps": "Nothing"}
    )
    assert words.rewrite("big spots and spots", "en") == "Spots in Kitchen and Lamps"


def test_signs_of_regular_expressions_are_plain_words_in_synonyms() -> None:
    assert Vocabulary({"a.b": r"\1"}).rewrite("axb a.b", "en") == r"axb \1"


def test_a_rule_fits_the_whole_sentence_and_is_not_rewritten_again() -> None:
    rule = Rule(re.compile("movie in the (?P<room>.+)", re.IGNORECASE), r"turn on the telly in the \g<room>")
    words = Vocabulary({"telly": "TV", "lounge": "Living Room"}, (rule,))
    assert words.rewrite("Movie in the lounge!", "en") == "turn on the telly in the lounge"
    assert words.rewrite("a movie in the lounge", "en") == "a movie in the Living Room"


def test_the_first_rule_that_fits_counts() -> None:
    first, second = (Rule(re.compile("go"), sentence) for sentence in ("one", "two"))
    assert Vocabulary({}, (first, second)).rewrite("go", "en") == "one"


@pytest.mark.parametrize(("language", "fits"), [("de", True), ("de-CH", True), ("en", False)])
def test_a_rule_may_be_for_a_language(language: str, fits: bool) -> None:
    words = Vocabulary({}, (Rule(re.compile("los"), "mach das Licht an", "de"),))
    assert (words.rewrite("los", language) == "mach das Licht an") is fits


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("synonyms = 3", "'synonyms' is not a table"),
        ("[synonyms]\ntelly = 3", "synonym 'telly' is not a text"),
        ('[synonyms]\ntelly = ""', "synonym 'telly' is not a text"),
        ('[synonyms]\n"" = "x"', "synonym '' is not a text"),
        ("rules = 3", "'rules' is not a list of tables"),
        ("rules = [3]", "rule 1 is not a table"),
        ('[[rules]]\npattern = "a"', "rule 1 has no sentence"),
        ('[[rules]]\nsentence = "a"', "rule 1 has no pattern"),
        ('[[rules]]\npattern = "("\nsentence = "a"', "rule 1: the pattern is not a regular expression"),
        ("[[rules]]\npattern = \"a\"\nsentence = '\\1'", "rule 1: the sentence cannot be filled in"),
        ("[[rules]]\npattern = \"a\"\nsentence = '\\g<b>'", "rule 1: the sentence cannot be filled in"),
        ('[[rules]]\npattern = "a"\nsentence = "b"\nlanguage = 3', "rule 1: language is not a text"),
        ('[[rules]]\npattern = "a"\nsentence = "b"\n[[rules]]\nsense = "a"', "rule 2 has an unknown 'sense'"),
        ("[words]", "'words' is not known"),
        ("not toml", "it is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(InvalidConfig) as error:
        load(tmp_path, text)
    assert wrong in error.value.message
    assert error.value.message.startswith(str(tmp_path / "vocabulary.toml"))
    assert ";" in error.value.message, "it does not say what to do"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="cannot be read"):
        Vocabulary.load(tmp_path / "none.toml")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(InvalidConfig, match="cannot be read"):
        Vocabulary.load(tmp_path / "latin")


async def test_the_example_is_understood() -> None:
    house = House(vocabulary=Vocabulary.load(EXAMPLE))
    assert await house.calls("I can't see anything in the kitchen!") == [
        ("light.turn_on", ["light.kitchen", "light.spots"], {})
    ]
    assert await house.calls("bedtime") == await house.calls("turn off all the lights")
    assert await house.calls("turn off the telly") == [("media_player.turn_off", ["media_player.tv"], {})]
    house.language = "de"
    assert await house.calls("Es ist zu dunkel in der Küche.") == [
        ("light.turn_on", ["light.kitchen", "light.spots"], {})
    ]


async def test_a_question_is_no_order_whatever_the_rule_makes_of_it() -> None:
    house = House(vocabulary=Vocabulary.load(EXAMPLE))
    assert await house.hear("bedtime?") is None
    house.language = "de"
    assert await house.hear("Ist es zu dunkel in der Küche") is None
