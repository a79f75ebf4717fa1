"""A large home does not stop the event loop of Home Assistant."""

import gc
from collections.abc import AsyncIterator

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.hass_home import HassHome
from sash.home.live_home import LiveHome
from tests.ha.inside.loop_stretches import measure_stretches

ENTITIES = 5000
MAX_STRETCH_S = 0.05
ATTRIBUTES = {
    "min_color_temp_kelvin": 2000,
    "max_color_temp_kelvin": 6500,
    "supported_color_modes": ["color_temp", "hs"],
    "color_mode": "hs",
    "brightness": 180,
    "hs_color": (28.0, 61.2),
    "rgb_color": (255, 173, 99),
    "supported_features": 44,
    "effect_list": ["rainbow", "candle", "party"],
}


@pytest.fixture
async def large_house(hass: HomeAssistant) -> AsyncIterator[HomeAssistant]:
    """A house with 5,000 lights and sensors, 1,250 devices, 25 areas and 200 automations."""
    assert await async_setup_component(hass, "homeassistant", {})
    entry = MockConfigEntry(domain="bridge")
    entry.add_to_hass(hass)
    devices, entities = dr.async_get(hass), er.async_get(hass)
    areas = [ar.async_get(hass).async_create(f"Area {n}").id for n in range(25)]
    for n in range(ENTITIES):
        if n % 4 == 0:
            device = devices.async_get_or_create(
                config_entry_id=entry.entry_id, identifiers={("bridge", str(n))}, name=f"Device {n}"
            )
            devices.async_update_device(device.id, area_id=areas[n % 25])
        domain = "light" if n % 2 else "sensor"
        found = entities.async_get_or_create(
            domain, "bridge", str(n), config_entry=entry, device_id=device.id, original_name=f"Part {n}"
        )
        hass.states.async_set(found.entity_id, "on", {**ATTRIBUTES, "friendly_name": f"Device {n} part"})
    automations = [
        {
            "alias": f"Automation {n}",
            "triggers": [{"trigger": "state", "entity_id": f"light.bridge_{n * 2 + 1}"}],
            "actions": [{"action": "light.turn_on", "target": {"area_id": areas[n % 25]}}] * 5,
        }
        for n in range(200)
    ]
    assert await async_setup_component(hass, "automation", {"automation": automations})
    await hass.async_block_till_done()
    # The garbage collector also looks at what other tests of this process left. Its pauses are not measured.
    gc.collect()
    gc.disable()
    yield hass
    gc.enable()


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
async def test_the_layout_is_read_in_short_stretches(
    large_house: HomeAssistant, hass_home: HassHome, is_first: bool
):
    """At the first time, Home Assistant decides about each entity whether it is exposed."""
    if not is_first:
        await hass_home.get_layout()
    async with measure_stretches() as stretches:
        layout = await hass_home.get_layout()
    assert len(layout.entities) >= ENTITIES
    assert len(layout.dependents) == 200
    assert stretches.longest_s < MAX_STRETCH_S


async def test_states_and_services_are_read_in_short_stretches(
    large_house: HomeAssistant, hass_home: HassHome
):
    async with measure_stretches() as stretches:
        assert len(await hass_home.get_states()) >= ENTITIES
    assert stretches.longest_s < MAX_STRETCH_S
    async with measure_stretches() as stretches:
        await hass_home.get_services()
    assert stretches.longest_s < MAX_STRETCH_S


async def test_a_live_home_reads_it_in_short_stretches(large_house: HomeAssistant):
    live_home = LiveHome(HassHome(large_house))
    async with measure_stretches() as stretches:
        await live_home.open()
        await live_home.wait_until_ready()
    await live_home.close()
    assert stretches.longest_s < MAX_STRETCH_S
