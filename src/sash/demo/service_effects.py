"""The effects of services on the entities of a simulated home.

An effect is a function of the entity's state and the data of the call. It returns the new state and the
changed attributes, or raises `ServiceFailed` with the message of Home Assistant.
"""

import colorsys
from collections.abc import Callable
from typing import Any

from sash.errors import ServiceFailed
from sash.home.selectors import find_problem
from sash.ports.home import UNAVAILABLE, Service, State
from sash.values.colors import COLORS

Data = dict[str, Any]
ServiceEffect = Callable[[State, Data], tuple[str, Data]]

_COLOR_MODES = frozenset({"rgb", "hs", "xy", "rgbw", "rgbww"})
_VOLUME_STEP = 0.1

# The attributes of an unavailable entity.
_PERMANENT_ATTRIBUTES = frozenset(
    {
        "friendly_name",
        "device_class",
        "icon",
        "supported_features",
        "supported_color_modes",
        "min_color_temp_kelvin",
        "max_color_temp_kelvin",
        "hvac_modes",
        "fan_modes",
        "min_temp",
        "max_temp",
        "unit_of_measurement",
        "state_class",
        "source_list",
        "entity_id",
    }
)
_ATTRIBUTES_WHEN_OFF: dict[str, Data] = {
    "light": dict.fromkeys(("brightness", "color_mode", "color_temp_kelvin", "rgb_color", "hs_color"), None),
    "fan": {"percentage": 0},
}


def filter_attributes(domain: str, state: str, attributes: Data) -> Data:
    """Return those of the stored attributes that an entity reports in this state."""
    if state == UNAVAILABLE:
        return {key: value for key, value in attributes.items() if key in _PERMANENT_ATTRIBUTES}
    if domain == "media_player" and state == "off":
        return {key: value for key, value in attributes.items() if key in _PERMANENT_ATTRIBUTES}
    reported = dict(attributes)
    if state == "off":
        reported |= {
            key: value for key, value in _ATTRIBUTES_WHEN_OFF.get(domain, {}).items() if key in attributes
        }
    if domain == "cover" and "current_position" in attributes:
        position = attributes["current_position"]
        reported["current_position"] = 0 if state == "closed" else position or 100
    if domain == "climate" and "hvac_action" in attributes:
        reported["hvac_action"] = _find_hvac_action(state, attributes)
    return reported


def check_data(service: Service, data: Data) -> None:
    """Raise `ServiceFailed` for data that the service does not accept, as Home Assistant does."""
    for name, field in service.fields.items():
        if field.required and name not in data:
            raise ServiceFailed(f"required key not provided @ data['{name}']")
    for name, value in data.items():
        if name not in service.fields:
            raise ServiceFailed(f"extra keys not allowed @ data['{name}']")
        if problem := find_problem(service.fields[name].selector, value):
            raise ServiceFailed(f"value {problem} for dictionary value @ data['{name}']. Got {value!r}")


def _set_state(state: str, **attributes: Any) -> ServiceEffect:
    return lambda _, __: (state, attributes)


def _choose(effect: ServiceEffect, otherwise: ServiceEffect, *states: str) -> ServiceEffect:
    """Return an effect that applies `effect` in these states, and `otherwise` in all other states."""
    return lambda entity, data: (effect if entity.state in states else otherwise)(entity, data)


def _set_attribute(name: str) -> ServiceEffect:
    """Return an effect that sets the attribute `name` to the argument of that name. The state stays."""
    return lambda entity, data: (entity.state, {name: data[name]})


def _turn_light_on(light: State, data: Data) -> tuple[str, Data]:
    modes = set(light.attributes.get("supported_color_modes", ()))
    changed: Data = {}
    if modes - {"onoff"}:
        changed["brightness"] = brightness = _compute_brightness(light, data)
        if brightness == 0:
            return "off", {}
    color = _read_color(data)
    if color is not None and modes & _COLOR_MODES:
        changed |= {
            "rgb_color": color,
            "hs_color": _convert_to_hs(color),
            "color_mode": min(modes & _COLOR_MODES),
            "color_temp_kelvin": None,
        }
    elif "color_temp_kelvin" in data and "color_temp" in modes:
        min_kelvin = light.attributes.get("min_color_temp_kelvin", 2000)
        max_kelvin = light.attributes.get("max_color_temp_kelvin", 6500)
        kelvin = round(min(max(data["color_temp_kelvin"], min_kelvin), max_kelvin))
        changed |= {
            "color_temp_kelvin": kelvin,
            "color_mode": "color_temp",
            "rgb_color": None,
            "hs_color": None,
        }
    return "on", changed


