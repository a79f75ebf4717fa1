"""Questions about problems in the demo house, through a runtime without a model."""

import pytest

from tests.intents.speaker import in_demo_house

BATTERY = "The battery of the bathroom leak sensor is empty. Replace it."


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        (
            "any problems?",
            f"the hallway night light, the bedroom ceiling light and the bedroom mains voltage. {BATTERY}",
        ),
        (
            "any errors in the last hour?",
            f"In the last hour there were problems with the bathroom leak sensor. {BATTERY}",
        ),
        ("were there any warnings this week?", f"the bedroom ceiling light. {BATTERY}"),
        ("is everything okay?", BATTERY),
        ("are there any problems with the leak sensor?", BATTERY),
        ("what's up with light.bedroom_ceiling?", "flickers when the mains voltage dips"),
        ("diagnose the bedroom light", "flickers when the mains voltage dips"),
        ("diagnose binary_sensor.hallway_motion", "I find no problem with it: Hallway motion is clear."),
        (
            "is everything all right with the bedside lamp?",
            "I find no problem with it: the bedside lamp is off.",
        ),
        (
            "what is wrong with the front door?",
            "I find no problem with the front door and the front door lock.",
        ),
        ("are there any issues with the hallway night light?", "The log of the home reports problems"),
    ],
)
async def test_problems_are_told_in_two_sentences(sentence, answer):
    async with in_demo_house() as speaker:
        said = await speaker.say(sentence)
        assert answer in said
        assert said.count(". ") <= 2
        assert "_" not in said


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("Gab es heute Fehler?", "Heute gab es Probleme mit dem Wassermelder"),
        ("Was ist mit dem Schlafzimmerlicht los?", "flackert, wenn die Netzspannung einbricht"),
        ("Diagnostiziere die Stehlampe", "Ich finde keinen Fehler: die Stehlampe ist aus."),
        ("Was steht im Logbuch über Front door?", "die Haustür wurde"),
    ],
)
async def test_problems_are_told_in_german(sentence, answer):
    async with in_demo_house() as speaker:
        assert answer in await speaker.say(sentence, language="de")


async def test_it_means_what_the_last_sentence_was_about_but_a_plain_question_means_the_home():
    async with in_demo_house() as speaker:
        await speaker.say("turn on the bedside lamp")
        assert "the bedside lamp is on" in await speaker.say("what is wrong with it?")
        assert BATTERY in await speaker.say("are there any problems?")


async def test_a_home_without_problems_is_reported_as_such():
    async with in_demo_house() as speaker:
        speaker.clock.advance(30 * 86_400)
        speaker.home.set_state("binary_sensor.bathroom_leak", "off")
        speaker.home.set_state("sensor.bathroom_leak_battery", "90")
        speaker.clock.advance(7 * 86_400)
        assert "I found no problems" in await speaker.say("any errors in the last hour?")


async def test_a_session_without_the_tool_reads_no_incidents():
    async with in_demo_house() as speaker:
        turn = await speaker.runtime.send_message(speaker.session.id, "any problems?", allow_tools=False)
        result = await speaker.runtime.await_continuation(turn.id, timeout_s=10)
        assert "leak sensor" not in result.response.final_message
