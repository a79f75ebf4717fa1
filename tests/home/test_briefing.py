"""The briefing of the model: the most relevant entities once, then the changes, within limits."""

import asyncio
from dataclasses import replace

import pytest

from sash.home.briefing import MAX_CHANGES, describe_changes, write_briefing
from sash.home.index import HomeIndex
from sash.memory.tokens import TokenCounter
from sash.ports.home import Layout
from tests.home.small_home import LAYOUT, STATES, WAIT_S, entity, index, state, without
from tests.large_home import make_large_home

count = TokenCounter().count_text


def told(searched, message="", **options):
    return write_briefing(searched, message, "Thu 2026-01-01 00:00", count, **options)


def test_a_small_house_is_told_whole_by_area():
    text = told(index()).text
    assert text.splitlines()[1:] == [
        "Bedroom: fan.bedroom on",
        "Hall: lock.front_door locked",
        "Kitchen: light.kitchen_ceiling off; light.kitchen_counter on; switch.kettle off; "
        "sensor.kitchen_temperature 21.5 °C",
        "Living room: climate.living_room “Thermostat” heat, 19.5 → 20 °C; cover.living_room “Blinds” open; "
        "light.living_room “Reading lamp” off; media_player.tv playing",
        "No area: automation.morning “Good morning” on; scene.movie “Movie night”",
    ]
    assert "Thu 2026-01-01 00:00" in text
    assert "secret" not in text.lower()


async def large(n):
    home = make_large_home(n)
    await home.open()
    async with asyncio.timeout(WAIT_S):
        known = HomeIndex(await home.get_layout(), await home.get_states())
    await home.close()
    return known


@pytest.mark.parametrize("n", [600, 5000])
async def test_a_large_house_is_told_within_bounds(n):
    searched = await large(n)
    known = told(searched, max_tokens=2000)
    assert count(known.text) < 2350
    assert len(known.states) <= 500
    assert "Not listed, to be found with search_index" in known.text


async def test_what_the_message_speaks_of_is_told_first():
    searched = await large(5000)
    target = list(searched.entities.values())[-1]
    assert target.id not in told(searched, max_tokens=500).states
    assert target.id in told(searched, f"what about {target.name}?", max_tokens=500).states


async def test_at_most_500_entities_are_listed():
    searched = await large(2000)
    assert len(told(searched, max_tokens=10**6).states) == 500


def test_nothing_changed_is_nothing_told():
    searched = index()
    assert describe_changes(searched, told(searched)) == ""


def test_a_change_is_told_once():
    searched = index()
    known = told(searched)
    searched.apply("switch.kettle", state("switch.kettle", "on"))
    assert describe_changes(searched, known) == "changed: switch.kettle on"
    assert describe_changes(searched, known) == ""


def test_a_number_that_has_hardly_moved_is_not_told():
    searched = index()
    known = told(searched)
    for value, expected in (
        ("21.9", ""),
        ("22.5", ""),
        ("22.9", "changed: sensor.kitchen_temperature 22.9 °C"),
    ):
        searched.apply(
            "sensor.kitchen_temperature",
            state("sensor.kitchen_temperature", value, unit_of_measurement="°C"),
        )
        assert describe_changes(searched, known) == expected
    searched.apply("sensor.kitchen_temperature", state("sensor.kitchen_temperature", "unavailable"))
    assert describe_changes(searched, known) == "changed: sensor.kitchen_temperature unavailable"


def test_a_target_temperature_is_told_and_a_drift_is_not():
    searched = index()
    known = told(searched)
    for present, target, expected in (
        (19.9, 20, ""),
        (19.9, 20.5, "changed: climate.living_room “Thermostat” heat, 19.9 → 20.5 °C"),
        (22, 20.5, "changed: climate.living_room “Thermostat” heat, 22 → 20.5 °C"),
    ):
        temperatures = {"current_temperature": present, "temperature": target}
        searched.apply("climate.living_room", state("climate.living_room", "heat", **temperatures))
        assert describe_changes(searched, known) == expected


def test_the_time_of_a_scene_is_not_told():
    searched = index()
    known = told(searched)
    searched.apply("scene.movie", state("scene.movie", "2026-11-16T07:52:19+00:00"))
    assert describe_changes(searched, known) == ""
    assert "2026" not in told(searched).text.partition("\n")[2]
    searched.apply("scene.movie", state("scene.movie", "unavailable"))
    assert describe_changes(searched, known) == "changed: scene.movie “Movie night” unavailable"


def test_new_and_removed_are_told():
    known = told(index())
    lamp = entity("light.new", "New", "bedroom")
    layout = without("switch.kettle", replace(LAYOUT, entities=(*LAYOUT.entities, lamp)))
    now = HomeIndex(layout, [*STATES, state("light.new", "on")])
    assert describe_changes(now, known) == "new: light.new on\nremoved: switch.kettle"
    assert describe_changes(now, known) == ""
    now.apply("light.new", state("light.new", "off"))
    assert describe_changes(now, known) == "changed: light.new off"


def test_many_new_ones_are_all_told_in_the_end():
    known = told(index())
    more = tuple(entity(f"light.new_{n}", area="bedroom") for n in range(2 * MAX_CHANGES + 5))
    now = HomeIndex(replace(LAYOUT, entities=(*LAYOUT.entities, *more)), STATES)
    assert f"and {MAX_CHANGES + 5} more" in describe_changes(now, known)
    describe_changes(now, known)
    last = describe_changes(now, known)
    assert last.count(";") == 4
    assert describe_changes(now, known) == ""
    assert {e.id for e in more} <= known.states.keys()


def test_what_comes_back_is_new_again():
    known = told(index())
    assert describe_changes(HomeIndex(without("switch.kettle"), STATES), known) == "removed: switch.kettle"
    assert describe_changes(index(), known) == "new: switch.kettle off"


def test_what_is_not_exposed_any_more_is_removed():
    known = told(index())
    hidden = [replace(e, exposed=e.exposed and e.id != "switch.kettle") for e in LAYOUT.entities]
    now = HomeIndex(replace(LAYOUT, entities=tuple(hidden)), STATES)
    assert describe_changes(now, known) == "removed: switch.kettle"


async def test_what_a_message_speaks_of_is_told_with_it():
    searched = await large(5000)
    known = told(searched, max_tokens=500)
    target = next(e for e in reversed(searched.entities.values()) if e.id not in known.states)
    text = describe_changes(searched, known, f"what about {target.name}?")
    assert text.startswith("perhaps meant: ")
    assert target.id in text
    assert text.count(";") < 5
    assert target.id not in describe_changes(searched, known, f"what about {target.name}?")
    searched.apply(target.id, state(target.id, "changed"))
    assert f"changed: {target.id}" in describe_changes(searched, known)


async def test_many_changes_are_told_in_part_and_the_rest_with_the_next_message():
    searched = await large(600)
    known = told(searched)
    for key in known.states:
        searched.apply(key, state(key, "changed"))
    text = describe_changes(searched, known)
    assert text.count(";") == MAX_CHANGES
    assert f"and {len(known.states) - MAX_CHANGES} more" in text
    shown = text.count(" changed")
    while text := describe_changes(searched, known):
        shown += text.count(" changed")
    assert shown == len(known.states)


def test_an_empty_house_is_not_told_of():
    assert told(HomeIndex(Layout("empty"), [])).text == ""
