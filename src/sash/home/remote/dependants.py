"""What an automation or a script works with: the entities that its configuration names.

A name may stand in a list, in a text or in a template; a device, an area, a floor or a label stands for its
entities. What a blueprint has in its own body is not seen, only what it is given.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sash.ports.home import ANY_ID, Dependant, Entity, State

_name = re.compile(r"(?<![\w.])(?:states\.)?([a-z0-9_]+\.[a-z0-9_]+)")
_ANY_DOMAIN = frozenset({"", "homeassistant"})


@dataclass(frozen=True, slots=True)
class Places:
    """The entities by what a configuration may call them: `members["area_id"]["kitchen"]`."""

    entities: frozenset[str]
    by_registry_id: dict[str, str]
    members: dict[str, dict[str, frozenset[str]]]


def find_uses(config: Any, places: Places) -> frozenset[str]:
    """Return the entities that a configuration names, also those that are gone."""
    return frozenset(_walk(config, "", places))


def _walk(value: Any, domain: str, places: Places) -> Iterator[str]:
    """Go through a configuration; an action's domain picks among the entities of its area."""
    if isinstance(value, str):
        yield from places.entities.intersection(_name.findall(value))
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, domain, places)
    elif isinstance(value, dict):
        action = value.get("action") or value.get("service")
        domain = action.partition(".")[0] if isinstance(action, str) else domain
        # A device's own trigger, condition or action names the entity beside the device that it belongs to.
        is_own = "domain" in value and "entity_id" in value
        for key, item in value.items():
            if key == "entity_id":
                yield from _named(item, places)
            elif key in places.members and not is_own:
                yield from _members(item, places.members[key], domain)
            yield from _walk(item, domain, places)


def _services(value: Any) -> Iterator[str]:
    """Give the services that a configuration calls, however deep."""
    if isinstance(value, list):
        for item in value:
            yield from _services(item)
    elif isinstance(value, dict):
        action = value.get("action") or value.get("service")
        if isinstance(action, str) and ANY_ID.fullmatch(action):
            yield action
        for item in value.values():
            yield from _services(item)


def _named(value: Any, places: Places) -> Iterator[str]:
    """An entity is named by its id, or, where devices are, by its number in the registry."""
    for text in _texts(value):
        for part in text.split(","):
            name = places.by_registry_id.get(part.strip(), part.strip())
            if ANY_ID.fullmatch(name):
                yield name


def _members(value: Any, members: dict[str, frozenset[str]], domain: str) -> Iterator[str]:
    for text in _texts(value):
        for entity_id in members.get(text, ()):
            if domain in _ANY_DOMAIN or entity_id.startswith(f"{domain}."):
                yield entity_id


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def find_dependants(
    entities: Iterable[Entity], states: dict[str, State], configs: dict[str, Any], places: Places
) -> Iterator[Dependant]:
    """Say what works with others: automations and scripts by their configuration, the rest by their state."""
    for entity in entities:
        state = states.get(entity.id)
        uses = frozenset(_texts(state.attributes.get("entity_id"))) if state else frozenset[str]()
        kind: Literal["automation", "script", "scene", "group"] = "group"
        if entity.domain in ("automation", "script"):
            kind = "automation" if entity.domain == "automation" else "script"
            uses = find_uses(configs.get(entity.id), places)
        elif entity.domain == "scene":
            kind = "scene"
        uses -= {entity.id}
        services = frozenset(_services(configs.get(entity.id)))
        if uses or services:
            yield Dependant(entity.id, entity.name, kind, uses, services)