def _compute_brightness(light: State, data: Data) -> int:
    before = light.attributes.get("brightness") or 255
    start = before if light.state == "on" else 0
    wanted: float = before
    if "brightness" in data:
        wanted = data["brightness"]
    elif "brightness_pct" in data:
        wanted = data["brightness_pct"] * 2.55
    elif "brightness_step" in data:
        wanted = start + data["brightness_step"]
    elif "brightness_step_pct" in data:
        wanted = start + data["brightness_step_pct"] * 2.55
    return round(min(max(wanted, 0), 255))


def _read_color(data: Data) -> list[int] | None:
    if "rgb_color" in data:
        return list(data["rgb_color"])
    if "color_name" in data:
        return list(COLORS[data["color_name"]])
    if "hs_color" in data:
        hue, saturation = data["hs_color"]
        return [round(255 * part) for part in colorsys.hsv_to_rgb(hue / 360, saturation / 100, 1)]
    return None


def _convert_to_hs(rgb: list[int]) -> list[float]:
    hue, saturation, _ = colorsys.rgb_to_hsv(*(part / 255 for part in rgb))
    return [round(hue * 360, 1), round(saturation * 100, 1)]


def _set_fan_speed(fan: State, data: Data) -> tuple[str, Data]:
    if "percentage" not in data:
        return "on", {"percentage": fan.attributes.get("percentage") or 100}
    percentage = round(data["percentage"])
    return ("on", {"percentage": percentage}) if percentage else ("off", {})


def _set_cover_position(cover: State, data: Data) -> tuple[str, Data]:
    if "current_position" not in cover.attributes:
        raise ServiceFailed(f"Entity {cover.entity_id} does not support action cover.set_cover_position.")
    position = round(data["position"])
    return ("open" if position else "closed"), {"current_position": position}


def _move_cover_to_end(state: str, position: int) -> ServiceEffect:
    def move(cover: State, _: Data) -> tuple[str, Data]:
        return state, {"current_position": position} if "current_position" in cover.attributes else {}

    return move


def _set_temperature(climate: State, data: Data) -> tuple[str, Data]:
    state = climate.state
    changed: Data = {}
    if "hvac_mode" in data:
        state, _ = _set_hvac_mode(climate, data)
    low, high = climate.attributes.get("min_temp", 7), climate.attributes.get("max_temp", 35)
    for name in ("temperature", "target_temp_low", "target_temp_high"):
        if name not in data:
            continue
        if not low <= data[name] <= high:
            raise ServiceFailed(
                f"Provided temperature {data[name]} is not valid. Accepted range is {low} to {high}."
            )
        changed[name] = data[name]
    if not changed:
        raise ServiceFailed("must contain at least one of temperature, target_temp_high, target_temp_low.")
    return state, changed


def _set_hvac_mode(climate: State, data: Data) -> tuple[str, Data]:
    mode = data.get("hvac_mode")
    _check_mode("HVAC", mode, climate.attributes.get("hvac_modes", ()))
    return str(mode), {}


def _turn_hvac_on(climate: State, _: Data) -> tuple[str, Data]:
    modes = climate.attributes.get("hvac_modes", ())
    return next((mode for mode in ("heat_cool", "heat", "cool", "auto") if mode in modes), "heat"), {}


def _find_hvac_action(state: str, attributes: Data) -> str:
    if state == "off":
        return "off"
    current, target = attributes.get("current_temperature"), attributes.get("temperature")
    if current is None or target is None:
        return "idle"
    if state == "cool":
        return "cooling" if current > target else "idle"
    return "heating" if current < target else "idle"


def _set_fan_mode(climate: State, data: Data) -> tuple[str, Data]:
    _check_mode("Fan", data["fan_mode"], climate.attributes.get("fan_modes", ()))
    return climate.state, {"fan_mode": data["fan_mode"]}


