"""What a service does to an entity, as far as that can be seen afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sash.ports.home import NO_STATE, State

ON_OFF = frozenset(
    {"light", "switch", "fan", "input_boolean", "humidifier", "siren", "remote", "automation", "group"}
)
# While it moves, it is on its way to this.
SETTLED = {"opening": "open", "closing": "closed"}
MOVING = frozenset({*SETTLED, "locking", "unlocking", "arming", "pending", "returning", "buffering"})
# How far a number may be off and still be meant: things round what they are told.
NEAR = {
    "brightness": 4.0,
    "color_temp_kelvin": 100.0,
    "rgb_color": 10.0,
    "hs_color": 3.0,
    "current_position": 3.0,
    "percentage": 10.0,
    "temperature": 0.5,
    "target_temp_low": 0.5,
    "target_temp_high": 0.5,
    "volume_level": 0.02,
    "humidity": 1.0,
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What is to be so afterwards: one of the states (or none of some), and these attributes.

    `moving` are states in which it is being done, and `sure` is whether that is all that was asked for.
    """

    states: frozenset[str] = frozenset()
    not_states: frozenset[str] = frozenset()
    attributes: tuple[tuple[str, Any], ...] = ()
    moving: frozenset[str] = frozenset()
    sure: bool = True

    def seen(self, state: State | None, before: State | None = None) -> bool | None:
        """Whether it is so; None if that cannot be said, or not yet.

        A number that is only near to what was wanted, and was so before, may be as it was.
        """
        if state is None or state.state in NO_STATE or state.state in self.not_states:
            return False
        if state.state in self.moving:
            return True
        if state.state in MOVING and state.state not in self.states:
            return None
        if self.states and state.state not in self.states:
            return False
        sure = self.sure
        for name, wanted in self.attributes:
            value = state.attributes.get(name)
            if same(value, wanted, name):
                continue
            if not near(value, wanted, name):
                return False
            sure = sure and before is not None and not same(value, before.attributes.get(name), name)
        return True if sure else None


def effect(service: str, data: dict[str, Any], before: State) -> Effect | None:
    """Return what a service does to an entity that was so; None if nobody can see it."""
    domain, _, verb = service.partition(".")
    if domain == "homeassistant":
        domain = before.domain
    found = _EFFECTS.get((domain, verb))
    if found is None and domain in ON_OFF:
        found = _SWITCHES.get(verb)
    wanted = None if found is None else found(data, before)
    return replace(wanted, sure=False) if wanted and "transition" in data else wanted


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
    return Effect(not_states=frozenset({"off", "standby"}))


def _toggled(data: dict[str, Any], before: State) -> Effect:
    return Effect(frozenset({"off" if before.state == "on" else "on"}))


def _light_on(data: dict[str, Any], before: State) -> Effect | None:
    """Of what a light is told, those things are looked for that it tells in the same way."""
    told = {name: value for name, value in data.items() if name != "transition"}
    if "brightness_step" in told or "brightness_step_pct" in told:
        return None
    wanted = {
        name: told.pop(name)
        for name in ("brightness", "color_temp_kelvin", "rgb_color", "hs_color")
        if name in told
    }
    if "brightness_pct" in told:
        wanted["brightness"] = told.pop("brightness_pct") * 255 / 100
    if wanted.get("brightness") == 0:
        return Effect(frozenset({"off"}))
    return Effect(frozenset({"on"}), attributes=tuple(wanted.items()), sure=not told)


def _opened(data: dict[str, Any], before: State) -> Effect:
    """What moves is being done; what has a position has to have arrived."""
    attributes = (("current_position", 100),) if "current_position" in before.attributes else ()
    return Effect(frozenset({"open"}), attributes=attributes, moving=frozenset({"opening"}))


def _closed(data: dict[str, Any], before: State) -> Effect:
    return Effect(frozenset({"closed"}), moving=frozenset({"closing"}))


def _position(data: dict[str, Any], before: State) -> Effect | None:
    wanted = data.get("position")
    return None if wanted is None else Effect(attributes=(("current_position", wanted),))


def _attribute(name: str, argument: str) -> Make:
    def make(data: dict[str, Any], before: State) -> Effect | None:
        wanted = data.get(argument)
        return None if wanted is None else Effect(attributes=((name, wanted),))

    return make


