"""The effect of a tool call in words, made from the preview that the tool returned."""

import json
from typing import Any


def describe_effect(would: Any) -> str:
    """Describe the effect of a call: a service with its entities in words, anything else as JSON."""
    if not isinstance(would, dict) or "service" not in would:
        return would if isinstance(would, str) else json.dumps(would, ensure_ascii=False)
    data = json.dumps(would["data"], ensure_ascii=False) if would.get("data") else ""
    parts = (would["service"], describe_entities(would), data, describe_side_effects(would))
    return " ".join(filter(None, parts))


def describe_entities(would: dict[str, Any]) -> str:
    """List the entities that a service call changes, with their current states."""
    return ", ".join(map(_describe_entity, would.get("entities") or ()))


def describe_side_effects(would: dict[str, Any]) -> str:
    """Return a clause about the other entities and services that a service call reaches, or nothing."""
    effects = (*would.get("acts_on", ()), *would.get("calls", ()))
    return f"which acts on {', '.join(effects)}" if effects else ""


def _describe_entity(entity: Any) -> str:
    if not isinstance(entity, dict):
        return str(entity)
    state = f", now {entity['now']}" if "now" in entity else ""
    return f"{entity.get('name') or entity.get('entity_id')} ({entity.get('entity_id')}{state})"
