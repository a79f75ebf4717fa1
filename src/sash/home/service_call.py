"""A service call, checked before it is made.

It names exposed entities only, one by one. Areas are resolved here, and no argument can name a hidden entity.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from sash.errors import InvalidInput
from sash.home.index import HomeIndex
from sash.home.selectors import find_problem
from sash.ports.home import ENTITY_ID_PATTERN, ID_PATTERN, Entity, Service, ServiceField
from sash.ports.tools import ServiceUse

MAX_ENTITIES = 500
MAX_DESCRIPTION_CHARS = 60

_TARGET_ARGUMENTS = frozenset(
    {"entity_id", "entity_ids", "device_id", "area_id", "floor_id", "label_id", "target"}
)
# The services of this domain act on entities of every domain.
_GENERIC_DOMAIN = "homeassistant"
# Each script is a service of its own. These are the services that act on scripts.
_SCRIPT_VERBS = frozenset({"turn_on", "turn_off", "toggle", "reload"})
# Services that can have the effect of other services. A policy that denies one of those denies them, too.
_IMPLIED_VERBS = {
    "toggle": ("*",),
    "set_cover_position": ("open_cover", "close_cover"),
    "set_valve_position": ("open_valve", "close_valve"),
    "set_hvac_mode": ("turn_on", "turn_off"),
    "set_percentage": ("turn_on", "turn_off"),
    "open": ("unlock",),
}
_CONTAINER_DOMAINS = frozenset({"group", "scene", "script", "automation"})
_BRIGHTNESS_ARGUMENTS = ("brightness", "brightness_pct", "brightness_step", "brightness_step_pct")
_TEMPLATE = re.compile(r"\{[{%#]")
# Selectors whose values may hold entity ids.
_ENTITY_SELECTORS = frozenset({"entity", "target", "object"})


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A service with its target entities and its arguments.

    `data_entities` are the entities that the arguments name. `member_ids` are the entities inside the groups,
    scenes and scripts of the call, and `member_services` the services that those call. `response` says
    whether the service returns data.
    """

    service: str
    entities: tuple[Entity, ...]
    data: dict[str, Any]
    data_entities: tuple[Entity, ...] = ()
    member_ids: frozenset[str] = frozenset()
    member_services: frozenset[str] = frozenset()
    response: Literal["none", "optional", "only"] = "none"

    @property
    def entity_ids(self) -> tuple[str, ...]:
        return tuple(entity.id for entity in self.entities)

    def list_uses(self) -> list[ServiceUse]:
        """Return the services that a policy must check.

        These are the service itself, and the services it may imply for each domain. The members of a group,
        scene or script are allowed together with it, unless the policy denies them explicitly.
        """
        domain, _, verb = self.service.partition(".")
        domains = {entity.domain for entity in self.entities} if domain == _GENERIC_DOMAIN else set()
        member_domains = {member.partition(".")[0] for member in self.member_ids} - _CONTAINER_DOMAINS
        turns_off = any(self.data.get(name, 1) <= 0 for name in _BRIGHTNESS_ARGUMENTS)
        implied_verbs = (*_IMPLIED_VERBS.get(verb, ()), *(("turn_off",) if turns_off else ()))
        implied = {f"{each}.{implied_verb}" for each in {domain, *domains} for implied_verb in implied_verbs}
        implied |= {f"{each}.*" for each in member_domains} | self.member_services
        return [
            ServiceUse(self.service),
            *(ServiceUse(f"{each}.{verb}") for each in sorted(domains)),
            *(ServiceUse(f"{each}.*") for each in sorted({entity.domain for entity in self.data_entities})),
            # The first denied use is the reason that the user reads, so exact names come first.
            *(
                ServiceUse(each, within=True)
                for each in sorted(implied, key=lambda name: ("*" in name, name))
            ),
        ]


def parse_service_call(
    arguments: dict[str, Any], index: HomeIndex, services: dict[str, Service]
) -> ServiceCall:
    """Read and check the arguments of the tool `call_service`.

    Raises `InvalidInput` or `EntityNotFound` with a message that lets the model correct the call.
    """
    name = str(arguments["service"]).strip().lower()
    service = services.get(name) if is_known_service(name, index) else None
    if service is None:
        known = [other for other in services if is_known_service(other, index)]
        similar = get_close_matches(name, known, n=3) or sorted(
            other for other in known if other.startswith(f"{name.partition('.')[0]}.")
        )
        hint = f"; there are {_describe({n: services[n] for n in similar[:8]})}" if similar else ""
        raise InvalidInput(f"there is no service {name!r}{hint}")
    data = dict(arguments.get("data") or {})
    entities = tuple(_find_entities(arguments, index, service))
    data_entities = tuple(_check_data(service, data, index))
    _check_entities(service, entities)
    acting = [*entities, *data_entities]
    if name.partition(".")[0] == "script" and name in index.entities:
        acting.append(index.entities[name])
    contents = [index.list_contents(entity.id) for entity in acting]
    member_ids = frozenset[str]().union(*(ids for ids, _ in contents))
    member_services = frozenset[str]().union(*(called for _, called in contents))
    return ServiceCall(name, entities, data, data_entities, member_ids, member_services, service.response)


