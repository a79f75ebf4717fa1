"""When the sun rises and sets, and whether it is light outside."""

from dataclasses import replace

import pytest

from sash.home.index import HomeIndex
from sash.intents.sun import answer_sun_question
from sash.intents.waiting.triggers import read_trigger
from sash.ports.home import Entity, Layout, State
from tests.intents.everyday import NOW, Talk

DAY = State(
    "sun.sun",
    "above_horizon",
    {"next_setting": "2026-01-17T16:25:00+00:00", "next_rising": "2026-01-18T07:55:00+00:00"},
    NOW,
    NOW,
)
INDEX = HomeIndex(Layout("Test", (Entity("sun.sun", "Sun"),)), (DAY,))


async def ask(talk: Talk, text: str, language: str = "en", *, index: HomeIndex = INDEX) -> str | None:
    situation = replace(talk.situate(text, language=language), index=index)
    reply = await answer_sun_question(situation)
    return reply.text if reply else None


@pytest.mark.parametrize(
    ("language", "text", "answer"),
    [
        ("en", "what time does the sun set?", "The sun sets today at 16:25."),
        ("en", "when does it get dark", "The sun sets today at 16:25."),
        ("en", "how long until sunset", "The sun sets in 2 hours and 25 minutes, today at 16:25."),
        ("en", "sunrise tomorrow?", "The sun rises tomorrow at 7:55."),
        ("en", "is it dark outside", "No, the sun is still up. It sets today at 16:25."),
        ("en", "is the sun still up?", "Yes, the sun is up. It sets today at 16:25."),
        ("de", "wann geht die Sonne auf", "Die Sonne geht morgen um 7:55 Uhr auf."),
        ("fr", "à quelle heure se couche le soleil ?", "Le soleil se couche aujourd'hui à 16 h 25."),
        ("es", "¿a qué hora se pone el sol?", "El sol se pone hoy a las 16:25."),
        ("it", "a che ora tramonta il sole?", "Il sole tramonta oggi alle 16:25."),
        ("nl", "hoe laat gaat de zon onder?", "De zon gaat vandaag om 16:25 uur onder."),
    ],
)
async def test_the_next_sunset_or_sunrise_is_told(talk: Talk, language: str, text: str, answer: str) -> None:
    assert await ask(talk, text, language) == answer


async def test_without_the_sun_a_sensor_outside_tells_the_light(talk: Talk) -> None:
    talk.home.set_state("sensor.garden_illuminance", "4")
    answer = await ask(talk, "is it dark outside?", index=talk.live.index)
    assert answer is not None
    assert answer.startswith("Yes, the garden illuminance is 4")


async def test_a_home_without_the_sun_says_so(talk: Talk) -> None:
    assert "no sun service" in (await ask(talk, "when is sunset", index=talk.live.index) or "")


@pytest.mark.parametrize(
    "text", ["is it dark in the bedroom", "it's dark outside", "when did the sun set", "is it sunny?"]
)
async def test_other_sentences_are_left_to_others(talk: Talk, text: str) -> None:
    assert await ask(talk, text) is None


def test_sunset_is_waited_for(talk: Talk) -> None:
    situation = replace(talk.situate("when the sun sets"), index=INDEX)
    trigger = read_trigger(situation, 1, 4)
    assert trigger is not None
    assert trigger.when == {"entity_id": "sun.sun", "states": ["below_horizon"]}
