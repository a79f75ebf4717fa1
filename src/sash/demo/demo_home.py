"""The demo house: a family's home on any machine, with no Home Assistant."""

import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.resources import files
from typing import Any

from sash.demo.past import Derived
from sash.demo.simulated_home import Action, SimulatedHome
from sash.demo.story import PAST, DemoHistory
from sash.ports.home import NO_STATE, Area, Dependant, Device, Entity, Floor, Layout, State
from sash.values.clock import Clock, SystemClock

_BRIDGE = "zigbee_bridge"
_AUTOMATIONS = {
    "automation.evening_lights": "light.garden_path",
    "automation.hallway_night_light": "light.hallway",
}


def demo_home(clock: Clock | None = None, zone: tzinfo = UTC) -> SimulatedHome:
    """Return the demo house as it is now; `zone` is where its evenings are."""
    clock = clock or SystemClock()
    house = tomllib.loads(files("sash").joinpath("data/demo_house.toml").read_text("utf-8"))
    layout = _layout(house)
    now = clock.now()
    states = [_state(entity_id, entity, now) for entity_id, entity in house["entities"].items()]
    first = {state.entity_id: state.state for state in states}
    history = DemoHistory(now, zone, first, _behind_the_bridge(layout))
    return SimulatedHome(
        layout,
        states,
        history=history.points,
        logbook=history.logbook,
        log=history.log,
        derived=_derived(layout, history, clock),
        actions={one["id"]: [_action(a) for a in one.get("actions", ())] for one in house["dependants"]},
        items=house["items"],
        clock=clock,
        name="the demo house",
    )


def _layout(house: dict[str, Any]) -> Layout:
    devices = tuple(
        Device(key, one["name"], one["area"], one["manufacturer"], one["model"], one.get("via"))
        for key, one in house["devices"].items()
    )
    areas = tuple(
        Area(key, one["name"], one["floor"], _words(one, "aliases")) for key, one in house["areas"].items()
    )
    floors = tuple(Floor(key, one["name"], _words(one, "aliases")) for key, one in house["floors"].items())
    entities = {key: _entity(key, one, house["devices"]) for key, one in house["entities"].items()}
    dependants = tuple(
        Dependant(
            one["id"],
            entities[one["id"]].name,
            one["kind"],
            frozenset(one["uses"]),
            frozenset(action["service"] for action in one.get("actions", ())),
        )
        for one in house["dependants"]
    )
    return Layout(
        house["name"],
        tuple(entities.values()),
        devices,
        areas,
        floors,
        house["labels"],
        dependants,
        house["language"],
    )


def _entity(entity_id: str, one: dict[str, Any], devices: dict[str, Any]) -> Entity:
    device = one.get("device")
    return Entity(
        entity_id,
        one["name"],
        devices[device]["area"] if device else one.get("area"),
        device,
        _words(one, "aliases"),
        _words(one, "labels"),
        one.get("exposed", True),
        one["platform"],
    )


def _words(one: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(one.get(key, ()))


def _state(entity_id: str, one: dict[str, Any], now: datetime) -> State:
    attributes = {"friendly_name": one["name"], **one["attributes"]}
    if entity_id.startswith(("automation.", "script.")):
        attributes["last_triggered"] = None
    return State(entity_id, one["state"], attributes, now - PAST, now - PAST)


def _action(one: dict[str, Any]) -> Action:
    return Action(one["service"], one.get("data", {}), tuple(one.get("entities", ())))


def _behind_the_bridge(layout: Layout) -> list[str]:
    devices = {device.id for device in layout.devices if device.via_id == _BRIDGE}
    return [entity.id for entity in layout.entities if entity.device_id in devices]


def _derived(layout: Layout, history: DemoHistory, clock: Clock) -> list[Derived]:
    """Say what follows from what: the group, the template, what a thermostat and the weather measure."""

    def triggered(automation: str) -> Callable[[list[str], Any], Any]:
        def latest(_: list[str], so_far: str | None) -> str | None:
            now = clock.now()
            times = history.triggers(automation, now - timedelta(days=2), now)
            return max([so_far or "", *(at.isoformat() for at in times)]) or None

        return latest

    uses = {one.entity_id: tuple(sorted(one.uses)) for one in layout.dependants}
    outdoor = ("sensor.outdoor_temperature",)
    return [
        Derived("light.outdoor", uses["light.outdoor"], _any_on),
        Derived("sensor.average_indoor_temperature", uses["sensor.average_indoor_temperature"], _average),
        Derived("climate.living_room", ("sensor.living_room_temperature",), _number, "current_temperature"),
        Derived("weather.home", outdoor, _number, "temperature"),
        *(Derived(key, (used,), triggered(key), "last_triggered") for key, used in _AUTOMATIONS.items()),
    ]


def _any_on(states: list[str], _: Any) -> str:
    known = [state for state in states if state not in NO_STATE]
    return ("on" if "on" in known else "off") if known else "unavailable"


def _average(states: list[str], _: Any) -> str:
    known = [float(state) for state in states if state not in NO_STATE]
    return f"{sum(known) / len(known):.1f}" if known else "unavailable"


def _number(states: list[str], _: Any) -> float | None:
    return None if states[0] in NO_STATE else float(states[0])
