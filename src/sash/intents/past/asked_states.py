"""The states that a question asks for: "open" of a door sensor is the state "on"."""

from collections.abc import Mapping
from dataclasses import dataclass

from sash.ports.home import NO_STATE

_OFF = frozenset({"off", "standby"})
_OPENINGS = frozenset({"door", "garage_door", "opening", "window"})
_MOTION = frozenset({"motion", "moving", "occupancy", "presence", "sound", "vibration"})
_SWITCHED = frozenset(
    {"light", "switch", "fan", "input_boolean", "humidifier", "siren", "automation", "remote", "script"}
)
_ARMED = frozenset({"armed_home", "armed_away", "armed_night", "armed_vacation", "armed_custom_bypass"})


@dataclass(frozen=True, slots=True)
class AskedState:
    """The states that mean the one that is asked for. `name` is the state to say, and `act` what leads to it.

    With `is_excluding` all other states are meant, apart from "unavailable" and "unknown".
    """

    act: str
    name: str
    states: frozenset[str]
    is_excluding: bool = False

    def matches(self, state: str) -> bool:
        if self.is_excluding:
            return state not in self.states and state not in NO_STATE
        return state in self.states


def invert(asked: AskedState) -> AskedState:
    """Return the opposite of "on" of a sensor: it notices nothing."""
    return AskedState("other", "off", asked.states, is_excluding=not asked.is_excluding)


def ask_for(state: str) -> AskedState:
    """Return one state that is asked for by its name."""
    return AskedState("other", state, frozenset({state}))


def _ask(act: str, name: str, *states: str) -> AskedState:
    return AskedState(act, name, frozenset(states or (name,)))


def _ask_not(act: str, name: str, states: frozenset[str]) -> AskedState:
    return AskedState(act, name, states, is_excluding=True)


_ON, _IS_OFF = _ask("on", "on"), _ask("off", "off")
_SWITCH = {
    **dict.fromkeys(("on", "start", "run", "used", "happen"), _ON),
    **dict.fromkeys(("off", "stop", "done"), _IS_OFF),
}
_PLAYER_ON = _ask_not("on", "on", _OFF)
_PLAYER_OFF = AskedState("off", "off", _OFF)
_CLEANING = _ask("clean", "cleaning")
_NOT_CLEANING = _ask_not("dock", "docked", frozenset({"cleaning", "error"}))
_MOWING = _ask("clean", "mowing")
_ON_CLIMATE = _ask_not("on", "on", frozenset({"off"}))
_OPEN, _CLOSED = _ask("open", "open", "open", "opening"), _ask("close", "closed", "closed", "closing")
_HOME, _AWAY = _ask("home", "home"), _ask_not("away", "not_home", frozenset({"home"}))

_BY_DOMAIN: Mapping[str, Mapping[str, AskedState]] = {
    "alarm_control_panel": {
        "arm": _ask_not("arm", "armed_away", frozenset({"disarmed", "triggered", "arming", "pending"})),
        "on": AskedState("arm", "armed_away", _ARMED),
        "arm_home": _ask("arm", "armed_home"),
        "arm_away": _ask("arm", "armed_away"),
        "arm_night": _ask("arm", "armed_night"),
        "disarm": _ask("disarm", "disarmed"),
        "off": _ask("disarm", "disarmed"),
        "trigger": _ask("trigger", "triggered"),
        "press": _ask("trigger", "triggered"),
    },
    "climate": {
        "on": _ON_CLIMATE,
        "start": _ON_CLIMATE,
        "used": _ON_CLIMATE,
        "off": _IS_OFF,
        "stop": _IS_OFF,
        "heat": _ask("on", "heat", "heat", "heat_cool", "auto"),
        "cool": _ask("on", "cool", "cool", "heat_cool"),
    },
    "cover": {"open": _OPEN, "up": _OPEN, "close": _CLOSED, "down": _CLOSED},
    "valve": {"open": _OPEN, "on": _OPEN, "close": _CLOSED, "off": _CLOSED},
    "lock": {"lock": _ask("lock", "locked"), "unlock": _ask("unlock", "unlocked", "unlocked", "open")},
    "media_player": {
        "on": _PLAYER_ON,
        "used": _PLAYER_ON,
        "start": _PLAYER_ON,
        "run": _PLAYER_ON,
        "off": _PLAYER_OFF,
        "stop": _ask_not("off", "off", frozenset({"playing", "buffering"})),
        "play": _ask("play", "playing", "playing", "buffering"),
        "pause": _ask("pause", "paused"),
    },
    "person": {"home": _HOME, "away": _AWAY},
    "device_tracker": {"home": _HOME, "away": _AWAY},
    "vacuum": {
        **dict.fromkeys(("start", "clean", "on", "run", "used", "away"), _CLEANING),
        **dict.fromkeys(("stop", "off", "done", "dock", "home"), _NOT_CLEANING),
        "pause": _ask("pause", "paused"),
    },
    "lawn_mower": {
        **dict.fromkeys(("start", "clean", "on", "run", "used", "away"), _MOWING),
        **dict.fromkeys(("stop", "off", "done", "dock", "home"), _ask("dock", "docked")),
    },
    "timer": {"start": _ask("on", "active"), "on": _ask("on", "active"), "done": _ask("off", "idle")},
    "water_heater": {"on": _ON_CLIMATE, "heat": _ON_CLIMATE, "off": _IS_OFF},
    "weather": {
        "rain": _ask("rain", "rainy", "rainy", "pouring", "lightning-rainy", "snowy-rainy"),
        "snow": _ask("snow", "snowy", "snowy", "snowy-rainy"),
    },
}
_OPENED = {"open": _ask("open", "on"), "close": _ask("close", "off")}
_MOVED = {
    "moving": _ask("moving", "on"),
    "on": _ask("moving", "on"),
    "vacant": _ask("other", "off"),
}
_BY_CLASS: Mapping[str, Mapping[str, AskedState]] = {
    **dict.fromkeys(_OPENINGS, _OPENED),
    **dict.fromkeys(_MOTION, _MOVED),
    "lock": {"unlock": _ask("unlock", "on"), "lock": _ask("lock", "off")},
    "moisture": {"leak": _ask("leak", "on"), "dry": _ask("other", "off")},
    "running": {**_SWITCH, "used": _ON},
    "power": _SWITCH,
    "smoke": {"on": _ask("on", "on"), "off": _ask("on", "on")},
    "connectivity": {
        **dict.fromkeys(("on", "up", "home", "available"), _ask("other", "on", "on")),
        **dict.fromkeys(("off", "down", "away", "broken"), _ask("other", "off", "off")),
    },
}
BROKEN = _ask("broken", "unavailable")
_AVAILABLE = AskedState("other", "on", frozenset(), is_excluding=True)


def find_asked_state(do: str, domain: str, device_class: str) -> AskedState | None:
    """Return the states of a kind of entity that an act leads to; None if it has no such state."""
    if domain == "binary_sensor":
        found = _BY_CLASS.get(device_class, _SWITCH if not device_class else {}).get(do)
    elif domain in _SWITCHED:
        found = _SWITCH.get(do)
    else:
        found = _BY_DOMAIN.get(domain, {}).get(do)
    return found or {"broken": BROKEN, "available": _AVAILABLE}.get(do)
