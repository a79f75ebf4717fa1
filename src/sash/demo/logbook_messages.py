"""The messages of the simulated logbook."""

from sash.ports.home import UNAVAILABLE, UNKNOWN

_BY_STATE = {UNAVAILABLE: "became unavailable", UNKNOWN: "became unknown"}

_BY_DOMAIN = {
    "cover": {"open": "was opened", "closed": "was closed"},
    "lock": {"locked": "was locked", "unlocked": "was unlocked"},
    "person": {"home": "is home", "not_home": "is away"},
    "alarm_control_panel": {"disarmed": "was disarmed", "armed_home": "was armed", "armed_away": "was armed"},
}
_BY_DEVICE_CLASS = {
    "connectivity": ("was connected", "was disconnected"),
    "door": ("was opened", "was closed"),
    "garage_door": ("was opened", "was closed"),
    "moisture": ("became wet", "became dry"),
    "motion": ("detected motion", "cleared (no motion detected)"),
    "occupancy": ("detected occupancy", "cleared (no occupancy detected)"),
    "opening": ("was opened", "was closed"),
    "window": ("was opened", "was closed"),
}


def describe_change(domain: str, device_class: str, state: str) -> str:
    """Return the logbook message for a change to a state, such as "was opened"."""
    if state in _BY_STATE:
        return _BY_STATE[state]
    if domain in ("scene", "button"):
        return "was activated" if domain == "scene" else "was pressed"
    if domain == "binary_sensor" and device_class in _BY_DEVICE_CLASS and state in ("on", "off"):
        return _BY_DEVICE_CLASS[device_class][state == "off"]
    if words := _BY_DOMAIN.get(domain, {}).get(state):
        return words
    return f"turned {state}" if state in ("on", "off") else f"changed to {state}"
