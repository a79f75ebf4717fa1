"""Reads the layout of the home from the registries of Home Assistant.

Home Assistant may change its registries at any time, but only on the event loop. So the event loop takes a
snapshot of them in short slices, and a thread builds the layout from it.
"""

from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers import floor_registry as fr
from homeassistant.helpers import label_registry as lr

from sash.home.home_assistant.exposure import ASSISTANT
from sash.home.home_assistant.home_assistant_json import Json, Registries, read_layout
from sash.ports.home import Layout, State

from .entity_configs import find_configs
from .entity_states import read_layout_state
from .loop_slices import convert_in_slices


async def get_layout(hass: HomeAssistant) -> Layout:
    """Return the layout. No stretch of work on the event loop is long, even in a large home."""
    states = {
        state.entity_id: state
        for state in await convert_in_slices(hass.states.async_all(), read_layout_state)
    }
    entries = await convert_in_slices(
        list(er.async_get(hass).entities.values()), lambda entry: _read_entry(hass, entry, states)
    )
    enabled = {entry["entity_id"] for entry in entries if not entry["disabled_by"]}
    # Home Assistant decides here about an entity that it has never been asked about, and stores the decision.
    exposed = await convert_in_slices(
        enabled | states.keys(),
        lambda entity_id: entity_id if async_should_expose(hass, ASSISTANT, entity_id) else None,
    )
    device_registry = dr.async_get(hass)
    registries = Registries(
        config={
            "location_name": hass.config.location_name,
            "language": hass.config.language,
            "time_zone": hass.config.time_zone,
            "unit_system": {"temperature": hass.config.units.temperature_unit},
        },
        entities=entries,
        devices=[
            *await convert_in_slices(list(device_registry.devices), _read_device),
            *await convert_in_slices(list(device_registry.child_devices), _read_child_device),
        ],
        areas=[
            {
                "area_id": area.id,
                "name": area.name,
                "floor_id": area.floor_id,
                "aliases": list(area.aliases),
                "labels": list(area.labels),
            }
            for area in ar.async_get(hass).async_list_areas()
        ],
        floors=[
            {"floor_id": floor.floor_id, "name": floor.name, "aliases": list(floor.aliases)}
            for floor in fr.async_get(hass).async_list_floors()
        ],
        labels=[
            {"label_id": label.label_id, "name": label.name}
            for label in lr.async_get(hass).async_list_labels()
        ],
        exposed={entity_id for entity_id in exposed if entity_id},
        configs=find_configs(hass),
    )
    return await hass.async_add_executor_job(read_layout, registries, states)


def _read_entry(hass: HomeAssistant, entry: er.RegistryEntry, states: dict[str, State]) -> Json:
    """Convert an entry of the entity registry. It needs a name only if its state has none."""
    state = states.get(entry.entity_id)
    is_named = state is not None and state.attributes.get("friendly_name")
    return {
        "entity_id": entry.entity_id,
        "id": entry.id,
        "unique_id": entry.unique_id,
        "platform": entry.platform,
        "name": None if is_named else er.async_get_legacy_friendly_name(hass, entry),
        "device_id": entry.device_id,
        "area_id": entry.area_id,
        "labels": list(entry.labels),
        "aliases": [alias for alias in entry.aliases if isinstance(alias, str)],
        "disabled_by": entry.disabled_by,
    }


def _read_device(device: dr.DeviceEntry) -> Json:
    return {
        "id": device.id,
        "name": device.name,
        "name_by_user": device.name_by_user,
        "area_id": device.area_id,
        "manufacturer": device.manufacturer,
        "model": device.model,
        "via_device_id": device.via_device_id,
        "labels": list(device.labels),
        "disabled_by": device.disabled_by,
    }


def _read_child_device(device: dr.ChildDeviceEntry) -> Json:
    return {
        "id": device.id,
        "name": device.name,
        "name_by_user": device.name_by_user,
        "area_id": device.area_id,
        "parent_device_id": device.parent_device_id,
        "labels": list(device.labels),
        "disabled_by": device.disabled_by,
    }
