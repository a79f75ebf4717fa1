"""Writes the calls that take things back to how they are now: "22 degrees for two hours"."""

from collections.abc import Sequence
from typing import Any

from sash.home.index import HomeIndex
from sash.intents.situation import PlannedCall
from sash.ports.home import State

# The attribute that a service sets, and how its value is given to the service.
_ATTRIBUTES = {
    "climate.set_temperature": ("temperature", "temperature", 1.0),
    "light.turn_on": ("brightness", "brightness_pct", 100 / 255),
    "fan.set_percentage": ("percentage", "percentage", 1.0),
    "media_player.volume_set": ("volume_level", "volume_level", 1.0),
    "cover.set_cover_position": ("current_position", "position", 1.0),
    "humidifier.set_humidity": ("humidity", "humidity", 1.0),
}
_TURNED_OFF = frozenset({"light", "fan"})


def restore_states(calls: Sequence[PlannedCall], index: HomeIndex) -> list[dict[str, Any]]:
    """Return the calls that undo some calls later. Empty if one of them cannot be undone."""
    restored: list[dict[str, Any]] = []
    for call in calls:
        service = str(call.arguments["service"])
        for entity_id in call.arguments["entity_ids"]:
            state = index.states.get(entity_id)
            back = _restore(service, state) if state is not None else None
            if back is None:
                return []
            restored.append(back)
    return restored


def _restore(service: str, state: State) -> dict[str, Any] | None:
    if state.domain in _TURNED_OFF and state.state == "off":
        return {"service": f"{state.domain}.turn_off", "entity_ids": [state.entity_id], "data": {}}
    attribute, name, factor = _ATTRIBUTES.get(service, ("", "", 1.0))
    value = state.attributes.get(attribute)
    if not isinstance(value, int | float):
        return None
    written = round(value * factor) if name != "volume_level" and factor != 1.0 else value
    return {"service": service, "entity_ids": [state.entity_id], "data": {name: written}}