def is_known_service(service: str, index: HomeIndex) -> bool:
    """Return whether the agent may know a service. The service of a script that is not exposed is hidden."""
    domain, _, verb = service.partition(".")
    return domain != "script" or verb in _SCRIPT_VERBS or service in index.entities


def _describe(items: Mapping[str, Service | ServiceField]) -> str:
    """Return a list of services or arguments with their descriptions, as text."""
    described = [
        f"{name} ({item.description[:MAX_DESCRIPTION_CHARS]})" if item.description else name
        for name, item in items.items()
    ]
    return ", ".join(described) or "none"


def _find_entities(arguments: dict[str, Any], index: HomeIndex, service: Service) -> Iterator[Entity]:
    found = {index.find(name).id: None for name in arguments.get("entity_ids") or ()}
    for name in arguments.get("areas") or ():
        area = index.find_area(name)
        fitting = [entity.id for entity in index.list_area_entities(area.id) if _accepts(service, entity)]
        if not fitting:
            raise InvalidInput(f"no entity in {area.name} supports {service.name}")
        found |= dict.fromkeys(fitting)
    return (index.entities[entity_id] for entity_id in found)


def _check_entities(service: Service, entities: tuple[Entity, ...]) -> None:
    if service.target is None and entities:
        raise InvalidInput(f"{service.name} takes no entities: leave out entity_ids and areas")
    if service.target is not None and not entities:
        raise InvalidInput(f"{service.name} needs entity_ids or areas")
    if len(entities) > MAX_ENTITIES:
        raise InvalidInput(f"{len(entities)} entities at once are too many: at most {MAX_ENTITIES}")
    unable = [entity.id for entity in entities if not _accepts(service, entity)]
    if unable:
        raise InvalidInput(f"{service.name} does not support {', '.join(unable)}")


def _accepts(service: Service, entity: Entity) -> bool:
    return not service.target_domains or entity.domain in service.target_domains


def _check_data(service: Service, data: dict[str, Any], index: HomeIndex) -> Iterator[Entity]:
    """Check the arguments of a service and yield the entities that they name, which must be exposed."""
    if targets := _TARGET_ARGUMENTS.intersection(data):
        raise InvalidInput(f"{', '.join(sorted(targets))} does not belong in data: use entity_ids or areas")
    if unknown := [name for name in data if name not in service.fields]:
        raise InvalidInput(
            f"{service.name} has no argument {', '.join(unknown)}; it takes: {_describe(service.fields)}"
        )
    missing = [name for name, field in service.fields.items() if field.required and name not in data]
    if missing:
        raise InvalidInput(f"{service.name} needs {_describe({n: service.fields[n] for n in missing})}")
    for name, value in data.items():
        field = service.fields[name]
        if problem := find_problem(field.selector, value):
            raise InvalidInput(f"{name} of {service.name} {problem}, not {value!r:.80}")
        yield from _find_named_entities(service.name, name, field, value, index)


def _find_named_entities(
    service: str, argument: str, field: ServiceField, value: Any, index: HomeIndex
) -> Iterator[Entity]:
    """Yield the entities that an argument names. A hidden entity raises `EntityNotFound`."""
    may_hold_ids = not _ENTITY_SELECTORS.isdisjoint(field.selector) or not field.selector
    for text, is_key in _list_texts(value):
        if _TEMPLATE.search(text):
            raise InvalidInput(f"{argument} of {service} does not accept a template: give the value itself")
        lower = text.lower()
        for hidden in filter(index.is_hidden, ID_PATTERN.findall(lower)):
            index.find(hidden)
        pattern = ID_PATTERN if may_hold_ids or is_key else ENTITY_ID_PATTERN
        # Home Assistant accepts ids in capitals, and several ids with commas between them.
        for piece in (piece.strip() for piece in lower.split(",")):
            if pattern.fullmatch(piece):
                yield index.find(piece)


def _list_texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield every text in a nested value, and whether the text is a key."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, dict):
        yield from ((key, True) for key in value if isinstance(key, str))
        for inner in value.values():
            yield from _list_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)
