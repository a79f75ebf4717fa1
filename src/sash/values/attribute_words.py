"""Attributes of entities and arguments of services in the words of a person: "30 % bright"."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sash.values.colors import name_color

_FULL_BRIGHTNESS = 255


def describe_attributes(attributes: Mapping[str, Any]) -> str:
    """Return the attributes of a state in words: "30 % bright, red"; empty if there is nothing to say."""
    return ", ".join(_describe_all(_select(attributes)))


def describe_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a service in words: "30 % bright, over 2 s"; empty without any."""
    return ", ".join(_describe_all(arguments))


def _select(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that say more than the state: not the end positions, and only one color."""
    is_white = attributes.get("color_mode") == "color_temp"
    for name, value in attributes.items():
        is_end = name == "current_position" and value in (0, 100)
        is_other_color = name == ("rgb_color" if is_white else "color_temp_kelvin")
        is_technical = name in ("color_mode", "rgbw_color", "rgbww_color")
        is_empty = value is None or value is False or value == "none"
        is_hidden = is_other_color and "color_mode" in attributes
        if not (is_empty or is_end or is_technical or is_hidden):
            yield name, value


def _describe_all(values: Mapping[str, Any] | Iterator[tuple[str, Any]]) -> Iterator[str]:
    found = dict(values)
    low, high = found.get("target_temp_low"), found.get("target_temp_high")
    if _is_number(low) and _is_number(high):
        yield f"{low:g} to {high:g} degrees"
        found = {name: found[name] for name in found if name not in ("target_temp_low", "target_temp_high")}
    for name, value in found.items():
        yield _describe(name, value)


def _describe(name: str, value: Any) -> str:
    if isinstance(value, bool):
        yes, no = _SWITCHES.get(name, (name.replace("_", " "), f"not {name.replace('_', ' ')}"))
        return yes if value else no
    if name in _NUMBERS and _is_number(value):
        return _NUMBERS[name](value)
    if name == "rgb_color" and isinstance(value, list | tuple) and len(value) == 3:
        return name_color(value) if all(map(_is_number, value)) else str(value)
    words = _NAMES.get(name, name.replace("_", " "))
    return f"{words} {value}".strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _write_percent(words: str, full: float = 100) -> Callable[[float], str]:
    """Return a function that writes a share of `full` in percent. `{}` in the words is the percentage."""
    return lambda value: words.format(f"{round(100 * value / full)} %")


def _write_step(full: float) -> Callable[[float], str]:
    return lambda value: f"{round(100 * abs(value) / full)} % {'darker' if value < 0 else 'brighter'}"


def _write_number(words: str) -> Callable[[float], str]:
    return lambda value: words.format(f"{value:g}")


_SWITCHES = {"is_volume_muted": ("muted", "not muted"), "oscillating": ("oscillating", "not oscillating")}
_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "brightness": _write_percent("{} bright", _FULL_BRIGHTNESS),
    "brightness_pct": _write_percent("{} bright"),
    "brightness_step": _write_step(_FULL_BRIGHTNESS),
    "brightness_step_pct": _write_step(100),
    "color_temp_kelvin": _write_number("{} kelvin"),
    "current_position": _write_percent("{} open"),
    "position": _write_percent("{} open"),
    "humidity": _write_percent("{} humidity"),
    "percentage": _write_percent("speed {}"),
    "temperature": _write_number("{} degrees"),
    "target_temp_low": _write_number("at least {} degrees"),
    "target_temp_high": _write_number("at most {} degrees"),
    "transition": _write_number("over {} s"),
    "volume_level": _write_percent("volume {}", 1),
}
# The words before a value that is a text. Without words, the value stands alone.
_NAMES = {
    "color_name": "",
    "fan_mode": "fan",
    "hvac_mode": "mode",
    "option": "",
    "preset_mode": "preset",
    "value": "",
}
