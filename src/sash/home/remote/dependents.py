"""Finds the entities that automations, scripts, scenes and groups use.

A configuration may name entities in lists, texts and templates, or by a device, area, floor or label. The
body of a blueprint is not examined, only its inputs.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sash.ports.home import ID_PATTERN, Dependent, Entity, State

_TEMPLATE_NAME = re.compile(r"(?<![\w.])(?:states\.)?([a-z0-9_]+\.[a-z0-9_]+)")
_GENERIC_DOMAINS = frozenset({"", "homeassistant"})


@dataclass(frozen=True, slots=True)
class EntityLookup:
    """Maps the names in a configuration to entity ids: `members["area_id"]["kitchen"]`."""

    entities: frozenset[str]
    by_registry_id: dict[str, str]
    members: dict[str, dict[str, frozenset[str]]]


def find_uses(config: Any, lookup: EntityLookup) -> frozenset[str]:
    """Return the ids of the entities that a configuration names, including removed ones."""
    return frozenset(_find_in(config, "", lookup))


def _find_in(value: Any, domain: str, lookup: EntityLookup) -> Iterator[str]:
    """Yield the ids of the entities in a value. The domain of an action filters the entities of its areas."""
    if isinstance(value, str):
        yield from lookup.entities.intersection(_TEMPLATE_NAME.findall(value))
    elif isinstance(value, list):
        for item in value:
            yield from _find_in(item, domain, lookup)
    elif isinstance(value, dict):
        action = value.get("action") or value.get("service")
        domain = action.partition(".")[0] if isinstance(action, str) else domain
        # A device trigger, condition or action names both the device and one of its entities.
        is_device_entry = "domain" in value and "entity_id" in value
        for key, item in value.items():
            if key == "entity_id":
                yield from _find_named(item, lookup)
            elif key in lookup.members and not is_device_entry:
                yield from _find_members(item, lookup.members[key], domain)
            yield from _find_in(item, domain, lookup)


def _find_services(value: Any) -> Iterator[str]:
    """Yield the services that a nested configuration calls."""
    if isinstance(value, list):
        for item in value:
            yield from _find_services(item)
    elif isinstance(value, dict):
        action = value.get("action") or value.get("service")
        if isinstance(action, str) and ID_PATTERN.fullmatch(action):
            yield action
        for item in value.values():
            yield from _find_services(item)


def _find_named(value: Any, lookup: EntityLookup) -> Iterator[str]:
    """Yield the entities of an `entity_id` value, which holds entity ids or registry ids."""
    for text in _list_texts(value):
        for part in text.split(","):
            name = lookup.by_registry_id.get(part.strip(), part.strip())
            if ID_PATTERN.fullmatch(name):
                yield name


def _find_members(value: Any, members: dict[str, frozenset[str]], domain: str) -> Iterator[str]:
    for text in _list_texts(value):
        for entity_id in members.get(text, ()):
            if domain in _GENERIC_DOMAINS or entity_id.startswith(f"{domain}."):
                yield entity_id


def _list_texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def find_dependents(
    entities: Iterable[Entity], states: dict[str, State], configs: dict[str, Any], lookup: EntityLookup
) -> Iterator[Dependent]:
    """Yield the automations, scripts, scenes and groups that use other entities.

    Automations and scripts are examined by their configuration, scenes and groups by their state.
    """
    for entity in entities:
        state = states.get(entity.id)
        uses = frozenset(_list_texts(state.attributes.get("entity_id"))) if state else frozenset[str]()
        kind: Literal["automation", "script", "scene", "group"] = "group"
        if entity.domain in ("automation", "script"):
            kind = "automation" if entity.domain == "automation" else "script"
            uses = find_uses(configs.get(entity.id), lookup)
        elif entity.domain == "scene":
            kind = "scene"
        uses -= {entity.id}
        services = frozenset(_find_services(configs.get(entity.id)))
        if uses or services:
            yield Dependent(entity.id, entity.name, kind, uses, services)
