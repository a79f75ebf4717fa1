"""Steps such as "stronger" and "up 6 degrees", for the present state of a thing."""

from collections.abc import Mapping
from dataclasses import replace

from sash.intents.acting.act import STEPS, Act
from sash.ports.home import State

LIGHT_MAX = 255
# "Two degrees warmer" is a change, and "22 degrees" is a value.
MAX_CHANGE = 5.0
# The steps of "stronger" and "weaker".
_STRENGTHS: Mapping[str, tuple[str, str]] = {
    "climate": ("warmer", "colder"),
    "fan": ("faster", "slower"),
    "light": ("brighter", "darker"),
    "media_player": ("louder", "quieter"),
    "vacuum": ("faster", "slower"),
}
# The attribute that a step changes, and the factor for the unit of a command.
_VALUES: Mapping[str, tuple[str, float]] = {
    "climate": ("temperature", 1.0),
    "fan": ("percentage", 1.0),
    "humidifier": ("humidity", 1.0),
    "light": ("brightness", 100 / LIGHT_MAX),
    "media_player": ("volume_level", 100.0),
    "water_heater": ("temperature", 1.0),
}


def settle_act(act: Act, state: State) -> Act:
    """Return an act that says which step "stronger" is here, and whether its amount is a difference.

    "Raise it 6 degrees" is a difference if the thing stands at 21, because 6 would be colder.
    """
    if act.has("stronger", "weaker"):
        stronger, weaker = _STRENGTHS.get(state.domain, ("", ""))
        if state.state == "cool":
            stronger, weaker = weaker, stronger
        do = (act.do - {"stronger", "weaker"}) | {stronger if act.has("stronger") else weaker}
        act = replace(act, do=frozenset(do))
    wanted, now = act.amount.value, read_value(state)
    if act.amount.role is not None or wanted is None or now is None or act.do.isdisjoint(STEPS):
        return act
    contradicts = wanted < now if act.goes_up else wanted > now
    is_small = state.domain == "climate" and wanted <= MAX_CHANGE
    return replace(act, amount=replace(act.amount, role="by")) if contradicts or is_small else act


def read_value(state: State) -> float | None:
    """Return the value that a step changes, in the unit of a command; None if it has none now."""
    attribute, factor = _VALUES.get(state.domain, ("", 1.0))
    value = state.attributes.get(attribute)
    return value * factor if isinstance(value, int | float) else None
