"""Everyday sentences about later, through a runtime without a model."""

import pytest

from tests.intents.speaker import in_demo_house


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "switch the terrace light off in 20 minutes"),
        ("en", "at ten to ten turn off the terrace light"),
        ("de", "mach die Terrassenbeleuchtung in 20 Minuten aus"),
    ],
)
async def test_a_light_is_switched_later_and_not_at_once(language, sentence):
    async with in_demo_house() as speaker:
        speaker.home.set_state("light.terrace", "on")
        assert "9:50" in await speaker.say(sentence, language=language)
        assert speaker.state("light.terrace") == "on"
        await speaker.pass_time(19 * 60)
        assert speaker.state("light.terrace") == "on"
        await speaker.pass_time(61)
        assert speaker.state("light.terrace") == "off"


async def test_what_waits_is_listed_and_cancelled():
    async with in_demo_house() as speaker:
        await speaker.say("turn on the floor lamp in half an hour")
        assert "floor lamp" in await speaker.say("what are you waiting for?")
        await speaker.say("cancel that")
        assert await speaker.say("what are you waiting for?") == "Nothing is waiting at the moment."
        await speaker.pass_time(3600)
        assert speaker.state("light.floor_lamp") == "off"


async def test_a_state_is_waited_for():
    async with in_demo_house() as speaker:
        await speaker.say("turn on the terrace light when the bedroom window opens")
        assert speaker.state("light.terrace") == "off"
        speaker.home.set_state("binary_sensor.bedroom_window", "on")
        await speaker.pass_time(1)
        assert speaker.state("light.terrace") == "on"
