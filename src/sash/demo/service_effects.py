"""What a service does to an entity's state: the rules by which a simulated house answers to a call.

An effect is a function of the entity's state and the call's data. It returns the new state and the
attributes that change, or raises `ServiceFailed` with Home Assistant's words. It knows no house.
"""

import colorsys
from collections.abc import Callable
from typing import Any

from sash.demo.services import COLORS
from sash.errors import ServiceFailed
from sash.home.selectors import wrong
from sash.ports.home import UNAVAILABLE, Service, State

Data = dict[str, Any]
Effect = Callable[[State, Data], tuple[str, Data]]

_COLOR_MODES = frozenset({"rgb", "hs", "xy", "rgbw", "rgbww"})
_VOLUME_STEP = 0.1

# What an entity still says of itself when it cannot be reached.
_LASTING = frozenset(
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
_WHEN_OFF: dict[str, Data] = {
    "light": dict.fromkeys(("brightness", "color_mode", "color_temp_kelvin", "rgb_color", "hs_color"), None),
    "fan": {"percentage": 0},
}


def shown(domain: str, state: str, attributes: Data) -> Data:
    """Return the attributes that an entity shows in a state, of all that it remembers."""
    if state == UNAVAILABLE:
        return {key: value for key, value in attributes.items() if key in _LASTING}
    if domain == "media_player" and state == "off":
        return {key: value for key, value in attributes.items() if key in _LASTING}
    shows = dict(attributes)
    if state == "off":
        shows |= {key: value for key, value in _WHEN_OFF.get(domain, {}).items() if key in attributes}
    if domain == "cover" and "current_position" in attributes:
        position = attributes["current_position"]
        shows["current_position"] = 0 if state == "closed" else position or 100
    if domain == "climate" and "hvac_action" in attributes:
        shows["hvac_action"] = _hvac_action(state, attributes)
    return shows


def check(service: Service, data: Data) -> None:
    """Refuse data that the service does not take, as Home Assistant's schemas do."""
    for name, field in service.fields.items():
        if field.required and name not in data:
            raise ServiceFailed(f"required key not provided @ data['{name}']", service=service.name)
    for name, value in data.items():
        if name not in service.fields:
            raise ServiceFailed(f"extra keys not allowed @ data['{name}']", service=service.name)
        if complaint := wrong(service.fields[name].selector, value):
            raise ServiceFailed(
                f"value {complaint} for dictionary value @ data['{name}']. Got {value!r}",
                service=service.name,
            )


def _to(state: str, **attributes: Any) -> Effect:
    return lambda _, __: (state, attributes)


def _either(effect: Effect, otherwise: Effect, *states: str) -> Effect:
    """Do one thing in some states, and else another."""
    return lambda entity, data: (effect if entity.state in states else otherwise)(entity, data)


def _keeping(name: str) -> Effect:
    """Set the attribute that the service's field is named after; the state stays as it is."""
    return lambda entity, data: (entity.state, {name: data[name]})


def _light_on(light: State, data: Data) -> tuple[str, Data]:
    modes = set(light.attributes.get("supported_color_modes", ()))
    changed: Data = {}
    if modes - {"onoff"}:
        changed["brightness"] = brightness = _brightness(light, data)
        if brightness == 0:
            return "off", {}
    color = _color(data)
    if color is not None and modes & _COLOR_MODES:
        changed |= {
            "rgb_color": color,
            "hs_color": _hs(color),
            "color_mode": min(modes & _COLOR_MODES),
            "color_temp_kelvin": None,
        }
    elif "color_temp_kelvin" in data and "color_temp" in modes:
        least = light.attributes.get("min_color_temp_kelvin", 2000)
        most = light.attributes.get("max_color_temp_kelvin", 6500)
        kelvin = round(min(max(data["color_temp_kelvin"], least), most))
        changed |= {
            "color_temp_kelvin": kelvin,
            "color_mode": "color_temp",
            "rgb_color": None,
            "hs_color": None,
        }
    return "on", changed


def _brightness(light: State, data: Data) -> int:
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


def _color(data: Data) -> list[int] | None:
    if "rgb_color" in data:
        return list(data["rgb_color"])
    if "color_name" in data:
        return list(COLORS[data["color_name"]])
    if "hs_color" in data:
        hue, saturation = data["hs_color"]
        return [round(255 * part) for part in colorsys.hsv_to_rgb(hue / 360, saturation / 100, 1)]
    return None


def _hs(rgb: list[int]) -> list[float]:
    hue, saturation, _ = colorsys.rgb_to_hsv(*(part / 255 for part in rgb))
    return [round(hue * 360, 1), round(saturation * 100, 1)]


def _fan_speed(fan: State, data: Data) -> tuple[str, Data]:
    if "percentage" not in data:
        return "on", {"percentage": fan.attributes.get("percentage") or 100}
    percentage = round(data["percentage"])
    return ("on", {"percentage": percentage}) if percentage else ("off", {})


def _cover_to(cover: State, data: Data) -> tuple[str, Data]:
    if "current_position" not in cover.attributes:
        raise ServiceFailed(
            f"Entity {cover.entity_id} does not support action cover.set_cover_position.",
            service="cover.set_cover_position",
        )
    position = round(data["position"])
    return ("open" if position else "closed"), {"current_position": position}


def _cover_ends(state: str, position: int) -> Effect:
    def move(cover: State, _: Data) -> tuple[str, Data]:
        return state, {"current_position": position} if "current_position" in cover.attributes else {}

    return move


def _temperature(climate: State, data: Data) -> tuple[str, Data]:
    state = climate.state
    changed: Data = {}
    if "hvac_mode" in data:
        state, _ = _hvac_mode(climate, data)
    low, high = climate.attributes.get("min_temp", 7), climate.attributes.get("max_temp", 35)
    for name in ("temperature", "target_temp_low", "target_temp_high"):
        if name not in data:
            continue
        if not low <= data[name] <= high:
            raise ServiceFailed(
                f"Provided temperature {data[name]} is not valid. Accepted range is {low} to {high}.",
                service="climate.set_temperature",
            )
        changed[name] = data[name]
    if not changed:
        raise ServiceFailed(
            "must contain at least one of temperature, target_temp_high, target_temp_low.",
            service="climate.set_temperature",
        )
    return state, changed


def _hvac_mode(climate: State, data: Data) -> tuple[str, Data]:
    mode = data.get("hvac_mode")
    _check_mode("HVAC", mode, climate.attributes.get("hvac_modes", ()))
    return str(mode), {}


def _hvac_on(climate: State, _: Data) -> tuple[str, Data]:
    modes = climate.attributes.get("hvac_modes", ())
    return next((mode for mode in ("heat_cool", "heat", "cool", "auto") if mode in modes), "heat"), {}


def _hvac_action(state: str, attributes: Data) -> str:
    if state == "off":
        return "off"
    is_now, wanted = attributes.get("current_temperature"), attributes.get("temperature")
    if is_now is None or wanted is None:
        return "idle"
    if state == "cool":
        return "cooling" if is_now > wanted else "idle"
    return "heating" if is_now < wanted else "idle"


def _fan_mode(climate: State, data: Data) -> tuple[str, Data]:
    _check_mode("Fan", data["fan_mode"], climate.attributes.get("fan_modes", ()))
    return climate.state, {"fan_mode": data["fan_mode"]}


def _check_mode(kind: str, mode: Any, modes: Any) -> None:
    if mode not in modes:
        raise ServiceFailed(
            f"{kind} mode {mode} is not valid. Valid {kind if kind.isupper() else kind.lower()} modes are: "
            f"{', '.join(modes)}.",
        )


def _louder(by: float) -> Effect:
    def turn(player: State, _: Data) -> tuple[str, Data]:
        level = player.attributes.get("volume_level") or 0.0
        return player.state, {"volume_level": round(min(max(level + by, 0.0), 1.0), 2)}

    return turn


def _track(by: int) -> Effect:
    def skip(player: State, _: Data) -> tuple[str, Data]:
        track = player.attributes.get("media_track")
        return "playing", {"media_track": max(track + by, 1)} if track else {}

    return skip


def _source(player: State, data: Data) -> tuple[str, Data]:
    sources = player.attributes.get("source_list", ())
    if data["source"] not in sources:
        raise ServiceFailed(
            f"Source {data['source']} is not valid. Valid sources are: {', '.join(sources)}.",
            service="media_player.select_source",
        )
    return player.state, {"source": data["source"]}


_on, _off = _to("on"), _to("off")

EFFECTS: dict[str, Effect] = {
    **{
        f"{domain}.{verb}": effect
        for domain in ("switch", "input_boolean", "automation")
        for verb, effect in (("turn_on", _on), ("turn_off", _off), ("toggle", _either(_off, _on, "on")))
    },
    "light.turn_on": _light_on,
    "light.turn_off": _off,
    "light.toggle": _either(_off, _light_on, "on"),
    "fan.turn_on": _fan_speed,
    "fan.turn_off": _off,
    "fan.toggle": _either(_off, _fan_speed, "on"),
    "fan.set_percentage": _fan_speed,
    "fan.oscillate": _keeping("oscillating"),
    "cover.open_cover": _cover_ends("open", 100),
    "cover.close_cover": _cover_ends("closed", 0),
    "cover.stop_cover": lambda cover, _: (cover.state, {}),
    "cover.toggle": _either(_cover_ends("open", 100), _cover_ends("closed", 0), "closed"),
    "cover.set_cover_position": _cover_to,
    "lock.lock": _to("locked"),
    "lock.unlock": _to("unlocked"),
    "climate.set_temperature": _temperature,
    "climate.set_hvac_mode": _hvac_mode,
    "climate.set_fan_mode": _fan_mode,
    "climate.turn_on": _hvac_on,
    "climate.turn_off": _off,
    "media_player.turn_on": _either(_on, lambda player, _: (player.state, {}), "off", "standby"),
    "media_player.turn_off": _off,
    "media_player.toggle": _either(_on, _off, "off", "standby"),
    "media_player.media_play": _to("playing"),
    "media_player.media_pause": _to("paused"),
    "media_player.media_stop": _to("idle"),
    "media_player.media_next_track": _track(1),
    "media_player.media_previous_track": _track(-1),
    "media_player.volume_up": _louder(_VOLUME_STEP),
    "media_player.volume_down": _louder(-_VOLUME_STEP),
    "media_player.volume_set": _keeping("volume_level"),
    "media_player.volume_mute": _keeping("is_volume_muted"),
    "media_player.select_source": _source,
    "vacuum.start": _to("cleaning"),
    "vacuum.pause": _to("paused"),
    "vacuum.return_to_base": _to("docked"),
    "alarm_control_panel.alarm_arm_home": _to("armed_home"),
    "alarm_control_panel.alarm_arm_away": _to("armed_away"),
    "alarm_control_panel.alarm_disarm": _to("disarmed"),
}