def _check_mode(kind: str, mode: Any, modes: Any) -> None:
    if mode not in modes:
        raise ServiceFailed(
            f"{kind} mode {mode} is not valid. Valid {kind if kind.isupper() else kind.lower()} modes are: "
            f"{', '.join(modes)}.",
        )


def _change_volume(by: float) -> ServiceEffect:
    def turn(player: State, _: Data) -> tuple[str, Data]:
        level = player.attributes.get("volume_level") or 0.0
        return player.state, {"volume_level": round(min(max(level + by, 0.0), 1.0), 2)}

    return turn


def _skip_track(by: int) -> ServiceEffect:
    def skip(player: State, _: Data) -> tuple[str, Data]:
        track = player.attributes.get("media_track")
        return "playing", {"media_track": max(track + by, 1)} if track else {}

    return skip


def _select_source(player: State, data: Data) -> tuple[str, Data]:
    sources = player.attributes.get("source_list", ())
    if data["source"] not in sources:
        raise ServiceFailed(f"Source {data['source']} is not valid. Valid sources are: {', '.join(sources)}.")
    return player.state, {"source": data["source"]}


_turn_on, _turn_off = _set_state("on"), _set_state("off")

EFFECTS: dict[str, ServiceEffect] = {
    **{
        f"{domain}.{verb}": effect
        for domain in ("switch", "input_boolean", "automation")
        for verb, effect in (
            ("turn_on", _turn_on),
            ("turn_off", _turn_off),
            ("toggle", _choose(_turn_off, _turn_on, "on")),
        )
    },
    "light.turn_on": _turn_light_on,
    "light.turn_off": _turn_off,
    "light.toggle": _choose(_turn_off, _turn_light_on, "on"),
    "fan.turn_on": _set_fan_speed,
    "fan.turn_off": _turn_off,
    "fan.toggle": _choose(_turn_off, _set_fan_speed, "on"),
    "fan.set_percentage": _set_fan_speed,
    "fan.oscillate": _set_attribute("oscillating"),
    "cover.open_cover": _move_cover_to_end("open", 100),
    "cover.close_cover": _move_cover_to_end("closed", 0),
    "cover.stop_cover": lambda cover, _: (cover.state, {}),
    "cover.toggle": _choose(_move_cover_to_end("open", 100), _move_cover_to_end("closed", 0), "closed"),
    "cover.set_cover_position": _set_cover_position,
    "lock.lock": _set_state("locked"),
    "lock.unlock": _set_state("unlocked"),
    "climate.set_temperature": _set_temperature,
    "climate.set_hvac_mode": _set_hvac_mode,
    "climate.set_fan_mode": _set_fan_mode,
    "climate.turn_on": _turn_hvac_on,
    "climate.turn_off": _turn_off,
    "media_player.turn_on": _choose(_turn_on, lambda player, _: (player.state, {}), "off", "standby"),
    "media_player.turn_off": _turn_off,
    "media_player.toggle": _choose(_turn_on, _turn_off, "off", "standby"),
    "media_player.media_play": _set_state("playing"),
    "media_player.media_pause": _set_state("paused"),
    "media_player.media_stop": _set_state("idle"),
    "media_player.media_next_track": _skip_track(1),
    "media_player.media_previous_track": _skip_track(-1),
    "media_player.volume_up": _change_volume(_VOLUME_STEP),
    "media_player.volume_down": _change_volume(-_VOLUME_STEP),
    "media_player.volume_set": _set_attribute("volume_level"),
    "media_player.volume_mute": _set_attribute("is_volume_muted"),
    "media_player.select_source": _select_source,
    "vacuum.start": _set_state("cleaning"),
    "vacuum.pause": _set_state("paused"),
    "vacuum.return_to_base": _set_state("docked"),
    "vacuum.set_fan_speed": _set_attribute("fan_speed"),
    "alarm_control_panel.alarm_arm_home": _set_state("armed_home"),
    "alarm_control_panel.alarm_arm_away": _set_state("armed_away"),
    "alarm_control_panel.alarm_disarm": _set_state("disarmed"),
}
