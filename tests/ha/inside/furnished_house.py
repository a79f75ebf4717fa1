"""A house inside the process of a test: demo devices in areas, with automations, scripts, scenes and templates."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers import floor_registry as fr
from homeassistant.helpers import label_registry as lr
from homeassistant.setup import async_setup_component

PLATFORMS = ("climate", "light", "lock", "sensor", "switch", "weather")
HIDDEN = "light.office_rgbw_lights"
CONFIG: dict[str, Any] = {
    "automation": [
        {
            "id": "bed_light_follows_ac",
            "alias": "Bed light follows AC",
            "triggers": [{"trigger": "state", "entity_id": "switch.ac", "to": "off"}],
            "actions": [{"action": "light.turn_on", "target": {"entity_id": "light.bed_light"}}],
        },
        {
            "id": "dark_kitchen",
            "alias": "Dark kitchen",
            "triggers": [
                {
                    "trigger": "template",
                    "value_template": "{{ states('sensor.outside_temperature') | float(0) > 50 }}",
                }
            ],
            "actions": [{"action": "light.turn_off", "target": {"area_id": "kitchen"}}],
        },
    ],
    "script": {
        "good_night": {
            "alias": "Good night",
            "fields": {"slowly": {"description": "Whether to take time.", "selector": {"boolean": {}}}},
            "sequence": [
                {"action": "lock.lock", "target": {"entity_id": "lock.front_door"}},
                {"action": "scene.turn_on", "target": {"entity_id": "scene.dinner"}},
            ],
        },
        "count": {
            "sequence": [
                {"variables": {"found": {"lamps": 3, "names": ["a", "b"]}}},
                {"stop": "done", "response_variable": "found"},
            ]
        },
        "wait": {
            "sequence": [
                {"wait_for_trigger": [{"trigger": "event", "event_type": "go_on"}]},
                {"action": "light.turn_off", "target": {"entity_id": "light.kitchen_lights"}},
            ]
        },
    },
    "scene": [
        {
            "id": "dinner",
            "name": "Dinner",
            "entities": {"light.kitchen_lights": "on", "light.ceiling_lights": "off"},
        }
    ],
    "group": {
        "downstairs": {"name": "Downstairs", "entities": ["light.kitchen_lights", "light.ceiling_lights"]}
    },
    "template": [
        {
            "sensor": [
                {
                    "name": "Outside twice",
                    "unique_id": "outside_twice",
                    "state": "{{ states('sensor.outside_temperature') | float(0) * 2 }}",
                },
                {
                    "name": "Air",
                    "unique_id": "air",
                    "state": "{{ states('sensor.carbon_dioxide') }}",
                    "attributes": {"poison": "{{ states('sensor.carbon_monoxide') }}"},
                },
            ]
        }
    ],
}


@asynccontextmanager
async def furnish(hass: HomeAssistant) -> AsyncIterator[None]:
    """Set up the house with its devices, areas and names. Remove the devices at the end."""
    hass.config.location_name = "Test Home"
    with patch("homeassistant.components.demo.COMPONENTS_WITH_CONFIG_ENTRY_DEMO_PLATFORM", PLATFORMS):
        for name in ("homeassistant", "demo", *CONFIG):
            assert await async_setup_component(hass, name, CONFIG)
        await hass.async_block_till_done()
        _place(hass)
        await hass.async_block_till_done()
        yield
        [demo] = hass.config_entries.async_entries("demo")
        assert await hass.config_entries.async_unload(demo.entry_id)


def _place(hass: HomeAssistant) -> None:
    """Give the entities areas, names and labels, and hide one of them."""
    ground = fr.async_get(hass).async_create("Ground floor", aliases={"Downstairs"})
    kitchen = ar.async_get(hass).async_create("Kitchen", floor_id=ground.floor_id, aliases={"Galley"})
    bedroom = ar.async_get(hass).async_create("Bedroom")
    cosy, food, bulbs = (lr.async_get(hass).async_create(name) for name in ("Cosy", "Food", "Bulbs"))
    ar.async_get(hass).async_update(kitchen.id, labels={food.label_id})
    entities, devices = er.async_get(hass), dr.async_get(hass)
    places = {"light.kitchen_lights": kitchen, "light.ceiling_lights": kitchen, "light.bed_light": bedroom}
    for entity_id, area in places.items():
        entry = entities.async_get(entity_id)
        assert entry is not None and entry.device_id is not None
        devices.async_update_device(entry.device_id, area_id=area.id)
        if entity_id == "light.ceiling_lights":
            devices.async_update_device(entry.device_id, labels={bulbs.label_id})
    entities.async_update_entity("light.kitchen_lights", aliases=[er.COMPUTED_NAME, "Cooking lights"])
    entities.async_update_entity("light.bed_light", labels={cosy.label_id})
    entities.async_update_entity("automation.bed_light_follows_ac", area_id=bedroom.id)
    async_expose_entity(hass, "conversation", HIDDEN, False)
