"""The demo home: a simulated family home that needs no Home Assistant."""

import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sash.demo.demo_history import PAST_SPAN, DemoHistory
from sash.demo.home_recorder import DerivedState, RecordedPast
from sash.demo.simulated_home import SimulatedCall, SimulatedHome
from sash.ports.home import NO_STATE, Area, Dependent, Device, Entity, Floor, Layout, State
from sash.values.clock import Clock, SystemClock

_DATA = Path(__file__).parents[1] / "data" / "demo_home.toml"
_BRIDGE = "zigbee_bridge"
_AUTOMATIONS = {
    "automation.evening_lights": "light.garden_path",
    "automation.hallway_night_light": "light.hallway",
}


def demo_home(clock: Clock | None = None, zone: tzinfo = UTC) -> SimulatedHome:
    """Return a new demo home that starts now. `zone` is its time zone."""
    clock = clock or SystemClock()
    data = tomllib.loads(_DATA.read_text("utf-8"))
    layout = _read_layout(data, zone.key if isinstance(zone, ZoneInfo) else None)
    now = clock.now()
    states = [_read_state(entity_id, entity, now) for entity_id, entity in data["entities"].items()]
    first_states = {state.entity_id: state.state for state in states}
    history = DemoHistory(now, zone, first_states, _list_behind_bridge(layout))
    return SimulatedHome(
        layout,
        states,
        past=RecordedPast(history.list_points, history.read_logbook, history.read_log),
        derived=_build_derived(layout, history, clock),
        actions={
            entry["id"]: [_read_call(action) for action in entry.get("actions", ())]
            for entry in data["dependents"]
        },
        items=data["items"],
        clock=clock,
        name="the demo house",
    )


def _read_layout(data: dict[str, Any], time_zone: str | None) -> Layout:
    devices = tuple(
        Device(key, entry["name"], entry["area"], entry["manufacturer"], entry["model"], entry.get("via"))
        for key, entry in data["devices"].items()
    )
    areas = tuple(
        Area(key, entry["name"], entry["floor"], _read_texts(entry, "aliases"))
        for key, entry in data["areas"].items()
    )
    floors = tuple(
        Floor(key, entry["name"], _read_texts(entry, "aliases")) for key, entry in data["floors"].items()
    )
    entities = {key: _read_entity(key, entry, data["devices"]) for key, entry in data["entities"].items()}
    dependents = tuple(
        Dependent(
            entry["id"],
            entities[entry["id"]].name,
            entry["kind"],
            frozenset(entry["uses"]),
            frozenset(action["service"] for action in entry.get("actions", ())),
        )
        for entry in data["dependents"]
    )
    return Layout(
        data["name"],
        tuple(entities.values()),
        devices,
        areas,
        floors,
        data["labels"],
        dependents,
        data["language"],
        time_zone,
    )


def _read_entity(entity_id: str, entry: dict[str, Any], devices: dict[str, Any]) -> Entity:
    device = entry.get("device")
    return Entity(
        entity_id,
        entry["name"],
        devices[device]["area"] if device else entry.get("area"),
        device,
        _read_texts(entry, "aliases"),
        _read_texts(entry, "labels"),
        entry.get("exposed", True),
        entry["platform"],
    )


def _read_texts(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(entry.get(key, ()))


def _read_state(entity_id: str, entry: dict[str, Any], now: datetime) -> State:
    attributes = {"friendly_name": entry["name"], **entry["attributes"]}
    if entity_id.startswith(("automation.", "script.")):
        attributes["last_triggered"] = None
    return State(entity_id, entry["state"], attributes, now - PAST_SPAN, now - PAST_SPAN)


def _read_call(entry: dict[str, Any]) -> SimulatedCall:
    return SimulatedCall(entry["service"], entry.get("data", {}), tuple(entry.get("entities", ())))


def _list_behind_bridge(layout: Layout) -> list[str]:
    devices = {device.id for device in layout.devices if device.via_id == _BRIDGE}
    return [entity.id for entity in layout.entities if entity.device_id in devices]


def _build_derived(layout: Layout, history: DemoHistory, clock: Clock) -> list[DerivedState]:
    """Return the computed states: of the group, the template, the thermostat and the weather."""

    def last_trigger_of(automation: str) -> Callable[[list[str], Any], Any]:
        def find_latest(_: list[str], present: str | None) -> str | None:
            now = clock.now()
            times = history.list_triggers(automation, now - timedelta(days=2), now)
            return max([present or "", *(at.isoformat() for at in times)]) or None

        return find_latest

    uses = {entry.entity_id: tuple(sorted(entry.uses)) for entry in layout.dependents}
    outdoor = ("sensor.outdoor_temperature",)
    return [
        DerivedState("light.outdoor", uses["light.outdoor"], _compute_any_on),
        DerivedState(
            "sensor.average_indoor_temperature", uses["sensor.average_indoor_temperature"], _compute_average
        ),
        DerivedState(
            "climate.living_room", ("sensor.living_room_temperature",), _read_number, "current_temperature"
        ),
        DerivedState("weather.home", outdoor, _read_number, "temperature"),
        *(
            DerivedState(key, (used,), last_trigger_of(key), "last_triggered")
            for key, used in _AUTOMATIONS.items()
        ),
    ]


def _compute_any_on(states: list[str], _: Any) -> str:
    known = [state for state in states if state not in NO_STATE]
    return ("on" if "on" in known else "off") if known else "unavailable"


def _compute_average(states: list[str], _: Any) -> str:
    known = [float(state) for state in states if state not in NO_STATE]
    return f"{sum(known) / len(known):.1f}" if known else "unavailable"


def _read_number(states: list[str], _: Any) -> float | None:
    return None if states[0] in NO_STATE else float(states[0])
