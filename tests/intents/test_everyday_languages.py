"""Everyday sentences in six languages, through a runtime without a model."""

import re

import pytest

from tests.intents.speaker import in_demo_house


@pytest.mark.parametrize(
    ("language", "on", "off"),
    [
        ("de", "schalte die Terrassenbeleuchtung ein", "und wieder aus"),
        ("fr", "allume la lumière de la terrasse", "éteins-la"),
        ("es", "enciende la luz de la terraza", "apágala"),
        ("it", "accendi la luce della terrazza", "spegnila"),
        ("nl", "doe het licht op het terras aan", "doe het weer uit"),
    ],
)
async def test_a_light_is_switched_and_referred_to(language, on, off):
    async with in_demo_house() as speaker:
        await speaker.say(on, language=language)
        assert speaker.state("light.terrace") == "on"
        await speaker.say(off, language=language)
        assert speaker.state("light.terrace") == "off"


@pytest.mark.parametrize(
    ("language", "command", "undo"),
    [
        ("en", "turn on the floor lamp", "put it back"),
        ("de", "mach die Stehlampe an", "mach das wieder rückgängig"),
        ("fr", "allume le lampadaire", "annule ça"),
        ("es", "enciende la lámpara de pie", "deshaz eso"),
        ("it", "accendi la lampada da terra", "annulla l'ultima azione"),
        ("nl", "doe de vloerlamp aan", "maak dat ongedaan"),
        ("pt", "turn on the floor lamp", "undo that"),
    ],
)
async def test_the_last_action_is_undone(language, command, undo):
    async with in_demo_house() as speaker:
        await speaker.say(command, language=language)
        assert speaker.state("light.floor_lamp") == "on", speaker.said
        await speaker.say(undo, language=language)
        assert speaker.state("light.floor_lamp") == "off", speaker.said


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "what's the time?"),
        ("de", "wie viel Uhr ist es?"),
        ("fr", "quelle heure est-il ?"),
        ("es", "¿qué hora es?"),
        ("it", "che ore sono?"),
        ("nl", "hoe laat is het?"),
    ],
)
async def test_the_time_is_told(language, sentence):
    async with in_demo_house() as speaker:
        assert re.search("9(:| h )30", await speaker.say(sentence, language=language))


@pytest.mark.parametrize(
    ("sentences", "states"),
    [
        (
            ("mach die Stehlampe an und das Flurlicht auch",),
            {"light.floor_lamp": "on", "light.hallway": "on"},
        ),
        (("schalt die Lampe an", "die Nachttischlampe"), {"light.bedside_lamp": "on"}),
    ],
    ids=lambda value: " / ".join(value) if isinstance(value, tuple) else None,
)
async def test_german_commands_lead_to_these_states(sentences, states):
    async with in_demo_house() as speaker:
        await speaker.say(*sentences, language="de")
        assert {entity_id: speaker.state(entity_id) for entity_id in states} == states, speaker.said


@pytest.mark.parametrize("language", [None, "de"])
async def test_the_language_of_the_sentence_wins_over_that_of_the_home(language):
    async with in_demo_house() as speaker:
        assert await speaker.say("Wie spät ist es?", language=language) == "Es ist 9:30 Uhr."
