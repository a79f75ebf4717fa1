"""Everyday commands in the demo house, through a runtime without a model: follow-ups, offers, several at once."""

import pytest

from tests.intents.speaker import in_demo_house


@pytest.mark.parametrize(
    ("sentences", "states"),
    [
        (("turn the terrace light on", "and off again"), {"light.terrace": "off"}),
        (("put the hallway light on", "the mirror light too"), {"light.bathroom_mirror": "on"}),
        (
            ("turn on the floor lamp", "no, the bedside lamp"),
            {"light.floor_lamp": "on", "light.bedside_lamp": "on"},
        ),
        (("turn on the radio in the kitchen", "pause it"), {"media_player.kitchen_radio": "paused"}),
        (
            ("turn on light.kitchen_ceiling, then switch light.floor_lamp off",),
            {"light.kitchen_ceiling": "on", "light.floor_lamp": "off"},
        ),
        (
            ("switch on the terrace light and the garden path lights",),
            {"light.terrace": "on", "light.garden_path": "on"},
        ),
        (
            ("turn the coffee machine on and dim the floor lamp to 20 percent",),
            {"switch.coffee_machine": "on", "light.floor_lamp": "on"},
        ),
        (("turn on the lamp", "the bedside one"), {"light.bedside_lamp": "on", "light.floor_lamp": "off"}),
        (("turn on the lamp", "no thanks"), {"light.bedside_lamp": "off", "light.floor_lamp": "off"}),
        (("turn on the lamp", "what time is it?", "yes"), {"light.floor_lamp": "off"}),
        (("trun on the terace light",), {"light.terrace": "on"}),
        (("unlock the front door", "never mind"), {"lock.front_door": "locked"}),
        (("lock the back door",), {"lock.front_door": "locked"}),
        (("turn on the terrace light", "undo that"), {"light.terrace": "off"}),
    ],
    ids=lambda value: " / ".join(value) if isinstance(value, tuple) else None,
)
async def test_commands_lead_to_these_states(sentences, states):
    async with in_demo_house() as speaker:
        await speaker.say(*sentences)
        assert {entity_id: speaker.state(entity_id) for entity_id in states} == states, speaker.said


@pytest.mark.parametrize(
    ("first", "then", "percent"),
    [
        ("dim the bedside lamp to 40 percent", "now to 70", 70),
        ("set the bedside lamp to 80 %", "half of it", 50),
    ],
)
async def test_a_number_alone_changes_the_same_lamp(first, then, percent):
    async with in_demo_house() as speaker:
        await speaker.say(first, then)
        assert speaker.attribute("light.bedside_lamp", "brightness") == pytest.approx(percent * 2.55, abs=2)


@pytest.mark.parametrize(
    ("sentences", "answer"),
    [
        (
            ("how warm is it in the bathroom?", "and in the living room?"),
            "The living room is at 20.9 degrees.",
        ),
        (("is the bedroom window closed?", "and the front door?"), "Yes, the front door is closed."),
        (("is light.kitchen_ceiling on?",), "No, the kitchen ceiling light is off."),
        (("is LIGHT.KITCHEN_CEILING on?",), "No, the kitchen ceiling light is off."),
        (("turn on the lamp",), "Which one do you mean: the floor lamp or the bedside lamp?"),
        (("is the back door locked?",), "I do not know “back door” in this home."),
        (("how humid is it in the bathroom?",), "I have no value for the humidity in the bathroom."),
        (("is the disco ball on?",), "I do not know “disco” in this home."),
        (("turn on the terrace light", "undo that", "undo that"), "There is nothing that I could undo."),
        (("turn on the kitchen radio", "which devices are offline?"), "cannot be reached at the moment."),
        (("battery levels",), "The bathroom leak sensor battery does not report a value at the moment."),
        (("how do I let you control lights?",), "Yes, I may control things in this home."),
        (("show all lights",), "are off."),
        (("remember that the plumber comes on Friday", "when does the plumber come?"), "comes on Friday."),
    ],
    ids=lambda value: " / ".join(value) if isinstance(value, tuple) else None,
)
async def test_questions_are_answered_so(sentences, answer):
    async with in_demo_house() as speaker:
        assert answer in await speaker.say(*sentences), speaker.said


@pytest.mark.parametrize(
    "sentence",
    [
        "Who is the president of France?",
        "what is 2+2?",
        "how many legs has a spider?",
    ],
)
async def test_a_question_about_the_world_gets_an_honest_no(sentence):
    async with in_demo_house() as speaker:
        assert (await speaker.say(sentence)).startswith("I do not know that. I can answer questions")


async def test_a_request_for_other_things_is_not_understood():
    async with in_demo_house() as speaker:
        assert (await speaker.say("write me a poem about autumn")).startswith(
            "I did not understand that. Try “which lights are on?”"
        )


async def test_what_has_changed_since_is_not_undone():
    async with in_demo_house() as speaker:
        await speaker.say("turn on the terrace light")
        speaker.home.set_state("light.terrace", "off")
        assert await speaker.say("undo that") == "Something has changed since then, so I have undone nothing."


async def test_what_cannot_be_undone_is_said():
    async with in_demo_house() as speaker:
        await speaker.say("start the vacuum")
        assert await speaker.say("undo that") == "I cannot undo my last action, so I have changed nothing."
