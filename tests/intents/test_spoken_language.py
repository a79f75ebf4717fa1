"""A user whose language is not given is answered in the language of the sentence."""

import pytest

from sash.intents.spoken_language import rank_languages, recognize_language
from tests.intents.speaker import in_demo_house

QUESTIONS = [
    ("de", "lass die rollos runter", "Soll ich"),
    ("fr", "ferme les volets", "Dois-je"),
    ("es", "baja las persianas", "¿Quieres"),
    ("it", "abbassa le tapparelle", "Devo"),
    ("nl", "doe de rolluiken dicht", "Zal ik"),
    ("de", "gute nacht", "Soll ich"),
    ("en", "close the blinds", "Close"),
]


@pytest.mark.parametrize(("language", "sentence", "beginning"), QUESTIONS)
async def test_an_approval_is_asked_for_in_the_language_of_the_sentence(language, sentence, beginning):
    async with in_demo_house() as speaker:
        await speaker.say(sentence, language=None)
        question = speaker.result.waiting_calls[0]
        assert question.language == language
        assert speaker.said[-1].startswith(beginning)


@pytest.mark.parametrize(
    ("first", "then", "word"),
    [
        ("mets la radio dans la cuisine", "plus fort", "volume"),
        ("doe de bedlamp aan", "nee de andere", "plafondlamp"),
        ("quali luci sono accese", "accendile", "Ho acceso"),
        ("fai partire l'aspirapolvere", "rimandalo alla base", "Ho rimandato"),
        ("imposta un timer di cinque minuti", "quanto manca", "Ancora"),
        ("zet een timer van vijf minuten", "hoe lang nog", "Nog"),
        ("stell einen timer auf fünf minuten", "wie lange noch", "Noch"),
    ],
)
async def test_a_short_sentence_is_in_the_language_of_the_last_turns(first, then, word):
    async with in_demo_house() as speaker:
        assert word in await speaker.say(first, then, language=None)


async def test_a_short_french_sentence_does_not_switch_the_radio_off_as_a_german_one():
    async with in_demo_house() as speaker:
        await speaker.say("mets la radio dans la cuisine", "plus fort", language=None)
        assert speaker.state("media_player.kitchen_radio") == "playing"


async def test_a_promise_is_kept_in_the_language_in_which_it_was_asked_for():
    async with in_demo_house() as speaker:
        await speaker.say("sag mir bescheid wenn die kaffeemaschine an ist", language=None)
        waiting = await speaker.runtime.list_waiting(speaker.session.id)
        assert [turn.language for turn in waiting] == ["de"]


async def test_what_is_not_understood_is_said_in_the_language_of_the_sentence():
    async with in_demo_house() as speaker:
        said = await speaker.say("spiel bitte mal verstecken mit dem kleinen bruder von lisa", language=None)
        assert "not understand" not in said


def test_the_language_of_the_last_turns_wins_over_one_that_knows_a_little_more():
    scores = {"en": 0.2, "de": 1.0, "fr": 0.8}
    assert rank_languages(scores, "fr", "en")[0] == "fr"
    assert rank_languages(scores, None, "en") == ["de", "fr", "en"]


def test_the_language_of_the_home_wins_if_several_know_as_much():
    assert rank_languages({"en": 1.0, "nl": 1.0}, None, "nl") == ["nl", "en"]


@pytest.mark.parametrize(
    ("scores", "language"),
    [({"en": 0.9, "de": 0.5}, "en"), ({"en": 0.9, "de": 0.9}, None), ({"en": 0.4}, None), ({}, None)],
)
def test_only_one_language_that_knows_most_words_is_recognized(scores, language):
    assert recognize_language(scores) == language
