"""Over REST: answers that report a present state, a quotation or a story reach the user as they are."""

import pytest

from tests.home.small_home import house
from tests.surfaces.serving import serving

NOTHING_DONE = "I have not done that: no action was carried out in this turn."


async def ask(folder, answer, message):
    async with serving(folder, answer, home=house()) as served:
        await served.runtime.home.wait_until_ready()
        session_id = await served.start()
        shown = await served.wait(await served.send(session_id, message))
        return shown["response"]["final_message"]


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Make sure that nobody can come in", "The front door is locked now."),
        ("The front door, make it safe for the night", "It is locked now."),
        ("Make sure that the air is good", "The bedroom fan is now on."),
        ("Tell me a story about a robot", "The robot said: I have turned on the light. Done!"),
        ("I want to see my last words", 'You said: "I have turned on the light."'),
    ],
)
async def test_a_true_report_a_story_and_a_quotation_are_not_replaced(tmp_path, message, answer):
    assert await ask(tmp_path, answer, message) == answer


@pytest.mark.parametrize(
    "answer",
    ["The front door is now unlocked.", "The Bedroom fan is off now.", "I have locked the front door."],
)
async def test_a_false_report_is_replaced(tmp_path, answer):
    assert await ask(tmp_path, answer, "Make sure that the air is good") == NOTHING_DONE
