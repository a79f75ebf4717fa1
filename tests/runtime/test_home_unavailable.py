"""Turns while the home cannot be reached."""

import asyncio

import pytest

from sash.engine.runtime import Runtime
from sash.errors import HomeUnavailable
from sash.stores.memory import MemoryStore
from sash.testing import ScriptedModel, calling
from tests.home.small_home import house
from tests.runtime.talk import WAIT_S, answer, system_texts, turn


async def test_a_house_that_goes_away_mid_turn_leaves_the_turn_with_an_answer(live):
    def lose(request):
        runtime.house.disconnect("the router is down")
        return calling("get_states", entity_ids=["light.kitchen_ceiling"])

    runtime = await live(lose, "The house cannot be reached.", "It is back.")
    session = await runtime.start_session()
    result = await turn(runtime, session, "tell me all about the lamps and ghosts")
    assert (result.status, result.response.final_message) == ("completed", "The house cannot be reached.")
    shown = runtime.model.requests[1].messages[-1]["content"]
    assert shown.startswith("failed: ")
    assert "the router is down" in shown
    runtime.house.connect()
    async with asyncio.timeout(WAIT_S):
        await runtime.home.wait_until_ready()
    assert await answer(runtime, session, "is the front door locked?") == "Yes, the front door is locked."


async def test_a_turn_while_the_house_is_away_is_told_so(live):
    runtime = await live("I cannot see the house.")
    runtime.house.disconnect("the router is down")
    session = await runtime.start_session()
    await turn(runtime, session, "tell me about the lamps")
    assert any("the router is down" in text for text in system_texts(runtime.model.requests[0]))


async def test_a_house_that_is_never_there_does_not_keep_a_runtime_from_starting():
    home = house()
    home.connect = lambda: None
    home.disconnect("no such host")
    async with asyncio.timeout(WAIT_S), Runtime(MemoryStore(), ScriptedModel("Hello."), home=home) as runtime:
        session = await runtime.start_session()
        assert await answer(runtime, session, "hello there my friend of old") == "Hello."


async def test_who_waits_for_a_house_too_long_is_told_why():
    home = house()
    home.connect = lambda: None
    home.disconnect("no such host")
    async with Runtime(MemoryStore(), ScriptedModel("Hello."), home=home) as runtime:
        with pytest.raises(HomeUnavailable, match="cannot be reached"):
            await runtime.home_ready(timeout_s=0.01)
