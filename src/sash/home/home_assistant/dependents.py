"""Finds the entities that automations, scripts and other entities use, and the services that they call.

A configuration may name entities in lists, texts and templates, or by a device, area, floor or label. What a
configuration does not tell, such as a service that a template names, counts as any service.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from sash.ports.home import ANY_SERVICE, ID_PATTERN, Dependent, Entity, State

_TEMPLATE_NAME = re.compile(r"(?<![\w.])(?:states\.)?([a-z0-9_]+\.[a-z0-9_]+)")
_GENERIC_DOMAINS = frozenset({"", "homeassistant"})
_SERVICE_KEYS = ("action", "service", "service_template")
_NESTED_KEYS = ("sequence", "then", "else", "default", "parallel", "choose", "repeat")
# The keys of all other kinds of steps in Home Assistant.
_OTHER_STEPS = frozenset(
    {"delay", "wait_template", "condition", "and", "or", "not", "event", "device_id", "scene"}
    | {"wait_for_trigger", "variables", "if", "stop", "set_conversation_response"}
)
_STEPS = _OTHER_STEPS.union(_SERVICE_KEYS, _NESTED_KEYS)
# Parts of a template entity that a service does not run: triggers run `actions` by themselves.
_NO_ACTIONS = frozenset(
    {"attributes", "variables", "trigger", "triggers", "condition", "conditions", "action", "actions"}
)
# The targets of these services may be scripts, scenes and automations.
_STARTING_DOMAINS = frozenset({"homeassistant", "scene", "automation"})
_STARTING_SERVICES = frozenset({"script.turn_on", "script.toggle"})
_PREFIX = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]*)?")


@dataclass(frozen=True, slots=True)
class EntityLookup:
    """Maps the names in a configuration to entity ids: `members["area_id"]["kitchen"]`.

    `scripts` maps the services of scripts to their entities, which may have other names.
    """

    entities: frozenset[str]
    by_registry_id: dict[str, str]
    members: dict[str, dict[str, frozenset[str]]]
    scripts: dict[str, str] = field(default_factory=dict)


def find_uses(config: Any, lookup: EntityLookup) -> frozenset[str]:
    """Return the ids of the entities that a configuration names, including removed ones."""
    return frozenset(_find_in(config, "", lookup))


def _find_in(value: Any, domain: str, lookup: EntityLookup) -> Iterator[str]:
    """Yield the ids of the entities in a value. The domain of an action filters the entities of its areas."""
    if isinstance(value, str):
        yield from lookup.entities.intersection(_TEMPLATE_NAME.findall(value.lower()))
    elif isinstance(value, list):
        for item in value:
            yield from _find_in(item, domain, lookup)
    elif isinstance(value, dict):
        services = [value[key] for key in _SERVICE_KEYS if isinstance(value.get(key), str)]
        if services:
            service = _read_service(services[0])
            yield from _list_texts(lookup.scripts.get(service))
            domain = service.partition(".")[0] if "." in service else ""
        # A device trigger, condition or action names both the device and one of its entities.
        is_device_entry = "domain" in value and "entity_id" in value
        for key, item in value.items():
            if key == "entity_id":
                yield from _find_named(item, lookup)
            elif key in lookup.members and not is_device_entry:
                yield from _find_members(item, lookup.members[key], domain)
            yield from _find_in(key, domain, lookup)
            yield from _find_in(item, domain, lookup)


def find_services(config: Any) -> frozenset[str]:
    """Return the services that the configuration of an automation or script calls.

    `light.*` is some service of a domain, and `ANY_SERVICE` a service that cannot be told.
    """
    if not isinstance(config, dict) or "use_blueprint" in config:
        return frozenset({ANY_SERVICE})
    return frozenset(_find_services([config.get(key) for key in ("sequence", "actions", "action")]))


def _find_template_actions(config: Any) -> list[Any]:
    """Return the sequences that the services of a template entity run, such as `turn_on` of a switch."""
    if not isinstance(config, dict):
        return []
    return [
        value
        for key, value in config.items()
        if key not in _NO_ACTIONS
        and (_is_step(value) or (isinstance(value, list) and value and all(map(_is_step, value))))
    ]


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and not _STEPS.isdisjoint(value)


def _find_services(value: Any) -> Iterator[str]:
    """Yield the services that the steps of a sequence call. Disabled steps count, too."""
    if isinstance(value, list):
        for item in value:
            yield from _find_services(item)
    elif isinstance(value, dict):
        services = [_read_service(value[key]) for key in _SERVICE_KEYS if key in value]
        yield from services
        if "scene" in value:
            yield "scene.turn_on"
        if "device_id" in value and "condition" not in value and not services:
            yield f"{value.get('domain', '')}.*".lower()
        if (
            "event" in value  # It may start any automation.
            or _STEPS.isdisjoint(value)
            or (any(map(_starts_others, services)) and _has_open_target(value))
        ):
            yield ANY_SERVICE
        for key in _NESTED_KEYS:
            yield from _find_services(value.get(key))


def _read_service(value: Any) -> str:
    """Return the service that a step names, in small letters as Home Assistant calls it.

    The part from a template on becomes `*`.
    """
    text = value.strip().lower() if isinstance(value, str) else ""
    if ID_PATTERN.fullmatch(text):
        return text
    prefix, brace, _ = text.partition("{")
    return f"{prefix}*" if brace and _PREFIX.fullmatch(prefix) else ANY_SERVICE


def _starts_others(service: str) -> bool:
    return service in _STARTING_SERVICES or service.partition(".")[0] in _STARTING_DOMAINS


def _has_open_target(step: dict[str, Any]) -> bool:
    """Return True if a configuration does not tell the entities that a step acts on."""
    pending = [step.get(key) for key in ("entity_id", "target", "data", "data_template")]
    while pending:
        value = pending.pop()
        if isinstance(value, str) and ("{" in value or value.strip().lower() == "all"):
            return True
        if isinstance(value, dict):
            pending += [*value, *(value[key] for key in value if key != "variables")]
        elif isinstance(value, list):
            pending += value
    return False


def _find_named(value: Any, lookup: EntityLookup) -> Iterator[str]:
    """Yield the entities of an `entity_id` value, which holds entity ids or registry ids."""
    for text in _list_texts(value):
        for part in text.split(","):
            name = part.strip().lower()
            name = lookup.by_registry_id.get(name, name)
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
    """Yield the automations, scripts, scenes, groups and templates that use other entities.

    Automations, scripts and templates are examined by their configuration, scenes and groups by their state.
    If a configuration is missing, the automation or script may call any service.
    """
    for entity in entities:
        state = states.get(entity.id)
        uses = frozenset(_list_texts(state.attributes.get("entity_id"))) if state else frozenset[str]()
        services = acts_on = frozenset[str]()
        kind: Literal["automation", "script", "scene", "group", "template"] = "group"
        if entity.domain in ("automation", "script"):
            kind = "automation" if entity.domain == "automation" else "script"
            config = configs.get(entity.id)
            uses, services = find_uses(config, lookup), find_services(config)
        elif entity.domain == "scene":
            kind = "scene"
        elif entity.id in configs:
            actions = _find_template_actions(configs[entity.id])
            kind, uses = "template", find_uses(configs[entity.id], lookup)
            acts_on, services = find_uses(actions, lookup) - {entity.id}, frozenset(_find_services(actions))
            if any(service.partition(".")[0] in _GENERIC_DOMAINS for service in services):
                services |= {f"{used.partition('.')[0]}.*" for used in acts_on}
        uses -= {entity.id}
        if uses or services:
            yield Dependent(entity.id, entity.name, kind, uses, services, acts_on)
