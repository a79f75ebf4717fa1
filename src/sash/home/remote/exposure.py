"""Which entities Home Assistant shows to its voice assistants: only those exist for an agent.

Home Assistant notes its decision for every entity while its conversation integration runs. Where the note
cannot be read, or was never made, its own rule for new entities holds; but what is in no registry, where the
note would be seen, is then not exposed: somebody may have hidden it.
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
    entity_id: str, entry: dict[str, Any], device_class: str, noted: Collection[str] | None
) -> bool:
    """Say whether an entity is exposed.

    `noted` are the ids that Home Assistant lists as exposed; None if it has no list, or may not be asked.
    """
    if noted is not None and entity_id in noted:
        return True
    note = (entry.get("options") or {}).get(ASSISTANT) or {}
    if "should_expose" in note:
        return bool(note["should_expose"])
    return noted is None and bool(entry) and _by_default(entity_id, entry, device_class)


def _by_default(entity_id: str, entry: dict[str, Any], device_class: str) -> bool:
    if entry.get("entity_category") or entry.get("hidden_by"):
        return False
    domain = entity_id.partition(".")[0]
    return domain in _DOMAINS or device_class in _DEVICE_CLASSES.get(domain, ())
