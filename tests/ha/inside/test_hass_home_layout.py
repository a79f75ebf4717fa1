"""The layout of the home inside Home Assistant."""

from unittest.mock import patch

import pytest
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.config_entries import ConfigSubentry
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.hass_home import HassHome
from sash.ports.home import ANY_SERVICE, Connected, LayoutChanged
from tests.ha.inside.furnished_house import HIDDEN
from tests.home.event_watcher import EventWatcher


async def test_entities_have_areas_names_aliases_and_labels(house: HomeAssistant, hass_home: HassHome):
    layout = await hass_home.get_layout()
    entities = {entity.id: entity for entity in layout.entities}
    areas = {area.id: area for area in layout.areas}
    kitchen = entities["light.kitchen_lights"]
    assert (kitchen.name, kitchen.aliases, kitchen.platform) == (
        "Kitchen Lights",
        ("Cooking lights",),
        "demo",
    )
    assert (areas[kitchen.area_id].name, areas[kitchen.area_id].aliases) == ("Kitchen", ("Galley",))
    assert [(floor.name, floor.aliases) for floor in layout.floors] == [("Ground floor", ("Downstairs",))]
    assert areas[kitchen.area_id].floor_id == layout.floors[0].id
    labels = {
        name: [layout.labels[label] for label in entities[f"light.{name}"].labels]
        for name in ("bed_light", "kitchen_lights", "ceiling_lights")
    }
    # A label of an area or of a device belongs to its entities.
    assert labels == {"bed_light": ["Cosy"], "kitchen_lights": ["Food"], "ceiling_lights": ["Bulbs", "Food"]}
    for entity_id in ("light.bed_light", "automation.bed_light_follows_ac"):
        assert areas[entities[entity_id].area_id].name == "Bedroom"
    devices = {device.id: device for device in layout.devices}
    assert (devices[kitchen.device_id].name, devices[kitchen.device_id].area_id) == (
        "Kitchen Lights",
        kitchen.area_id,
    )
    assert (layout.name, layout.language, layout.time_zone) == ("Test Home", "en", "US/Pacific")


async def test_every_entity_with_a_state_is_in_the_layout(house: HomeAssistant, hass_home: HassHome):
    house.states.async_set("sensor.no_registry", "1")
    layout = await hass_home.get_layout()
    named = {entity.id: entity.name for entity in layout.entities}
    assert set(house.states.async_entity_ids()) <= set(named)
    assert named["sensor.no_registry"] == "No Registry"
    assert all(named.values())


async def test_an_entity_without_a_state_has_the_name_that_home_assistant_would_show(
    hass: HomeAssistant, hass_home: HassHome
):
    entry = MockConfigEntry(domain="plugs")
    entry.add_to_hass(hass)
    devices, entities = dr.async_get(hass), er.async_get(hass)
    plug = devices.async_get_or_create(
        config_entry_id=entry.entry_id, identifiers={("plugs", "1")}, name="Plug", manufacturer="Acme"
    )
    power = entities.async_get_or_create(
        "sensor", "plugs", "power", config_entry=entry, device_id=plug.id, original_name="Power"
    )
    gone = entities.async_get_or_create(
        "sensor",
        "plugs",
        "gone",
        config_entry=entry,
        device_id=plug.id,
        disabled_by=er.RegistryEntryDisabler.USER,
    )
    mine = entities.async_get_or_create("sensor", "plugs", "mine", config_entry=entry, original_name="Theirs")
    entities.async_update_entity(mine.entity_id, name="Mine")
    layout = await hass_home.get_layout()
    named = {entity.id: entity.name for entity in layout.entities}
    assert named[power.entity_id] == "Plug Power"
    assert named[mine.entity_id] == "Mine"
    assert gone.entity_id not in named
    assert [(device.name, device.manufacturer) for device in layout.devices] == [("Plug", "Acme")]


async def test_a_part_of_a_device_has_the_area_of_the_device(hass: HomeAssistant, hass_home: HassHome):
    entry = MockConfigEntry(
        domain="plugs",
        subentries_data=[
            ConfigSubentry(data={}, subentry_type="strip", title="Strip", unique_id="1").as_dict()
        ],
    )
    entry.add_to_hass(hass)
    devices = dr.async_get(hass)
    strip = devices.async_get_or_create(
        config_entry_id=entry.entry_id, identifiers={("plugs", "strip")}, name="Strip"
    )
    socket = devices.async_get_or_create_child(
        config_entry_id=entry.entry_id,
        identifiers={("plugs", "socket")},
        name="Socket",
        parent_device_id=strip.id,
    )
    devices.async_update_device(strip.id, area_id="attic")
    switch = er.async_get(hass).async_get_or_create(
        "switch", "plugs", "socket", config_entry=entry, device_id=socket.id
    )
    layout = await hass_home.get_layout()
    parts = {device.id: device for device in layout.devices}
    assert (parts[socket.id].via_id, parts[socket.id].area_id) == (strip.id, "attic")
    assert {entity.id: entity.area_id for entity in layout.entities}[switch.entity_id] == "attic"


