"""The sentences of answers have the same keys and the same blanks in all languages."""

import string
import tomllib
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest

from sash.intents.answers.names import Name
from sash.intents.answers.writer import choose_writer
from sash.intents.words.lexicon import LANGUAGES
from sash.ports.home import Area, Entity

# Blanks that only some languages need.
OF_ONE_LANGUAGE = frozenset({"be", "was"})
# Sections that each language fills with words of its own.
OWN_WORDS = frozenset({"forms"})


def _read(language: str) -> dict[str, Any]:
    path = files("sash") / "data" / "answers" / f"{language}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


WRITTEN = [language for language in LANGUAGES if language != "en" and _read(language)]
TESTED = pytest.mark.parametrize("language", WRITTEN)


def _list_sentences(language: str) -> dict[str, str]:
    return {
        f"{section}.{key}": text
        for section, table in _read(language).items()
        for key, text in table.items()
        if isinstance(text, str) and section not in OWN_WORDS
    }


def _list_blanks(text: str) -> set[str]:
    fields = {name.partition(".")[0] for _, name, _, _ in string.Formatter().parse(text) if name}
    return fields - OF_ONE_LANGUAGE


@TESTED
def test_every_language_has_the_sentences_of_english(language: str):
    assert _list_sentences(language).keys() == _list_sentences("en").keys()


@TESTED
def test_every_sentence_has_the_blanks_of_the_english_one(language: str):
    english = _list_sentences("en")
    different = {
        key: text
        for key, text in _list_sentences(language).items()
        if key in english and _list_blanks(text) != _list_blanks(english[key])
    }
    assert different == {}


@TESTED
def test_every_language_has_the_forms_of_english(language: str):
    forms = _read(language)["forms"]
    assert _read("en")["forms"].keys() <= forms.keys() | {"cases", "about"}
    assert (len(forms["weekdays"]), len(forms["months"])) == (7, 12)


@TESTED
def test_every_sentence_can_be_filled_in(language: str):
    writer = choose_writer(language)
    for key, text in _list_sentences(language).items():
        blanks = {blank: Name("Robby") for blank in _list_blanks(text)}
        assert writer.say(key, **blanks)


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", "the kitchen light"), ("de", "das Küchenlicht"), ("nl", "het keukenlicht")],
)
def test_a_thing_has_the_name_of_the_language(language: str, expected: str):
    light = Entity("light.x", "Kitchen light", aliases=("Küchenlicht", "keukenlicht"))
    assert choose_writer(language).name(light) == expected


@pytest.mark.parametrize("language", ["en", "de", "nl"])
def test_a_proper_name_stays_as_it_is(language: str):
    vacuum = Entity("vacuum.x", "Robby", aliases=("vacuum cleaner", "Staubsauger", "stofzuiger"))
    assert choose_writer(language).name(vacuum) == "Robby"


@pytest.mark.parametrize(
    ("language", "name", "said"),
    [
        ("de", "Kitchen light", "das Licht in der Küche"),
        ("de", "Bedroom temperature", "die Temperatur im Schlafzimmer"),
        ("nl", "Kitchen ceiling light", "de plafondlamp in de keuken"),
        ("nl", "Terrace light", "de lamp op het terras"),
        ("nl", "Front door lock", "de voordeur"),
        ("nl", "Wall switch", "de schakelaar van de muur"),
        ("nl", "Frobnicator light", "Frobnicator light"),
        ("de", "Frobnicator light", "Frobnicator light"),
    ],
)
def test_an_english_name_without_an_alias_is_translated_word_by_word(language: str, name: str, said: str):
    assert choose_writer(language).name(Entity("light.x", name)) == said


def test_an_alias_of_another_language_is_no_name():
    writer = choose_writer("nl")
    assert writer.name(Entity("light.x", "Mirror light", aliases=("Badlicht",))) == "de spiegellamp"
    assert writer.name(Area("bath", "Bathroom", aliases=("Bad",))).inside == "in de badkamer"
    assert choose_writer("fr").name(Area("hall", "Hallway", aliases=("hall",))) == "le couloir"


