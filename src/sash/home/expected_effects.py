"""The effect that a service should have on an entity, to check after a call whether the call worked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sash.ports.home import NO_STATE, State
from sash.values.colors import find_rgb

ON_OFF_DOMAINS = frozenset(
    {"light", "switch", "fan", "input_boolean", "humidifier", "siren", "remote", "automation", "group"}
)
# The state that follows each state of movement.
FINAL_STATES = {"opening": "open", "closing": "closed"}
TRANSITIONAL_STATES = frozenset(
    {*FINAL_STATES, "locking", "unlocking", "arming", "pending", "returning", "buffering"}
)
# The allowed difference between the requested and the reported value: devices round values.
TOLERANCES = {
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
class ExpectedEffect:
    """The expected state and attributes of an entity after a service call.

    The state must be one of `states` and none of `excluded_states`. A state of `in_progress_states` counts
    as success, because the entity is already moving there. `is_conclusive` is False if the call has
    arguments that the state cannot confirm. `optional_attributes` prove the effect, but need not be reached:
    a device may show a named color in its own way.
    """

    states: frozenset[str] = frozenset()
    excluded_states: frozenset[str] = frozenset()
    attributes: tuple[tuple[str, Any], ...] = ()
    in_progress_states: frozenset[str] = frozenset()
    is_conclusive: bool = True
    optional_attributes: tuple[tuple[str, Any], ...] = ()

    def is_settled(self, state: State | None, before: State | None) -> bool:
        """Return whether waiting for a later state would not tell more.

        An effect that no state can confirm is settled with the first state after the call.
        """
        is_met = self.is_met(state, before)
        if is_met is not None or state is None:
            return is_met is True
        is_certain = self.is_conclusive and not self.optional_attributes
        return state != before and not is_certain and state.state not in TRANSITIONAL_STATES

    @property
    def is_observable(self) -> bool:
        """Whether a state can show the effect at all, at least in part."""
        return self.is_conclusive or bool(self.attributes or self.optional_attributes)

    def is_met(self, state: State | None, before: State | None = None) -> bool | None:
        """Return whether a state shows the effect; None if that cannot be decided, or not yet.

        A number that is only close to the requested one confirms the call only if it differs from `before`.
        """
        if state is None or state.state in NO_STATE or state.state in self.excluded_states:
            return False
        if state.state in self.in_progress_states:
            return True
        if state.state in TRANSITIONAL_STATES and state.state not in self.states:
            return None
        if self.states and state.state not in self.states:
            return False
        is_conclusive = self.is_conclusive
        for name, expected in self.attributes:
            value = state.attributes.get(name)
            if is_same_value(value, expected, name):
                continue
            if not is_close_value(value, expected, name):
                return False
            has_moved = before is not None and not is_same_value(value, before.attributes.get(name), name)
            is_conclusive = is_conclusive and has_moved
        are_all_met = all(
            is_close_value(state.attributes.get(name), expected, name)
            for name, expected in self.optional_attributes
        )
        return True if is_conclusive and are_all_met else None


def find_expected_effect(service: str, data: dict[str, Any], before: State) -> ExpectedEffect | None:
    """Return the expected effect of a service on an entity in the state `before`; None if not observable."""
    domain, _, verb = service.partition(".")
    if domain == "homeassistant":
        domain = before.domain
    build = _BUILDERS.get((domain, verb))
    if build is None and domain in ON_OFF_DOMAINS:
        build = _ON_OFF_BUILDERS.get(verb)
    effect = None if build is None else build(data, before)
    return replace(effect, is_conclusive=False) if effect and "transition" in data else effect


def is_already_so(service: str, data: dict[str, Any], state: State) -> bool:
    """Return True if a service would certainly change nothing in an entity with this state.

    An entity that moves, or that does not report its state, is not certain. Neither is an open entity without
    a position: it may be half open.
    """
    verb, effect = service.rpartition(".")[2], find_expected_effect(service, data, state)
    if effect is None or not is_repeatable(service) or state.attributes.get("assumed_state"):
        return False
    is_half_open = verb in ("open_cover", "open_valve") and "current_position" not in state.attributes
    return not is_half_open and state.state not in TRANSITIONAL_STATES and effect.is_met(state) is True


def is_repeatable(service: str) -> bool:
    """Return False if a second call of the service would undo the first one."""
    return service.rpartition(".")[2] != "toggle"


def get_final_state(state: str) -> str:
    """Return the state that a moving entity will reach: "open" for "opening". Others stay as they are."""
    return FINAL_STATES.get(state, state)


EffectBuilder = Callable[[dict[str, Any], State], ExpectedEffect | None]


def _expect_states(*states: str) -> EffectBuilder:
    return lambda data, before: ExpectedEffect(frozenset(states))


def _expect_turned_on(data: dict[str, Any], before: State) -> ExpectedEffect:
    return ExpectedEffect(excluded_states=frozenset({"off", "standby"}))


def _expect_toggled(data: dict[str, Any], before: State) -> ExpectedEffect:
    return ExpectedEffect(frozenset({"off" if before.state == "on" else "on"}))


def _expect_light_on(data: dict[str, Any], before: State) -> ExpectedEffect | None:
    """Return the effect for the arguments that a light reports; None for a relative brightness."""
    other = {name: value for name, value in data.items() if name != "transition"}
    if "brightness_step" in other or "brightness_step_pct" in other:
        return None
    expected = {
        name: other.pop(name)
        for name in ("brightness", "color_temp_kelvin", "rgb_color", "hs_color")
        if name in other
    }
    if "brightness_pct" in other:
        expected["brightness"] = other.pop("brightness_pct") * 255 / 100
    if expected.get("brightness") == 0:
        return ExpectedEffect(frozenset({"off"}))
    named = find_rgb(other.get("color_name"))
    optional = () if named is None else (("rgb_color", list(named)),)
    return ExpectedEffect(
        frozenset({"on"}),
        attributes=tuple(expected.items()),
        is_conclusive=not other.keys() - ({"color_name"} if named else set()),
        optional_attributes=optional,
    )


def _expect_opened(data: dict[str, Any], before: State) -> ExpectedEffect:
    """Return the effect of opening. Movement counts as success.

    An entity that reports a position must also reach the end position.
    """
    attributes = (("current_position", 100),) if "current_position" in before.attributes else ()
    return ExpectedEffect(
        frozenset({"open"}), attributes=attributes, in_progress_states=frozenset({"opening"})
    )


def _expect_closed(data: dict[str, Any], before: State) -> ExpectedEffect:
    return ExpectedEffect(frozenset({"closed"}), in_progress_states=frozenset({"closing"}))


def _expect_position(data: dict[str, Any], before: State) -> ExpectedEffect | None:
    expected = data.get("position")
    return None if expected is None else ExpectedEffect(attributes=(("current_position", expected),))


def _expect_attribute(name: str, argument: str) -> EffectBuilder:
    def build(data: dict[str, Any], before: State) -> ExpectedEffect | None:
        expected = data.get(argument)
        return None if expected is None else ExpectedEffect(attributes=((name, expected),))

    return build


def _expect_state_from(argument: str) -> EffectBuilder:
    def build(data: dict[str, Any], before: State) -> ExpectedEffect | None:
        expected = data.get(argument)
        return None if expected is None else ExpectedEffect(_as_states(expected))

    return build


def _expect_temperature(data: dict[str, Any], before: State) -> ExpectedEffect | None:
    names = ("temperature", "target_temp_low", "target_temp_high")
    expected = tuple((name, data[name]) for name in names if data.get(name) is not None)
    mode = data.get("hvac_mode")
    states = frozenset({str(mode)}) if mode is not None else frozenset()
    return ExpectedEffect(states, attributes=expected) if expected or states else None


_ON_OFF_BUILDERS: dict[str, EffectBuilder] = {
    "turn_on": _expect_states("on"),
    "turn_off": _expect_states("off"),
    "toggle": _expect_toggled,
}

_BUILDERS: dict[tuple[str, str], EffectBuilder] = {
    ("light", "turn_on"): _expect_light_on,
    ("climate", "turn_on"): _expect_turned_on,
    ("climate", "turn_off"): _expect_states("off"),
    ("climate", "set_temperature"): _expect_temperature,
    ("climate", "set_hvac_mode"): _expect_state_from("hvac_mode"),
    ("climate", "set_fan_mode"): _expect_attribute("fan_mode", "fan_mode"),
    ("climate", "set_preset_mode"): _expect_attribute("preset_mode", "preset_mode"),
    ("climate", "set_humidity"): _expect_attribute("humidity", "humidity"),
    ("humidifier", "set_humidity"): _expect_attribute("humidity", "humidity"),
    ("water_heater", "set_temperature"): _expect_attribute("temperature", "temperature"),
    ("cover", "open_cover"): _expect_opened,
    ("cover", "close_cover"): _expect_closed,
    ("cover", "set_cover_position"): _expect_position,
    ("valve", "open_valve"): _expect_opened,
    ("valve", "close_valve"): _expect_closed,
    ("valve", "set_valve_position"): _expect_position,
    ("lock", "lock"): _expect_states("locked"),
    ("lock", "unlock"): _expect_states("unlocked"),
    ("fan", "set_percentage"): _expect_attribute("percentage", "percentage"),
    ("fan", "set_preset_mode"): _expect_attribute("preset_mode", "preset_mode"),
    ("fan", "oscillate"): _expect_attribute("oscillating", "oscillating"),
    ("media_player", "turn_on"): _expect_turned_on,
    ("media_player", "turn_off"): _expect_states("off", "standby"),
    ("media_player", "media_play"): _expect_states("playing", "buffering"),
    ("media_player", "media_pause"): _expect_states("paused", "idle"),
    ("media_player", "media_stop"): _expect_states("idle", "off", "standby"),
    ("media_player", "volume_set"): _expect_attribute("volume_level", "volume_level"),
    ("media_player", "volume_mute"): _expect_attribute("is_volume_muted", "is_volume_muted"),
    ("media_player", "select_source"): _expect_attribute("source", "source"),
    ("vacuum", "start"): _expect_states("cleaning"),
    ("vacuum", "return_to_base"): _expect_states("returning", "docked"),
    ("vacuum", "pause"): _expect_states("paused", "idle"),
    ("lawn_mower", "start_mowing"): _expect_states("mowing"),
    ("lawn_mower", "dock"): _expect_states("returning", "docked"),
    ("alarm_control_panel", "alarm_arm_home"): _expect_states("armed_home"),
    ("alarm_control_panel", "alarm_arm_away"): _expect_states("armed_away"),
    ("alarm_control_panel", "alarm_arm_night"): _expect_states("armed_night"),
    ("alarm_control_panel", "alarm_disarm"): _expect_states("disarmed"),
    ("input_number", "set_value"): _expect_state_from("value"),
    ("number", "set_value"): _expect_state_from("value"),
    ("input_select", "select_option"): _expect_state_from("option"),
    ("select", "select_option"): _expect_state_from("option"),
    ("input_text", "set_value"): _expect_state_from("value"),
    ("text", "set_value"): _expect_state_from("value"),
}


def is_same_value(value: Any, expected: Any, name: str) -> bool:
    """Return whether an attribute has the expected value, apart from rounding."""
    return is_close_value(value, expected, name, 0.25)


def is_close_value(value: Any, expected: Any, name: str, tolerance_factor: float = 1.0) -> bool:
    """Return whether an attribute has the expected value, within the tolerance of that attribute."""
    if isinstance(expected, bool) or isinstance(value, bool):
        return value is expected
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple):
        return len(value) == len(expected) and all(
            is_close_value(part, expected_part, name, tolerance_factor)
            for part, expected_part in zip(value, expected, strict=True)
        )
    if isinstance(expected, int | float) and isinstance(value, int | float):
        return abs(value - expected) <= TOLERANCES.get(name, 0.0) * tolerance_factor
    return bool(value == expected)


def _as_states(value: Any) -> frozenset[str]:
    """Return the possible spellings of a value as a state: 20 may be "20" or "20.0"."""
    return frozenset({f"{value:g}", str(float(value))} if isinstance(value, int | float) else {str(value)})
