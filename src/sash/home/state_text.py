"""A state in words: for a person in a language ("geschlossen"), or for a model in English ("closed")."""

from typing import NamedTuple

from sash.home.history import parse_number
from sash.home.index import HomeIndex
from sash.ports.home import NO_STATE, UNAVAILABLE, UNKNOWN, Entity, State
from sash.values.state_words import choose_state_words, name_on_off

MAX_DECIMALS = 2
# The state of these entities is the time of their last use. It says nothing about the home.
TIMESTAMP_DOMAINS = frozenset(
    {"ai_task", "button", "conversation", "event", "image", "input_button", "notify", "scene", "stt"}
    | {"tts", "wake_word"}
)
_TEMPERATURES = ("current_temperature", "temperature", "target_temp_low", "target_temp_high")


class StateText(NamedTuple):
    """A state in words for a model.

    `text` is empty for an entity that has no state of its own, such as a scene. `unit` is empty unless the
    text is a value of this unit. `measured` is a number in the text that drifts, such as a temperature.
    `other_text` is the text without that number.
    """

    text: str
    unit: str = ""
    measured: float | None = None
    other_text: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.unit}" if self.unit else self.text


def write_state(index: HomeIndex, entity: Entity, language: str | None = None) -> str:
    """Return the present state of an entity in a language, with its unit; "unknown" if it has none.

    States on and off are named by the device class of the entity. A language without words shows English
    ones. A number has at most two decimals.
    """
    words = choose_state_words(language or index.language)
    state = index.states.get(entity.id)
    if state is None or state.state in NO_STATE:
        return words.name_state(UNKNOWN if state is None else state.state)
    named = words.name_state(state.state, index.get_device_class(entity.id))
    if named != state.state:
        return named
    return f"{_shorten(named)} {state.unit}" if state.unit else _shorten(named)


def read_state_text(index: HomeIndex, entity_id: str) -> StateText:
    """Return the present state of an entity as a model reads it: "open", "heating, 20.5 → 22 °C"."""
    state = index.states.get(entity_id)
    return make_state_text(state, index.temperature_unit) if state else _make_fixed(UNKNOWN)


def make_state_text(state: State, temperature_unit: str = "°C") -> StateText:
    """Return a state as a model reads it. A thermostat has its temperatures, in `temperature_unit`."""
    if state.domain in TIMESTAMP_DOMAINS and state.state != UNAVAILABLE:
        return _make_fixed("")
    if state.state in NO_STATE:
        return _make_fixed(state.state)
    if state.domain in ("climate", "water_heater"):
        return _describe_thermostat(state, temperature_unit)
    if (number := parse_number(state.state)) is not None:
        return StateText(state.state, state.unit, number)
    named = name_on_off(state.state, state.domain, str(state.attributes.get("device_class") or ""))
    return StateText(named, state.unit, None, named)


def _make_fixed(text: str) -> StateText:
    return StateText(text, other_text=text)


def _describe_thermostat(state: State, unit: str) -> StateText:
    """Return the activity of a thermostat, or else its mode, with the present and the target temperature."""
    is_off = state.state == "off"
    action = "off" if is_off else str(state.attributes.get("hvac_action") or state.state)
    present, target, low, high = (_read_number(state, name) for name in _TEMPERATURES)
    if target is not None and not is_off:
        aim = f"→ {target:g}"
    elif low is not None and high is not None and not is_off:
        aim = f"→ {low:g}–{high:g}"
    else:
        aim = ""
    temperatures = " ".join(filter(None, ("" if present is None else f"{present:g}", aim)))
    if not temperatures:
        return _make_fixed(action)
    return StateText(f"{action}, {temperatures} {unit}", "", present, f"{action}, {aim}")


def _read_number(state: State, name: str) -> float | None:
    value = state.attributes.get(name)
    return value if isinstance(value, int | float) else None


def _shorten(state: str) -> str:
    """Return a number with at most two decimals, and another text with spaces in place of underscores."""
    whole, _, digits = state.partition(".")
    if whole.removeprefix("-").isdecimal() and digits.isdecimal():
        return (
            f"{float(state):.{MAX_DECIMALS}f}".rstrip("0").rstrip(".")
            if len(digits) > MAX_DECIMALS
            else state
        )
    return state.replace("_", " ")
