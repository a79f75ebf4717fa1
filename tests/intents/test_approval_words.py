"""Approvals and denials in many languages. An unclear text is neither."""

import tomllib
from importlib.resources import files

import pytest

from sash.intents.approval_words import approves_and_goes_on, is_doubtful, parse_approval
from sash.intents.words.phrases import expand


@pytest.mark.parametrize(
    "text",
    ["yes", "Yes, please!", "OK", "ja", "Ja, bitte mach das.", "sí", "はい", "да", "go ahead", "yes yes"],
)
def test_a_yes(text):
    assert parse_approval(text) is True


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No, thanks.", "Nein!", "bitte nicht", "don't", "nej tak", "non merci", "нет", "いいえ"),
        *(
            "Never mind.",
            "nevermind",
            "forget it",
            "No, leave it, thanks",
            "lass es",
            "Lass mal",
            "vergiss es",
        ),
        *("egal", "ist egal", "schon gut, danke", "laisse tomber", "oublie ça", "déjalo", "olvídalo"),
        *("lascia stare", "lascia perdere", "laat maar", "laat maar zitten", "deixa pra lá", "glem det"),
    ],
)
def test_a_no(text):
    assert parse_approval(text) is False


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "?", "please", "yes and no", "yes, but only the front door", "of course not"),
        *("forget the front door", "lass das Licht an", "egal ob offen", "never mind, turn on the light"),
        *("is it open?", "note", "yesterday", "nobody", "ok stop", "unlock the back door", "yes " * 50),
    ],
)
def test_neither(text):
    assert parse_approval(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "yes wait",
            "ok wait",
            "wait, yes",
            "ja, warte",
            "Ja, Moment mal",
            "oui attends",
            "d'accord, un instant",
        ),
        *(
            "sí, espera",
            "vale, un momento",
            "sì aspetta",
            "va bene, un attimo",
            "ja, wacht even",
            "oké, momentje",
        ),
        *("yes, maybe", "ja, vielleicht", "oui, peut-être", "sí, quizás", "sì, forse", "ja, misschien"),
    ],
)
def test_a_hesitation_approves_nothing(text):
    assert parse_approval(text) is None and is_doubtful(text)


@pytest.mark.parametrize(
    "text",
    [
        "wait, no",
        "no wait",
        "Moment, nein",
        "attends, non",
        "espera, no",
        "aspetta, no",
        "wacht, nee",
        "hang on, no",
    ],
)
def test_a_hesitation_beside_a_no(text):
    assert parse_approval(text) is False


@pytest.mark.parametrize(
    "text",
    [
        *(
            "yes?",
            "do it?",
            "correct?",
            "sure?",
            "ok?",
            "ja?",
            "richtig?",
            "sicher?",
            "oui ?",
            "c'est ça ?",
            "d'accord ?",
        ),
        *(
            "¿sí?",
            "¿de acuerdo?",
            "è giusto?",
            "sì?",
            "va bene?",
            "klopt dat?",
            "zeker?",
            "はい？",
            "네?",
            "no?",
        ),
    ],
)
def test_a_question_is_no_answer(text):
    assert parse_approval(text) is None


@pytest.mark.parametrize(
    "text", ["why not?", "warum nicht?", "pourquoi pas ?", "¿por qué no?", "perché no?", "waarom niet?"]
)
def test_a_question_that_approves(text):
    assert parse_approval(text) is True and not is_doubtful(text)


@pytest.mark.parametrize(
    "text",
    [
        *("that's fine", "fine, thanks", "it's fine", "ok thanks, it's fine", "that's good", "passt, danke"),
        *(
            "c'est bon",
            "c'est bon, merci",
            "c'est bien",
            "va bene così",
            "così va bene",
            "está bien así",
            "zo is het goed",
        ),
        *("logo", "igen", "prima", "das ist gut so"),
    ],
)
def test_a_phrase_that_often_declines_approves_nothing(text):
    assert parse_approval(text) is not True


@pytest.mark.parametrize(
    "text",
    [
        "yes and turn on the hall light",
        "Yes please, and then close the blinds",
        "Ja, und mach das Licht an",
        "oui et allume la lampe",
        "sí, y apaga la luz",
        "sì e spegni la luce",
        "ja en doe het licht uit",
        "do it and lock it again in five minutes",
        "yes and stop the music",
        "sì e annulla la sveglia",
        "sí, y luego apaga la luz",
        "ja und mach dann bitte das Licht im Flur an, und stell die Heizung auf 21 Grad",
    ],
)
def test_a_yes_that_goes_on(text):
    assert approves_and_goes_on(text) and parse_approval(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "yes and no",
        "yes and",
        "yes, but not now",
        "yes, in ten minutes",
        "and yes",
        "yes I know",
        "yes Andy",
        "",
        *("yes and then again maybe not", "yes and wait a minute", "yeah, and how is that safe"),
        *(
            "yes and is the light on?",
            "yes, and leave the door closed, not open",
            "yes and turn on the light, but don't unlock it",
        ),
        *("ja und dann lieber doch nicht", "ja und warum fragst du", "ja und warte noch"),
        *("oui, et puis non, laisse la porte fermée", "oui et attends un peu", "oui et pourquoi faire"),
        *(
            "si e accesa la luce?",
            "sì e no, non so",
            "sì e aspetta un attimo",
            "sí y luego no",
            "sí y por qué",
        ),
        *("doe maar en dan niet de achterdeur", "ja en wacht even", "ja en hoe veilig is dat"),
        "yes and turn on the light in the hall and in the kitchen, please, but do not open the door",
    ],
)
def test_a_yes_that_does_not_go_on(text):
    assert not approves_and_goes_on(text)


def test_no_phrase_means_both_yes_and_no():
    phrases = tomllib.loads((files("sash") / "data" / "approvals.toml").read_text("utf-8"))
    answers = {
        answer: {
            words for listed in phrases[answer].values() for phrase in listed for words in expand(phrase)
        }
        for answer in ("yes", "no", "polite")
    }
    assert answers["yes"] & answers["no"] == set()
    assert answers["no"] & answers["polite"] == set()
