"""Decides which entities are exposed to voice assistants. The agent sees only those.

While its conversation integration runs, Home Assistant stores a decision for every entity. If the decision
cannot be read, or was never made, Home Assistant's default for new entities applies. An entity without a
registry entry is then not exposed, because a user may have hidden it.
"""

from collections.abc import Collection
from typing import Any

ASSISTANT = "conversation"

_DOMAINS = frozenset(
    {
        "climate",
        "cover",
        "fan",
        "humidifier",
        "light",
        "media_player",
        "scene",
        "switch",
        "todo",
        "vacuum",
        "water_heater",
    }
)
_DEVICE_CLASSES = {
    "binary_sensor": frozenset({"door", "garage_door", "lock", "motion", "opening", "presence", "window"}),
    "sensor": frozenset(
        {
            "aqi",
            "carbon_dioxide",
            "carbon_monoxide",
            "humidity",
            "pm10",
            "pm25",
            "temperature",
            "volatile_organic_compounds",
        }
    ),
}


def is_exposed(
    entity_id: str, entry: dict[str, Any], device_class: str, exposed_ids: Collection[str] | None
) -> bool:
    """Return whether an entity is exposed. `entry` is its entry in the registry, or empty.

    `exposed_ids` is Home Assistant's list of exposed entities; None if there is none, or it cannot be read.
    """
    if exposed_ids is not None and entity_id in exposed_ids:
        return True
    options = (entry.get("options") or {}).get(ASSISTANT) or {}
    if "should_expose" in options:
        return bool(options["should_expose"])
    return exposed_ids is None and bool(entry) and _is_exposed_by_default(entity_id, entry, device_class)


def _is_exposed_by_default(entity_id: str, entry: dict[str, Any], device_class: str) -> bool:
    if entry.get("entity_category") or entry.get("hidden_by"):
        return False
    domain = entity_id.partition(".")[0]
    return domain in _DOMAINS or device_class in _DEVICE_CLASSES.get(domain, ())
