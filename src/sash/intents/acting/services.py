"""The service that does what a person asks for, for one entity in its present state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sash.intents.acting.act import Act
from sash.intents.acting.steps import LIGHT_MAX, read_value, settle_act
from sash.intents.sentence.clause import Amount
from sash.ports.home import State

BRIGHTNESS_STEP = 20.0
TEMPERATURE_STEP = 1.0
VOLUME_STEP = 10.0
SPEED_STEP = 25.0
COVER_STEP = 25.0
HUMIDITY_STEP = 5.0
KELVIN_STEP = 500
_DEFAULT_FAN_PERCENTAGE = 50.0
_COLOUR_MODES = frozenset({"hs", "xy", "rgb", "rgbw", "rgbww"})
_TEMPERATURE_MODES = frozenset({"color_temp", "rgbww"})
# The colours of white light. Other colours are names that Home Assistant knows.
_KELVIN = {"warm_white": 2700, "cold_white": 5500}
_COLOUR_NAMES = {"cold_white": "white", "warm_white": "white"}
_MIN_FAN_FEATURE_OSCILLATE = 2


@dataclass(frozen=True, slots=True)
class ServiceChoice:
    """A service with its data for one entity."""

    service: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CannotDo:
    """Why an entity cannot do it: the key of a sentence in the section "cannot", and its values."""

    reason: str
    values: dict[str, Any] = field(default_factory=dict)


Choice = ServiceChoice | CannotDo | None


def choose_service(act: Act, state: State) -> Choice:
    """Return the service for an act; None if entities of this kind do no such thing."""
    choose = _BY_DOMAIN.get(state.domain)
    return choose(settle_act(act, state), state) if choose else None


def _choose_light(act: Act, state: State) -> Choice:
    modes = state.attributes.get("supported_color_modes")
    if act.amount.colour:
        choice = _choose_colour(act.amount.colour, modes, state)
        percent = act.percent
        if isinstance(choice, ServiceChoice) and percent is not None and 0 < percent <= 100:
            return ServiceChoice(choice.service, choice.data | {"brightness_pct": percent})
        return choice
    if act.amount.unit == "kelvin":
        can = modes is None or _TEMPERATURE_MODES.intersection(modes)
        kelvin = {"color_temp_kelvin": round(act.amount.value or 0)}
        return ServiceChoice("light.turn_on", kelvin) if can else CannotDo("white_tone")
    if act.amount.unit not in (None, "percent"):
        return None
    return _choose_brightness(act, state) or _choose_switch(act, state)


def _choose_brightness(act: Act, state: State) -> Choice:
    """Return the service for a brightness or a tone of white; None for other acts."""
    modes = state.attributes.get("supported_color_modes")
    is_dimmable = modes is None or not set(modes) <= {"onoff"}
    if act.percent is not None:
        if act.percent > 100:
            return CannotDo("above_maximum", {"maximum": 100, "unit": "%"})
        if act.percent <= 0:
            return ServiceChoice("light.turn_off")
        data = {"brightness_pct": act.percent}
        return ServiceChoice("light.turn_on", data) if is_dimmable else CannotDo("dim")
    if act.has("brighter", "darker") or (act.has("up", "down") and not act.has("on", "off")):
        if not is_dimmable:
            return CannotDo("dim")
        if state.state != "on" and act.has("brighter", "up") and not act.is_difference:
            return ServiceChoice("light.turn_on")
        # A light that is off and should be darker comes on dimmed.
        off = 2 * BRIGHTNESS_STEP if not act.is_difference else 0 if act.goes_up else 100
        now = (state.attributes.get("brightness") or 0) * 100 / LIGHT_MAX if state.state == "on" else off
        wanted = now + act.step(BRIGHTNESS_STEP, ("brighter", "darker"))
        return ServiceChoice("light.turn_on", {"brightness_pct": round(min(max(wanted, 1), 100))})
    if act.has("warmer", "colder") and not act.has("on", "off"):
        return _step_tone(act, state)
    return None


def _step_tone(act: Act, state: State) -> Choice:
    """Return a warmer or a colder white."""
    if not _TEMPERATURE_MODES.intersection(
        state.attributes.get("supported_color_modes") or _TEMPERATURE_MODES
    ):
        return CannotDo("white_tone")
    now = state.attributes.get("color_temp_kelvin") or _KELVIN["warm_white"]
    # A higher colour temperature is a colder light.
    wanted = now - act.step(KELVIN_STEP, ("warmer", "colder"))
    lowest = state.attributes.get("min_color_temp_kelvin") or 2000
    highest = state.attributes.get("max_color_temp_kelvin") or 6500
    return ServiceChoice("light.turn_on", {"color_temp_kelvin": round(min(max(wanted, lowest), highest))})


def _choose_colour(colour: str, modes: Any, state: State) -> Choice:
    if colour in _KELVIN and (modes is None or _TEMPERATURE_MODES.intersection(modes)):
        lowest = state.attributes.get("min_color_temp_kelvin") or 0
        highest = state.attributes.get("max_color_temp_kelvin") or 10_000
        kelvin = min(max(_KELVIN[colour], lowest), highest)
        return ServiceChoice("light.turn_on", {"color_temp_kelvin": kelvin})
    if modes is not None and not _COLOUR_MODES.intersection(modes):
        return CannotDo("colour")
    return ServiceChoice("light.turn_on", {"color_name": _COLOUR_NAMES.get(colour, colour)})


def _choose_switch(act: Act, state: State) -> Choice:
    domain = state.domain
    if not act.amount.is_empty:
        return CannotDo("dim") if act.amount.unit in (None, "percent") and not act.amount.colour else None
    if act.has("off", "stop"):
        return ServiceChoice(f"{domain}.turn_off")
    if act.has("on", "start", "run"):
        return ServiceChoice(f"{domain}.turn_on")
    if act.has("toggle"):
        return ServiceChoice(f"{domain}.toggle")
    if act.has("brighter", "darker"):
        return CannotDo("dim")
    return None


def _choose_climate(act: Act, state: State) -> Choice:
    target = state.attributes.get("temperature")
    if act.degrees is not None:
        return _set_temperature(act.degrees, state)
    if act.amount.unit == "percent" or act.amount.colour:
        return None
    if act.has("warmer", "colder", "up", "down"):
        if not isinstance(target, int | float):
            return CannotDo("no_target")
        return _set_temperature(target + act.step(TEMPERATURE_STEP, ("warmer", "colder")), state)
    modes = [mode for mode in state.attributes.get("hvac_modes") or () if mode != "off"]
    if act.has("off", "stop"):
        return ServiceChoice("climate.set_hvac_mode", {"hvac_mode": "off"})
    for wanted, names in (("cool", ("cool",)), ("heat", ("heat", "heat_cool", "auto"))):
        if act.has(wanted):
            found = next((mode for mode in names if mode in modes), None)
            return ServiceChoice("climate.set_hvac_mode", {"hvac_mode": found}) if found else CannotDo(wanted)
    if act.has("on", "start"):
        preferred = next((mode for mode in ("heat", "heat_cool", "auto") if mode in modes), None)
        mode = preferred or next(iter(modes), None)
        return ServiceChoice("climate.set_hvac_mode", {"hvac_mode": mode}) if mode else None
    return None


def _set_temperature(degrees: float, state: State) -> Choice:
    lowest, highest = state.attributes.get("min_temp"), state.attributes.get("max_temp")
    unit = "°C"
    if isinstance(highest, int | float) and degrees > highest:
        return CannotDo("above_maximum", {"maximum": highest, "unit": unit})
    if isinstance(lowest, int | float) and degrees < lowest:
        return CannotDo("below_minimum", {"minimum": lowest, "unit": unit})
    return ServiceChoice(f"{state.domain}.set_temperature", {"temperature": _shorten(degrees)})


def _choose_water_heater(act: Act, state: State) -> Choice:
    if act.degrees is not None:
        return _set_temperature(act.degrees, state)
    target = read_value(state)
    if act.has("warmer", "colder", "up", "down") and act.amount.unit != "percent" and target is not None:
        return _set_temperature(target + act.step(TEMPERATURE_STEP, ("warmer", "colder")), state)
    return _choose_switch(act, state)


def _choose_cover(act: Act, state: State) -> Choice:
    domain = state.domain
    if act.percent is not None:
        if act.percent > 100:
            return CannotDo("above_maximum", {"maximum": 100, "unit": "%"})
        position = 100 - act.percent if act.has("close") and not act.has("down") else act.percent
        has_position = state.attributes.get("current_position") is not None
        can = has_position or state.attributes.get("supported_features", 0) & 4
        service = f"{domain}.set_{domain}_position"
        return ServiceChoice(service, {"position": round(position)}) if can else CannotDo("position")
    if act.is_difference or act.amount.size == "little":
        now = state.attributes.get("current_position")
        if not isinstance(now, int | float):
            return CannotDo("position") if act.is_difference else _choose_cover_act(act, domain)
        size = act.amount.value or COVER_STEP
        step = size if act.goes_up else -size
        return ServiceChoice(
            f"{domain}.set_{domain}_position", {"position": round(min(max(now + step, 0), 100))}
        )
    return _choose_cover_act(act, domain)


def _choose_cover_act(act: Act, domain: str) -> Choice:
    if act.has("close", "down", "off"):
        return ServiceChoice(f"{domain}.close_{domain}")
    if act.has("open", "up", "on"):
        return ServiceChoice(f"{domain}.open_{domain}")
    if act.has("stop", "pause"):
        return ServiceChoice(f"{domain}.stop_{domain}")
    return ServiceChoice(f"{domain}.toggle") if act.has("toggle") else None


def _choose_fan(act: Act, state: State) -> Choice:
    if act.percent is not None and not act.amount.colour:
        if act.percent > 100:
            return CannotDo("above_maximum", {"maximum": 100, "unit": "%"})
        step = state.attributes.get("percentage_step") or 1
        # "Speed 2" of ten speeds is 20 percent.
        is_level = act.amount.unit is None and act.amount.value is not None and act.percent * step <= 100
        wanted = act.percent * step if is_level else max(act.percent, step if act.percent else 0)
        return ServiceChoice("fan.set_percentage", {"percentage": round(wanted)})
    if act.has("swing"):
        if not state.attributes.get("supported_features", 0) & _MIN_FAN_FEATURE_OSCILLATE:
            return CannotDo("swing")
        return ServiceChoice("fan.oscillate", {"oscillating": not act.has("off", "stop")})
    if act.has("faster", "slower", "up", "down"):
        if state.state == "off" and act.has("slower", "down"):
            return ServiceChoice("fan.turn_off")
        now = state.attributes.get("percentage") or (_DEFAULT_FAN_PERCENTAGE if state.state == "on" else 0.0)
        wanted = now + act.step(SPEED_STEP, ("faster", "slower"))
        return ServiceChoice("fan.set_percentage", {"percentage": round(min(max(wanted, 1), 100))})
    return _choose_switch(act, state)


def _choose_player(act: Act, state: State) -> Choice:
    if act.amount.unit == "degrees" or act.amount.colour:
        return None
    if act.percent is not None:
        return _set_volume(act.percent, state)
    if act.has("mute", "unmute") and state.state == "off":
        return CannotDo("off")
    if act.has("unmute"):
        return ServiceChoice("media_player.volume_mute", {"is_volume_muted": False})
    if act.has("mute"):
        is_muted = not act.has("off")
        return ServiceChoice("media_player.volume_mute", {"is_volume_muted": is_muted})
    if act.has("louder", "quieter", "up", "down"):
        return _step_volume(act, state)
    if act.has("on") and state.state in ("paused", "idle"):
        return ServiceChoice("media_player.media_play")
    for done, service in _PLAYER_SERVICES.items():
        if act.has(done):
            return ServiceChoice(f"media_player.{service}")
    return None


_PLAYER_SERVICES: Mapping[str, str] = {
    "next": "media_next_track",
    "previous": "media_previous_track",
    "pause": "media_pause",
    "play": "media_play",
    "off": "turn_off",
    "stop": "media_stop",
    "on": "turn_on",
    "start": "media_play",
    "toggle": "toggle",
}


def _set_volume(percent: float, state: State) -> Choice:
    if percent > 100:
        return CannotDo("above_maximum", {"maximum": 100, "unit": "%"})
    if state.state == "off" and state.attributes.get("volume_level") is None:
        return CannotDo("off")
    return ServiceChoice("media_player.volume_set", {"volume_level": round(percent / 100, 2)})


def _step_volume(act: Act, state: State) -> Choice:
    now, step = state.attributes.get("volume_level"), act.step(VOLUME_STEP, ("louder", "quieter"))
    if isinstance(now, int | float):
        # Less loud is not silent.
        level = round(min(max(now + step / 100, now / 2), 1), 2)
        return ServiceChoice("media_player.volume_set", {"volume_level": level})
    if state.state == "off":
        return CannotDo("off")
    return ServiceChoice("media_player.volume_up" if step > 0 else "media_player.volume_down")


def _choose_humidifier(act: Act, state: State) -> Choice:
    if act.percent is not None:
        highest, lowest = state.attributes.get("max_humidity", 100), state.attributes.get("min_humidity", 0)
        if act.percent > highest:
            return CannotDo("above_maximum", {"maximum": highest, "unit": "%"})
        if act.percent < lowest:
            return CannotDo("below_minimum", {"minimum": lowest, "unit": "%"})
        return ServiceChoice("humidifier.set_humidity", {"humidity": round(act.percent)})
    target = read_value(state)
    if act.has("up", "down") and act.amount.unit in (None, "percent") and target is not None:
        wanted = target + act.step(HUMIDITY_STEP, ("up", "down"))
        return _choose_humidifier(Act(frozenset(), Amount(wanted, "percent")), state)
    return _choose_switch(act, state)


# The modes of an alarm, with their bits of `supported_features`.
_ALARM_MODES = {"home": 1, "night": 4, "away": 2}


def _choose_alarm(act: Act, state: State) -> Choice:
    if act.has("disarm") or (act.has("off") and not act.has("arm")):
        return ServiceChoice("alarm_control_panel.alarm_disarm")
    features = state.attributes.get("supported_features")
    named = [mode for mode in _ALARM_MODES if act.has(f"arm_{mode}")]
    named = named or [mode for mode in _ALARM_MODES if act.has("arm") and act.has(mode)]
    for mode, bit in _ALARM_MODES.items():
        if mode in named:
            if isinstance(features, int) and not features & bit:
                return CannotDo("mode")
            return ServiceChoice(f"alarm_control_panel.alarm_arm_{mode}")
    return ServiceChoice("alarm_control_panel.alarm_arm_away") if act.has("arm", "on") else None


def _choose_number(act: Act, state: State) -> Choice:
    if act.amount.value is None:
        return None
    if not act.is_difference:
        return ServiceChoice(f"{state.domain}.set_value", {"value": act.amount.value})
    try:
        now = float(state.state)
    except ValueError:
        return CannotDo("no_target")
    return ServiceChoice(f"{state.domain}.set_value", {"value": _shorten(now + act.step(0, ("up", "down")))})


def _choose_by(services: Mapping[str, str]) -> Callable[[Act, State], Choice]:
    """Return a chooser of services by what is to be done; the first of the mapping that is asked for wins."""

    def choose(act: Act, state: State) -> Choice:
        if not act.amount.is_empty:
            return None
        found = next((service for done, service in services.items() if act.has(done)), None)
        return ServiceChoice(f"{state.domain}.{found}") if found else None

    return choose


def _shorten(value: float) -> float:
    return int(value) if float(value).is_integer() else round(value, 1)


# "Stop cleaning" stops, although it says "clean".
_choose_vacuum_act = _choose_by(
    {
        "locate": "locate",
        "dock": "return_to_base",
        "pause": "pause",
        "off": "return_to_base",
        "stop": "pause",
        "clean": "start",
        "start": "start",
        "on": "start",
        "play": "start",
        "run": "start",
    }
)


def _choose_vacuum(act: Act, state: State) -> Choice:
    """Return the service for an act. The speeds of a vacuum are names, in the order of their power."""
    speeds = state.attributes.get("fan_speed_list") or ()
    is_step = act.amount.is_empty and act.has("faster", "slower", "louder", "quieter", "up", "down")
    if not speeds or not (is_step or act.amount.unit == "percent"):
        return _choose_vacuum_act(act, state)
    last, now = len(speeds) - 1, state.attributes.get("fan_speed")
    if is_step:
        step = 1 if act.has("faster", "louder", "up") else -1
        wanted = (speeds.index(now) if now in speeds else last // 2) + step
    else:
        wanted = round((act.percent or 0) / 100 * last)
    return ServiceChoice("vacuum.set_fan_speed", {"fan_speed": speeds[min(max(wanted, 0), last)]})


_STARTED = _choose_by({"on": "turn_on", "start": "turn_on", "run": "turn_on", "play": "turn_on"})
_PRESSED = _choose_by({"press": "press", "on": "press", "start": "press", "run": "press"})
_BY_DOMAIN: Mapping[str, Callable[[Act, State], Choice]] = {
    "alarm_control_panel": _choose_alarm,
    "automation": _choose_by({"off": "turn_off", "run": "trigger", "press": "trigger", "on": "turn_on"}),
    "button": _PRESSED,
    "climate": _choose_climate,
    "cover": _choose_cover,
    "fan": _choose_fan,
    "humidifier": _choose_humidifier,
    "input_boolean": _choose_switch,
    "input_button": _PRESSED,
    "input_number": _choose_number,
    "lawn_mower": _choose_by(
        {
            "dock": "dock",
            "off": "dock",
            "pause": "pause",
            "stop": "pause",
            "clean": "start_mowing",
            "start": "start_mowing",
            "on": "start_mowing",
            "play": "start_mowing",
        }
    ),
    "light": _choose_light,
    "lock": _choose_by({"unlock": "unlock", "lock": "lock", "open": "unlock", "close": "lock"}),
    "media_player": _choose_player,
    "number": _choose_number,
    "scene": _STARTED,
    "script": _choose_by(
        {
            "off": "turn_off",
            "stop": "turn_off",
            "on": "turn_on",
            "start": "turn_on",
            "run": "turn_on",
            "play": "turn_on",
            "press": "turn_on",  # "Trigger good night".
        }
    ),
    "siren": _choose_switch,
    "switch": _choose_switch,
    "timer": _choose_by({"stop": "cancel", "pause": "pause", "start": "start", "on": "start"}),
    "vacuum": _choose_vacuum,
    "valve": _choose_cover,
    "water_heater": _choose_water_heater,
}
