"""Partial text says if grounding may still correct the answer, so that a voice client does not speak both."""

import asyncio
from contextlib import aclosing

import pytest

from sash.testing import calling
from sash.values.events import PartialEvent
from sash.values.sessions import SessionPolicy
from tests.runtime.talk import WAIT_S, subscribed
from tests.tools import tool

LIE = "I've turned on the kitchen light."
COMMAND = "turn on the light"
OPEN = SessionPolicy(allow_actuation=True, allowlisted_services=("light",))
LIGHT = tool("light.turn_on", lambda a, c: {"state": "on"}, action=True)
LOOK = tool("look", lambda a, c: "it is off")


async def read_turn(runtime, session):
    """Return the text of each model call of a turn, with its `is_provisional`, and the final answer."""
    texts: list[tuple[str, bool]] = []
    is_new = True
    async with aclosing(runtime.events(session.id)) as events:
        async for event in events:
            if isinstance(event, PartialEvent):
                before = "" if is_new else texts.pop()[0]
                texts.append((before + event.text, event.is_provisional))
            is_new = event.type == "step"
            if event.type == "final":
                break
    return texts, event.continuation.response.final_message


async def hear(runtime, session, message):
    """Send a message, and return what `read_turn` returns."""
    reading = asyncio.create_task(read_turn(runtime, session))
    await subscribed(runtime, session)
    await runtime.send_message(session.id, message)
    return await asyncio.wait_for(reading, WAIT_S)


async def test_text_that_may_be_corrected_is_provisional_until_the_turn_ends(run):
    runtime = await run(LIE, "I cannot do that.", tools=[LIGHT])
    session = await runtime.start_session(policy=OPEN)
    texts, final = await hear(runtime, session, COMMAND)
    assert texts == [(LIE, True), ("I cannot do that.", True)]
    assert final == "I cannot do that."


async def test_text_after_an_action_is_not_provisional(run):
    runtime = await run(calling("light.turn_on", content="One moment. "), LIE, tools=[LIGHT])
    session = await runtime.start_session(policy=OPEN)
    texts, final = await hear(runtime, session, COMMAND)
    assert texts == [("One moment. ", True), (LIE, False)]
    assert final == LIE


async def test_text_after_a_call_that_only_reads_is_provisional(run):
    runtime = await run(calling("look"), "It is off.", tools=[LIGHT, LOOK])
    session = await runtime.start_session(policy=OPEN)
    texts, _ = await hear(runtime, session, COMMAND)
    assert texts == [("It is off.", True)]


@pytest.mark.parametrize(
    ("message", "tools", "policy"),
    [
        ("Is the light on?", [LIGHT], OPEN),
        ("Tell me a story about a robot", [LIGHT], OPEN),
        (COMMAND, [LOOK], OPEN),
        (COMMAND, [LIGHT], SessionPolicy(grounded_answers=False)),
    ],
    ids=["question", "text", "no tool acts", "not grounded"],
)
async def test_text_that_nothing_corrects_is_not_provisional(run, message, tools, policy):
    runtime = await run(LIE, tools=tools)
    session = await runtime.start_session(policy=policy)
    texts, final = await hear(runtime, session, message)
    assert texts == [(LIE, False)]
    assert final == LIE
