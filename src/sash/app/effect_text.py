"""The effect of a tool call in words, made from the preview that the tool returned."""

import json
from typing import Any

from sash.values.attribute_words import describe_arguments


def describe_call(tool: str, would: Any) -> str:
    """Return a call as the end of "The agent wants to …": "unlock Front door lock (lock.front_door, …)".

    A call that is not a service of the home is the name of its tool, with its effect as text or JSON.
    """
    if not isinstance(would, dict) or "service" not in would:
        effect = would if isinstance(would, str) else json.dumps(would, ensure_ascii=False)
        return f"use {tool}: {effect}" if would else f"use {tool}"
    domain, _, service = str(would["service"]).partition(".")
    verb = service.removesuffix(f"_{domain}").replace("_", " ")
    entities = ", ".join(map(_describe_entity, would.get("entities") or ()))
    data = describe_arguments(would.get("data") or {})
    return " ".join(filter(None, (verb, entities, data and f"({data})", _describe_side_effects(would))))


def _describe_side_effects(would: dict[str, Any]) -> str:
    """Return a clause about the other entities and services that a service call reaches, or nothing."""
    effects = (*would.get("acts_on", ()), *would.get("calls", ()))
    return f"which acts on {', '.join(effects)}" if effects else ""


def _describe_entity(entity: Any) -> str:
    if not isinstance(entity, dict):
        return str(entity)
    state = f", now {entity['now']}" if "now" in entity else ""
    return f"{entity.get('name') or entity.get('entity_id')} ({entity.get('entity_id')}{state})"
