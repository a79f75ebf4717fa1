"""Some sentences of the table in a real Home Assistant. The benchmark `answers` says all of them."""

from dataclasses import replace

import pytest

from sash.home.remote import RemoteHome
from sash.ports.home import Connected
from tests.answers.house_connection import HouseConnection
from tests.answers.house_states import HouseStates
from tests.answers.judge import find_fault
from tests.answers.real_house import ADDED, run_table_house
from tests.answers.real_talk import RealTalks, can_be_held
from tests.answers.sash_talk import TurnTimes
from tests.answers.table import Then, read_cases
from tests.ha.conftest import install_or_skip
from tests.home.event_watcher import EventWatcher

CASES = {case.id: case for case in read_cases()}


@pytest.fixture(scope="session")
def table_house(request, tmp_path_factory):
    """A house that runs until the tests are over."""
    folder = tmp_path_factory.mktemp("table") / "config"
    with run_table_house(install_or_skip(request.config), folder) as house:
        yield house


@pytest.fixture
async def talks(table_house):
    async with RealTalks.open(table_house, TurnTimes()) as talks:
        yield talks


@pytest.fixture
async def connection(table_house):
    async with HouseConnection.connect(table_house) as connection:
        yield connection


async def read(connection, *entity_ids):
    states = await connection.read_states()
    return [states[entity_id].state for entity_id in entity_ids]


async def test_the_entities_of_the_table_exist_and_are_exposed(table_house):
    home = RemoteHome(table_house.url, table_house.token)
    watcher = EventWatcher(home)
    await home.open()
    await watcher.until(Connected)
    layout = await home.get_layout()
    await home.close()
    exposed = {entity.id for entity in layout.entities if entity.exposed}
    named = {each for case in CASES.values() if "ha" in case.houses for each in case.entities}
    named = {each for each in named if not each.startswith("group.")}
    assert {*named, *ADDED["entities"]["expose"]} <= exposed
    assert {area.name for area in layout.areas} >= {*ADDED["areas"], "Kitchen", "Bedroom"}


@pytest.mark.parametrize("case_id", ["bed-light-red-ha", "light-here-ha", "living-fan-ha"])
async def test_both_agents_do_what_is_said_and_the_house_is_restored(talks, connection, case_id):
    case = CASES[case_id]
    [changed] = {**case.after, **case.values}
    before = (await connection.read_states())[changed]
    for hold in (talks.hold_with_sash, talks.hold_with_own_agent):
        heard = await hold(case)
        assert find_fault(case, heard) is None, heard.answer
        assert heard.changed == {changed} and heard.calls
        after = (await connection.read_states())[changed]
        assert after.state == before.state
    assert talks.unrestored == set()


async def test_sash_asks_before_it_unlocks_and_a_yes_unlocks(talks, connection):
    asked = await talks.hold_with_sash(CASES["unlock-ha"])
    assert asked.answer.endswith("?") and not asked.changed and not asked.calls
    unlocked = await talks.hold_with_sash(CASES["unlock-yes-ha"])
    assert unlocked.changed == {"lock.front_door"} and unlocked.calls == ("lock.unlock",)
    assert await read(connection, "lock.front_door") == ["locked"]


async def test_a_wrong_effect_is_noticed(talks):
    case = replace(CASES["bed-light-half-ha"], values={"light.bed_light": {"brightness_pct": 70}})
    assert "brightness_pct of light.bed_light is" in find_fault(case, await talks.hold_with_own_agent(case))
    extra = replace(CASES["kitchen-lights-ha"], after={"light.kitchen_lights": "off"})
    assert find_fault(extra, await talks.hold_with_own_agent(extra)) == "also changed light.ceiling_lights"


async def test_what_an_automation_calls_and_what_the_test_calls_are_not_calls_of_the_agent(talks):
    case = CASES["bed-light-half-ha"]
    off = replace(case, states={"switch.ac": "on", "light.bed_light": "off"}, say="turn off the ac")
    heard = await talks.hold_with_own_agent(off)
    assert heard.changed == {"switch.ac", "light.bed_light"}
    assert "switch.turn_off" in heard.calls and "light.turn_on" not in heard.calls
    later = replace(CASES["hello"], then=Then({"light.kitchen_lights": "off"}))
    heard = await talks.hold_with_own_agent(later)
    assert heard.states["light.kitchen_lights"].state == "off"
    assert not heard.changed and not heard.calls


async def test_states_are_set_even_if_an_automation_reacts(connection):
    states = HouseStates(connection)
    await states.remember()
    wanted = {"switch.ac": "off", "light.bed_light": "off", "valve.orchard": "open"}
    before = await read(connection, *wanted)
    await states.set({"switch.ac": "on"})
    await states.set(wanted)
    assert await read(connection, *wanted) == [*wanted.values()] != before
    await states.restore()
    assert states.unrestored == set()
    assert await read(connection, *wanted) == before


async def test_the_colour_of_a_light_that_is_off_is_restored(connection):
    states = HouseStates(connection)
    await states.remember()
    await connection.call("light.turn_on", entity_id="light.bed_light")
    colour = (await connection.read_states())["light.bed_light"].attributes["rgb_color"]
    await connection.call("light.turn_on", entity_id="light.bed_light", rgb_color=[0, 255, 0])
    await states.restore()
    assert await read(connection, "light.bed_light") == ["off"]
    await connection.call("light.turn_on", entity_id="light.bed_light")
    assert (await connection.read_states())["light.bed_light"].attributes["rgb_color"] == colour
    await states.restore()


def test_a_case_with_a_jump_of_the_clock_is_left_out():
    case = CASES["bed-light-red-ha"]
    assert can_be_held(case) and not can_be_held(CASES["in-ten-minutes"])
    assert not can_be_held(replace(case, then=Then(advance_s=60)))
    assert not can_be_held(replace(case, before=(Then(advance_s=60),)))
