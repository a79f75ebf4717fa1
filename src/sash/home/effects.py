"""What a service does to an entity, as far as that can be seen afterwards."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sash.home.base import NO_STATE, State

ON_OFF = frozenset(
    {"light", "switch", "fan", "input_boolean", "humidifier", "siren", "remote", "automation", "group"}
)
# While it moves, it is on its way to this.
SETTLED = {
    "opening": "open",
    "closing": "closed",
    "locking": "locked",
    "unlocking": "unlocked",
    "arming": "armed",
    "buffering": "playing",
    "returning": "docked",
}
_PLAYS = frozenset({"playing", "buffering"})


class Effect(NamedTuple):
    """What is to be so afterwards: one of the states (or none of some), and attributes within a tolerance."""

    states: frozenset[str] = frozenset()
    not_states: frozenset[str] = frozenset()
    attributes: tuple[tuple[str, Any, float], ...] = ()

    def holds(self, state: State | None) -> bool:
        """Whether it is so."""
        if state is None or state.state in NO_STATE or state.state in self.not_states:
            return False
        if self.states and state.state not in self.states and settled(state.state) not in self.states:
            return False
        return all(
            near(state.attributes.get(name), wanted, within) for name, wanted, within in self.attributes
        )


def effect(service: str, data: dict[str, Any], before: State) -> Effect | None:
    """Return what a service does to an entity that was so; None if nobody can see it."""
    domain, _, verb = service.partition(".")
    if domain == "homeassistant":
        domain, verb = before.domain, _GENERIC.get((before.domain, verb), verb)
    found = _EFFECTS.get((domain, verb))
    if found is None and domain in ON_OFF:
        found = _SWITCHES.get(verb)
    return None if found is None else found(data, before)


def repeatable(service: str) -> bool:
    """Whether a service that has an effect has the same one when it is called again."""
    return service.rpartition(".")[2] != "toggle"


def settled(state: str) -> str:
    """Return what a state that is still changing will be."""
    return SETTLED.get(state, state)


Make = Callable[[dict[str, Any], State], Effect | None]


def _states(*states: str) -> Make:
    return lambda data, before: Effect(frozenset(states))


def _turned_on(data: dict[str, Any], before: State) -> Effect:
    return Effect(not_states=frozenset({"off"}))


def _toggled(data: dict[str, Any], before: State) -> Effect:
    return Effect(frozenset({"off" if before.state == "on" else "on"}))


def _light_on(data: dict[str, Any], before: State) -> Effect:
    """A light may round what it is told, and one that cannot be dimmed says nothing of it."""
    wanted: list[tuple[str, Any, float]] = []
    if (pct := data.get("brightness_pct")) is not None:
        wanted.append(("brightness", pct * 255 / 100, 4))
    if (brightness := data.get("brightness")) is not None:
        wanted.append(("brightness", brightness, 3))
    if (kelvin := data.get("color_temp_kelvin")) is not None:
        wanted.append(("color_temp_kelvin", kelvin, 100))
    if data.get("rgb_color") is not None:
        wanted.append(("rgb_color", data["rgb_color"], 10))
    if any(value == 0 for name, value, _ in wanted if name == "brightness"):
        return Effect(frozenset({"off"}))
    return Effect(frozenset({"on"}), attributes=tuple(wanted))


def _position(data: dict[str, Any], before: State) -> Effect | None:
    wanted = data.get("position")
    if wanted is None:
        return None
    return Effect(attributes=(("current_position", wanted, 3),))


def _attribute(name: str, argument: str, within: float = 0.0, states: frozenset[str] = frozenset()) -> Make:
    def make(data: dict[str, Any], before: State) -> Effect | None:
        wanted = data.get(argument)
        return None if wanted is None else Effect(states, attributes=((name, wanted, within),))

    return make


def _state_is(argument: str) -> Make:
    def make(data: dict[str, Any], before: State) -> Effect | None:
        wanted = data.get(argument)
        return None if wanted is None else Effect(_as_states(wanted))

    return make


def _temperature(data: dict[str, Any], before: State) -> Effect | None:
    names = ("temperature", "target_temp_low", "target_temp_high")
    wanted = tuple((name, data[name], 0.5) for name in names if data.get(name) is not None)
    mode = data.get("hvac_mode")
    states = frozenset({str(mode)}) if mode is not None else frozenset()
    return Effect(states, attributes=wanted) if wanted or states else None


_SWITCHES: dict[str, Make] = {"turn_on": _states("on"), "turn_off": _states("off"), "toggle": _toggled}

# What the services for everything mean to those that are not switched on and off.
_GENERIC = {
    ("cover", "turn_on"): "open_cover",
    ("cover", "turn_off"): "close_cover",
    ("valve", "turn_on"): "open_valve",
    ("valve", "turn_off"): "close_valve",
    ("lock", "turn_on"): "lock",
    ("lock", "turn_off"): "unlock",
}

_EFFECTS: dict[tuple[str, str], Make] = {
    ("light", "turn_on"): _light_on,
    ("climate", "turn_on"): _turned_on,
    ("climate", "turn_off"): _states("off"),
    ("climate", "set_temperature"): _temperature,
    ("climate", "set_hvac_mode"): _state_is("hvac_mode"),
    ("climate", "set_fan_mode"): _attribute("fan_mode", "fan_mode"),
    ("climate", "set_preset_mode"): _attribute("preset_mode", "preset_mode"),
    ("climate", "set_humidity"): _attribute("humidity", "humidity", 1),
    ("humidifier", "set_humidity"): _attribute("humidity", "humidity", 1),
    ("water_heater", "set_temperature"): _attribute("temperature", "temperature", 0.5),
    ("cover", "open_cover"): _states("open"),
    ("cover", "close_cover"): _states("closed"),
    ("cover", "set_cover_position"): _position,
    ("valve", "open_valve"): _states("open"),
    ("valve", "close_valve"): _states("closed"),
    ("valve", "set_valve_position"): _position,
    ("lock", "lock"): _states("locked"),
    ("lock", "unlock"): _states("unlocked"),
    ("lock", "open"): _states("open", "unlocked"),
    ("fan", "set_percentage"): _attribute("percentage", "percentage", 10),
    ("fan", "set_preset_mode"): _attribute("preset_mode", "preset_mode"),
    ("fan", "oscillate"): _attribute("oscillating", "oscillating"),
    ("media_player", "turn_on"): _turned_on,
    ("media_player", "turn_off"): _states("off", "standby"),
    ("media_player", "media_play"): lambda data, before: Effect(_PLAYS),
    ("media_player", "media_pause"): _states("paused", "idle"),
    ("media_player", "media_stop"): _states("idle", "off", "standby", "paused"),
    ("media_player", "volume_set"): _attribute("volume_level", "volume_level", 0.02),
    ("media_player", "volume_mute"): _attribute("is_volume_muted", "is_volume_muted"),
    ("media_player", "select_source"): _attribute("source", "source"),
    ("vacuum", "start"): _states("cleaning"),
    ("vacuum", "return_to_base"): _states("returning", "docked"),
    ("vacuum", "pause"): _states("paused", "idle"),
    ("lawn_mower", "start_mowing"): _states("mowing"),
    ("lawn_mower", "dock"): _states("returning", "docked"),
    ("alarm_control_panel", "alarm_arm_home"): _states("armed_home", "armed"),
    ("alarm_control_panel", "alarm_arm_away"): _states("armed_away", "armed"),
    ("alarm_control_panel", "alarm_arm_night"): _states("armed_night", "armed"),
    ("alarm_control_panel", "alarm_disarm"): _states("disarmed"),
    ("input_number", "set_value"): _state_is("value"),
    ("number", "set_value"): _state_is("value"),
    ("input_select", "select_option"): _state_is("option"),
    ("select", "select_option"): _state_is("option"),
    ("input_text", "set_value"): _state_is("value"),
    ("text", "set_value"): _state_is("value"),
}


def near(value: Any, wanted: Any, within: float) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        return len(value) == len(wanted) and all(map(lambda v, w: near(v, w, within), value, wanted))
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        return abs(value - wanted) <= within
    return bool(value == wanted)


def _as_states(value: Any) -> frozenset[str]:
    """Return how a value may be written as a state."""
    return frozenset({f"{value:g}", str(float(value))} if isinstance(value, int | float) else {str(value)})
