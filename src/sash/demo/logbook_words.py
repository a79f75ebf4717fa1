"""How a logbook says that a state has changed."""

from sash.ports.home import UNAVAILABLE, UNKNOWN

_ANY = {UNAVAILABLE: "became unavailable", UNKNOWN: "became unknown"}

_BY_DOMAIN = {
    "cover": {"open": "was opened", "closed": "was closed"},
    "lock": {"locked": "was locked", "unlocked": "was unlocked"},
    "person": {"home": "is home", "not_home": "is away"},
    "alarm_control_panel": {"disarmed": "was disarmed", "armed_home": "was armed", "armed_away": "was armed"},
}
_BY_CLASS = {
    "connectivity": ("was connected", "was disconnected"),
    "door": ("was opened", "was closed"),
    "garage_door": ("was opened", "was closed"),
    "moisture": ("became wet", "became dry"),
    "motion": ("detected motion", "cleared (no motion detected)"),
    "occupancy": ("detected occupancy", "cleared (no occupancy detected)"),
    "opening": ("was opened", "was closed"),
    "window": ("was opened", "was closed"),
}


def in_words(domain: str, device_class: str, state: str) -> str:
    """Say what an entity did when it came to a state."""
    if state in _ANY:
        return _ANY[state]
    if domain in ("scene", "button"):
        return "was activated" if domain == "scene" else "was pressed"
    if domain == "binary_sensor" and device_class in _BY_CLASS and state in ("on", "off"):
        return _BY_CLASS[device_class][state == "off"]
    if words := _BY_DOMAIN.get(domain, {}).get(state):
        return words
    return f"turned {state}" if state in ("on", "off") else f"changed to {state}"