async def test_home_assistant_decides_which_entities_are_exposed(house: HomeAssistant, hass_home: HassHome):
    async def list_exposed():
        return {entity.id for entity in (await hass_home.get_layout()).entities if entity.exposed}

    exposed = await list_exposed()
    assert {"light.kitchen_lights", "sensor.outside_temperature", "switch.ac"} <= exposed
    assert {HIDDEN, "lock.front_door", "automation.dark_kitchen"}.isdisjoint(exposed)
    async_expose_entity(house, "conversation", "lock.front_door", True)
    async_expose_entity(house, "conversation", "switch.ac", False)
    house.states.async_set("light.no_registry", "on")
    assert await list_exposed() == exposed - {"switch.ac"} | {"lock.front_door", "light.no_registry"}


async def test_only_the_first_reading_changes_the_exposure(hass: HomeAssistant, hass_home: HassHome):
    """Home Assistant stores its decision about an entity, which is an event. Reading again must end this."""
    er.async_get(hass).async_get_or_create("light", "test", "1")
    hass.states.async_set("light.no_registry", "on")
    watcher = EventWatcher(hass_home)
    await hass_home.get_layout()
    assert watcher.events == [Connected(), LayoutChanged()]
    await hass_home.get_layout()
    assert watcher.events == [Connected(), LayoutChanged()]


async def test_automations_scripts_scenes_groups_and_templates_use_entities(
    house: HomeAssistant, hass_home: HassHome
):
    found = {(d.kind, d.name): (d.uses, d.services) for d in (await hass_home.get_layout()).dependents}
    kitchen = {"light.kitchen_lights", "light.ceiling_lights"}
    assert found == {
        ("automation", "Bed light follows AC"): ({"switch.ac", "light.bed_light"}, {"light.turn_on"}),
        ("automation", "Dark kitchen"): ({"sensor.outside_temperature", *kitchen}, {"light.turn_off"}),
        ("script", "Good night"): ({"lock.front_door", "scene.dinner"}, {"lock.lock", "scene.turn_on"}),
        ("script", "wait"): ({"light.kitchen_lights"}, {"light.turn_off"}),
        ("scene", "Dinner"): (kitchen, set()),
        ("group", "Downstairs"): (kitchen, set()),
        ("template", "Outside twice"): ({"sensor.outside_temperature"}, set()),
        ("template", "Air"): ({"sensor.carbon_dioxide", "sensor.carbon_monoxide"}, set()),
    }


async def test_a_helper_made_in_the_user_interface_is_a_template(house: HomeAssistant, hass_home: HassHome):
    entry = MockConfigEntry(
        domain="template",
        version=2,
        options={
            "name": "Is warm",
            "state": "{{ states('sensor.outside_humidity') | float(0) > 20 }}",
            "template_type": "binary_sensor",
        },
    )
    entry.add_to_hass(house)
    assert await house.config_entries.async_setup(entry.entry_id)
    await house.async_block_till_done()
    found = {d.entity_id: d for d in (await hass_home.get_layout()).dependents}
    assert found["binary_sensor.is_warm"].kind == "template"
    assert found["binary_sensor.is_warm"].uses == {"sensor.outside_humidity"}


async def test_a_script_is_found_by_its_service_after_its_entity_is_renamed(
    house: HomeAssistant, hass_home: HassHome
):
    er.async_get(house).async_update_entity("script.good_night", new_entity_id="script.sleep")
    config = {"alias": "Bed", "triggers": [], "actions": [{"action": "script.good_night"}]}
    with patch("homeassistant.config.async_hass_config_yaml", return_value={"automation": [config]}):
        await house.services.async_call("automation", "reload", blocking=True)
    found = {d.entity_id: d for d in (await hass_home.get_layout()).dependents}
    assert found["automation.bed"].uses == {"script.sleep"}
    assert found["script.sleep"].services == {"lock.lock", "scene.turn_on"}


BLUEPRINT = """
blueprint:
  name: Follow
  domain: script
  input:
    the_light: {}
    the_service: {}
sequence:
  - action: !input the_service
    target: {entity_id: !input the_light}
"""


@pytest.mark.parametrize(
    ("path", "uses", "services"),
    [("follow.yaml", {"light.bed_light"}, {"light.toggle"}), ("missing.yaml", set(), {ANY_SERVICE})],
)
async def test_the_blueprint_of_a_script_is_filled_in(
    hass: HomeAssistant, hass_home: HassHome, tmp_path, path, uses, services
):
    folder = tmp_path / "blueprints" / "script"
    folder.mkdir(parents=True)
    (folder / "follow.yaml").write_text(BLUEPRINT)
    inputs = {"the_light": "light.bed_light", "the_service": "light.toggle"}
    config = {"script": {"follow": {"use_blueprint": {"path": path, "input": inputs}}}}
    assert await async_setup_component(hass, "script", config)
    [dependent] = (await hass_home.get_layout()).dependents
    assert (dependent.entity_id, dependent.services) == ("script.follow", services)
    assert uses <= dependent.uses
