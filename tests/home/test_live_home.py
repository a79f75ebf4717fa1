"""The live index: updated by events, and unavailable while the home is."""

import asyncio
from dataclasses import replace

import pytest

from sash.errors import HomeUnavailable
from sash.home.live_home import LiveHome
from tests.home.small_home import LAYOUT, WAIT_S, entity, house, open_live_home, without


async def test_a_house_is_known_after_it_has_connected():
    home = house()
    known = LiveHome(home)
    with pytest.raises(HomeUnavailable, match="still connecting"):
        _ = known.index
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        assert len((await known.wait_until_ready()).entities) == len(LAYOUT.entities) - 1
        assert "light.turn_on" in known.services


async def test_states_are_fresh():
    home = house()
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        index = await known.wait_until_ready()
        home.set_state("switch.kettle", "on")
        assert index.get_state("switch.kettle") == "on"


async def test_a_house_that_goes_away_is_said_to_be_away_and_comes_back():
    home = house()
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        await known.wait_until_ready()
        home.disconnect("the router is down")
        with pytest.raises(HomeUnavailable, match="the router is down"):
            _ = known.index
        home.set_state("switch.kettle", "on")
        home.connect()
        assert (await known.wait_until_ready()).get_state("switch.kettle") == "on"


async def test_a_changed_layout_is_read_again():
    home = house()
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        before = await known.wait_until_ready()
        lamp = entity("light.new", "New lamp", "bedroom")
        home.change_layout(replace(LAYOUT, entities=(*LAYOUT.entities, lamp)))
        while known.index is before:
            await asyncio.sleep(0)
        assert known.index.find("New lamp").id == "light.new"
        home.change_layout(without("switch.kettle"))
        while "switch.kettle" in known.index.entities:
            await asyncio.sleep(0)


async def test_a_change_while_the_house_is_read_is_not_lost():
    home, begun, go_on = house(), asyncio.Event(), asyncio.Event()
    read = home.get_states

    async def slowly():
        states = await read()
        begun.set()
        await go_on.wait()
        return states

    home.get_states = slowly
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        await begun.wait()
        home.set_state("switch.kettle", "on")
        go_on.set()
        assert (await known.wait_until_ready()).get_state("switch.kettle") == "on"


async def test_a_house_that_cannot_be_read_is_read_again():
    home, tries = house(), []
    read = home.get_layout

    async def broken():
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("no registry")
        return await read()

    home.get_layout = broken
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        await known.wait_until_ready()
    assert len(tries) == 3


async def test_layouts_that_change_all_the_time_do_not_keep_a_house_from_being_known():
    home = house()
    read = home.get_layout

    async def changing():
        layout = await read()
        home.change_layout(LAYOUT)
        return layout

    home.get_layout = changing
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        await known.wait_until_ready()


async def test_who_waits_for_a_state_sees_it_or_gives_up():
    home = house()
    async with open_live_home(home) as known, asyncio.timeout(WAIT_S):
        index = await known.wait_until_ready()
        waiting = asyncio.create_task(
            known.wait_until(lambda: index.get_state("switch.kettle") == "on", {"switch.kettle"}, WAIT_S)
        )
        await asyncio.sleep(0)
        home.set_state("light.living_room", "on")
        home.set_state("switch.kettle", "on")
        assert not waiting.done()
        await waiting
        await known.wait_until(lambda: False, {"switch.kettle"}, 0)