def test_german_names_have_their_cases():
    writer = choose_writer("de")
    tv, lists = writer.name_text("Fernseher"), writer.name_text("Einkaufsliste")
    assert (tv, tv.accusative, tv.dative) == ("der Fernseher", "den Fernseher", "dem Fernseher")
    assert lists.dative == "der Einkaufsliste"
    assert writer.name(Area("kitchen", "Küche")).inside == "in der Küche"
    assert writer.name(Area("bath", "Bad")).inside == "im Bad"
    assert writer.name(Area("x", "Kitchen")).inside == "in der Küche"


def test_a_list_of_names_has_the_cases_of_all():
    writer = choose_writer("de")
    names = writer.join([writer.name_text("Fernseher"), writer.name_text("Stehlampe")])
    assert names.accusative == "den Fernseher und die Stehlampe"
    assert names.is_plural


def test_a_name_that_is_no_common_noun_has_no_article():
    names = map(choose_writer("de").name_text, ["Annas Lampe", "Hue 3", "Lampe Küche"])
    assert list(names) == ["Annas Lampe", "Hue 3", "Lampe Küche"]


@pytest.mark.parametrize(
    ("language", "one", "several"),
    [
        ("de", "Robby saugt.", "Robby und Rudi sind am Saugen."),
        ("nl", "Robby zuigt.", "Robby en Rudi zijn aan het zuigen."),
    ],
)
def test_a_state_that_is_a_verb_needs_no_other_verb(language: str, one: str, several: str):
    writer = choose_writer(language)
    state = writer.state_name("cleaning")
    assert writer.say("state.is_now", name=Name("Robby"), state=state) == one
    assert writer.say("state.is_now", name=writer.join(["Robby", "Rudi"]), state=state) == several


def test_french_names_begin_with_their_noun_and_lose_vowels():
    writer = choose_writer("fr")
    lamp, bulb = writer.name(Entity("light.x", "Lampe de chevet")), writer.name(Entity("light.y", "Ampoule"))
    assert (lamp, lamp.of) == ("la lampe de chevet", "de la lampe de chevet")
    assert (bulb, bulb.of) == ("l'ampoule", "de l'ampoule")
    assert writer.name(Entity("person.x", "Anna")).of == "d'Anna"
    assert writer.name(Area("x", "Salon")).of == "du salon"
    assert writer.name(Area("x", "Entrée")).inside == "dans l'entrée"


def test_an_english_name_of_common_nouns_is_said_in_french():
    writer = choose_writer("fr")
    assert writer.name(Entity("lock.x", "Front door lock")) == "la porte d'entrée"
    assert writer.name(Entity("vacuum.x", "Robby")) == "Robby"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Lampe"], "La lampe est éteinte."),
        (["Lampe", "Radio"], "La lampe et la radio sont éteintes."),
        (["Lampe", "Ventilateur"], "La lampe et le ventilateur sont éteints."),
    ],
)
def test_a_french_state_agrees_with_its_names(names: list[str], expected: str):
    writer = choose_writer("fr")
    joined = writer.join(writer.name_text(name) for name in names)
    assert writer.say("state.is_now", name=joined, state=writer.state_name("off")) == expected


def test_a_count_of_french_things_has_their_gender():
    name = Name("5 lumières", is_plural=True)
    assert choose_writer("fr").say("command.already_all", names=name, state="éteint").endswith("éteintes.")


def test_the_first_of_a_month_and_a_full_hour_are_said_as_in_french():
    writer, first = choose_writer("fr"), datetime(2026, 3, 1, 14, tzinfo=UTC)
    assert writer.date(first) == "dimanche 1er mars 2026"
    assert (writer.clock(first), writer.clock(first.replace(minute=5))) == ("14 h", "14 h 05")
