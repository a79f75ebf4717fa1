"""Approvals and denials in many languages. An unclear text is neither."""

import pytest

from sash.intents.approval_words import parse_approval


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
        *("", " ", "?", "please", "yes and no", "yes, but only the front door", "of course not", "not now"),
        *("forget the front door", "lass das Licht an", "egal ob offen", "never mind, turn on the light"),
        *("is it open?", "note", "yesterday", "nobody", "ok stop", "unlock the back door", "yes " * 50),
    ],
)
def test_neither(text):
    assert parse_approval(text) is None
