"""The kinds of things in a home, and the entities that belong to them."""

from collections.abc import Mapping

_BY_DOMAIN: Mapping[str, tuple[str, ...]] = {
    "alarm_control_panel": ("alarm",),
    "automation": ("automation",),
    "button": ("button",),
    "calendar": ("calendar",),
    "camera": ("camera",),
    "climate": ("climate",),
    "fan": ("fan",),
    "humidifier": ("humidifier",),
    "input_boolean": ("switch",),
    "input_button": ("button",),
    "lawn_mower": ("mower",),
    "light": ("light",),
    "lock": ("lock", "door"),
    "media_player": ("media",),
    "person": ("person",),
    "scene": ("scene",),
    "script": ("script",),
    "sensor": ("sensor",),
    "binary_sensor": ("sensor",),
    "siren": ("siren",),
    "switch": ("switch",),
    "timer": ("timer",),
    "todo": ("list",),
    "vacuum": ("vacuum",),
    "valve": ("valve",),
    "water_heater": ("water_heater",),
    "weather": ("weather",),
}
_BY_CLASS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("binary_sensor", "door"): ("door",),
    ("binary_sensor", "garage_door"): ("garage_door", "door"),
    ("binary_sensor", "opening"): ("door", "window"),
    ("binary_sensor", "window"): ("window",),
    ("binary_sensor", "lock"): ("lock", "door"),
    ("cover", "door"): ("door",),
    ("cover", "garage"): ("garage_door", "door"),
    ("cover", "gate"): ("gate", "door"),
    ("cover", "window"): ("window",),
    ("media_player", "tv"): ("tv", "video"),
    ("media_player", "speaker"): ("speaker",),
    ("media_player", "receiver"): ("speaker",),
    ("switch", "outlet"): ("outlet",),
    ("sensor", "temperature"): ("thermometer",),
}
# The classes of blinds that have words of their own.
_COVERINGS = frozenset({"awning", "curtain", "shade", "shutter"})
COVERING_KEYS = frozenset(f"kind.{covering}" for covering in _COVERINGS)
# The property that a sensor of a device class measures.
_PROPERTIES: Mapping[str, str] = {
    "aqi": "co2",
    "atmospheric_pressure": "pressure",
    "battery": "battery",
    "carbon_dioxide": "co2",
    "energy": "energy",
    "gas": "gas",
    "humidity": "humidity",
    "illuminance": "brightness",
    "moisture": "humidity",
    "motion": "moving",
    "occupancy": "moving",
    "power": "power",
    "presence": "moving",
    "pressure": "pressure",
    "temperature": "temperature",
    "voltage": "voltage",
    "water": "water",
}
# Covers of these classes are doors and windows. The others are blinds.
_NOT_BLINDS = frozenset({"door", "garage", "gate", "window", "damper"})


def list_kinds(domain: str, device_class: str) -> tuple[str, ...]:
    """Return the keys of the kinds of an entity, such as "kind.light", and of what it measures."""
    kinds = (*_BY_DOMAIN.get(domain, ()), *_BY_CLASS.get((domain, device_class), ()))
    if domain == "media_player" and not device_class:
        kinds = (*kinds, "video")  # Nothing tells that it has no screen.
    if domain == "cover" and device_class not in _NOT_BLINDS:
        kinds = (*kinds, "blind", *_COVERINGS.intersection([device_class]))
    found = tuple(f"kind.{kind}" for kind in kinds)
    measured = _PROPERTIES.get(device_class) if domain in ("sensor", "binary_sensor") else None
    return (*found, f"property.{measured}") if measured else found