def _state_is(argument: str) -> Make:
    def make(data: dict[str, Any], before: State) -> Effect | None:
        wanted = data.get(argument)
        return None if wanted is None else Effect(_as_states(wanted))

    return make


def _temperature(data: dict[str, Any], before: State) -> Effect | None:
    names = ("temperature", "target_temp_low", "target_temp_high")
    wanted = tuple((name, data[name]) for name in names if data.get(name) is not None)
    mode = data.get("hvac_mode")
    states = frozenset({str(mode)}) if mode is not None else frozenset()
    return Effect(states, attributes=wanted) if wanted or states else None


_SWITCHES: dict[str, Make] = {"turn_on": _states("on"), "turn_off": _states("off"), "toggle": _toggled}

_EFFECTS: dict[tuple[str, str], Make] = {
    ("light", "turn_on"): _light_on,
    ("climate", "turn_on"): _turned_on,
    ("climate", "turn_off"): _states("off"),
    ("climate", "set_temperature"): _temperature,
    ("climate", "set_hvac_mode"): _state_is("hvac_mode"),
    ("climate", "set_fan_mode"): _attribute("fan_mode", "fan_mode"),
    ("climate", "set_preset_mode"): _attribute("preset_mode", "preset_mode"),
    ("climate", "set_humidity"): _attribute("humidity", "humidity"),
    ("humidifier", "set_humidity"): _attribute("humidity", "humidity"),
    ("water_heater", "set_temperature"): _attribute("temperature", "temperature"),
    ("cover", "open_cover"): _opened,
    ("cover", "close_cover"): _closed,
    ("cover", "set_cover_position"): _position,
    ("valve", "open_valve"): _opened,
    ("valve", "close_valve"): _closed,
    ("valve", "set_valve_position"): _position,
    ("lock", "lock"): _states("locked"),
    ("lock", "unlock"): _states("unlocked"),
    ("fan", "set_percentage"): _attribute("percentage", "percentage"),
    ("fan", "set_preset_mode"): _attribute("preset_mode", "preset_mode"),
    ("fan", "oscillate"): _attribute("oscillating", "oscillating"),
    ("media_player", "turn_on"): _turned_on,
    ("media_player", "turn_off"): _states("off", "standby"),
    ("media_player", "media_play"): _states("playing", "buffering"),
    ("media_player", "media_pause"): _states("paused", "idle"),
    ("media_player", "media_stop"): _states("idle", "off", "standby"),
    ("media_player", "volume_set"): _attribute("volume_level", "volume_level"),
    ("media_player", "volume_mute"): _attribute("is_volume_muted", "is_volume_muted"),
    ("media_player", "select_source"): _attribute("source", "source"),
    ("vacuum", "start"): _states("cleaning"),
    ("vacuum", "return_to_base"): _states("returning", "docked"),
    ("vacuum", "pause"): _states("paused", "idle"),
    ("lawn_mower", "start_mowing"): _states("mowing"),
    ("lawn_mower", "dock"): _states("returning", "docked"),
    ("alarm_control_panel", "alarm_arm_home"): _states("armed_home"),
    ("alarm_control_panel", "alarm_arm_away"): _states("armed_away"),
    ("alarm_control_panel", "alarm_arm_night"): _states("armed_night"),
    ("alarm_control_panel", "alarm_disarm"): _states("disarmed"),
    ("input_number", "set_value"): _state_is("value"),
    ("number", "set_value"): _state_is("value"),
    ("input_select", "select_option"): _state_is("option"),
    ("select", "select_option"): _state_is("option"),
    ("input_text", "set_value"): _state_is("value"),
    ("text", "set_value"): _state_is("value"),
}


def same(value: Any, wanted: Any, name: str) -> bool:
    """Whether an attribute is what it should be, but for rounding."""
    return near(value, wanted, name, 0.25)


def near(value: Any, wanted: Any, name: str, part: float = 1.0) -> bool:
    """Whether an attribute is what it should be, as nearly as such things are told."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        return len(value) == len(wanted) and all(map(lambda v, w: near(v, w, name, part), value, wanted))
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        return abs(value - wanted) <= NEAR.get(name, 0.0) * part
    return bool(value == wanted)


def _as_states(value: Any) -> frozenset[str]:
    """Return how a value may be written as a state."""
    return frozenset({f"{value:g}", str(float(value))} if isinstance(value, int | float) else {str(value)})
