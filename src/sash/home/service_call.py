"""An order to the house: a service, its arguments and its entities, checked before anybody is asked.

It names exposed entities only, one by one: areas are resolved here, and an entity that is not exposed cannot
be smuggled in by an argument either.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sash.errors import InvalidInput
from sash.home.index import Index
from sash.home.selectors import wrong
from sash.ports.home import ANY_ID, ENTITY_ID, Entity, Service, ServiceField
from sash.ports.tools import ServiceUse

MAX_ENTITIES = 500
LONGEST_DESCRIPTION = 60

_TARGETS = frozenset({"entity_id", "entity_ids", "device_id", "area_id", "floor_id", "label_id", "target"})
# Services for everything: what they do depends on what they are done to.
_GENERIC = "homeassistant"
# A script is a service, too; these are services for scripts.
_SCRIPT_VERBS = frozenset({"turn_on", "turn_off", "toggle", "reload"})
# What a service may come to, so that who refuses the one refuses the other; "*" is anything.
_COMES_TO = {
    "toggle": ("*",),
    "set_cover_position": ("open_cover", "close_cover"),
    "set_valve_position": ("open_valve", "close_valve"),
    "set_hvac_mode": ("turn_on", "turn_off"),
    "set_percentage": ("turn_on", "turn_off"),
    "open": ("unlock",),
}
_HOLDERS = frozenset({"group", "scene", "script", "automation"})
_DIMMING = ("brightness", "brightness_pct", "brightness_step", "brightness_step_pct")
_TEMPLATE = re.compile(r"\{[{%#]")
# Arguments that take entities, in whatever form.
_TAKES_ENTITIES = frozenset({"entity", "target", "object"})


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """What the house is asked to do.

    `named` are entities in its arguments; `members` are those within its groups, scenes and scripts, and
    `called` the services that those call.
    """

    service: str
    entities: tuple[Entity, ...]
    data: dict[str, Any]
    named: tuple[Entity, ...] = ()
    members: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()

    @property
    def entity_ids(self) -> tuple[str, ...]:
        return tuple(entity.id for entity in self.entities)

    def uses(self) -> list[ServiceUse]:
        """Return what a policy has to look at: the service, and what it may do to each kind of entity.

        What is within a group, a scene or a script is allowed with it, but not if it is refused by itself.
        """
        domain, _, verb = self.service.partition(".")
        kinds = {entity.domain for entity in self.entities} if domain == _GENERIC else set()
        inside = {f"{kind}.{one}" for kind in {domain, *kinds} for one in self._comes_to(verb)}
        inside |= {f"{kind}.*" for kind in self._member_kinds()} | self.called
        return [
            ServiceUse(self.service),
            *(ServiceUse(f"{kind}.{verb}") for kind in sorted(kinds)),
            *(ServiceUse(f"{kind}.*") for kind in sorted({entity.domain for entity in self.named})),
            *(ServiceUse(service, within=True) for service in sorted(inside)),
        ]

    def _member_kinds(self) -> set[str]:
        """Return the kinds of what is within; what only holds others is nothing by itself."""
        return {member.partition(".")[0] for member in self.members} - _HOLDERS

    def _comes_to(self, verb: str) -> tuple[str, ...]:
        dims = any(self.data.get(name, 1) <= 0 for name in _DIMMING)
        return (*_COMES_TO.get(verb, ()), *(("turn_off",) if dims else ()))


def read_order(arguments: dict[str, Any], index: Index, services: dict[str, Service]) -> ServiceCall:
    """Read what a tool was asked for; what is wrong with it is said so that it can be mended."""
    name = str(arguments["service"]).strip().lower()
    service = services.get(name) if _is_known(name, index) else None
    if service is None:
        known = [one for one in services if _is_known(one, index)]
        near = get_close_matches(name, known, n=3) or sorted(
            one for one in known if one.startswith(f"{name.partition('.')[0]}.")
        )
        hint = f"; there are {_described({one: services[one] for one in near[:8]})}" if near else ""
        raise InvalidInput(f"there is no service {name!r}{hint}")
    data = dict(arguments.get("data") or {})
    entities = tuple(_entities(arguments, index, service))
    named = tuple(_check_data(service, data, index))
    _check_entities(service, entities)
    acting = [*entities, *named]
    if name.partition(".")[0] == "script" and name in index.entities:
        acting.append(index.entities[name])
    inside = [index.inside(entity.id) for entity in acting]
    members = frozenset[str]().union(*(found for found, _ in inside))
    called = frozenset[str]().union(*(services for _, services in inside))
    return ServiceCall(name, entities, data, named, members, called)


def _described(named: Mapping[str, Service | ServiceField]) -> str:
    """Name services or arguments with what they are for, so that the right one is found."""
    told = [
        f"{name} ({one.description[:LONGEST_DESCRIPTION]})" if one.description else name
        for name, one in named.items()
    ]
    return ", ".join(told) or "none"


def _is_known(service: str, index: Index) -> bool:
    """Whether the agent knows of a service: one that is a script has to be exposed."""
    domain, _, verb = service.partition(".")
    return domain != "script" or verb in _SCRIPT_VERBS or service in index.entities


def _entities(arguments: dict[str, Any], index: Index, service: Service) -> Iterator[Entity]:
    found = {index.find(called).id: None for called in arguments.get("entity_ids") or ()}
    for called in arguments.get("areas") or ():
        area = index.find_area(called)
        fitting = [entity.id for entity in index.in_area(area.id) if _takes(service, entity)]
        if not fitting:
            raise InvalidInput(f"there is nothing in {area.name} that {service.name} could be done to")
        found |= dict.fromkeys(fitting)
    return (index.entities[entity_id] for entity_id in found)


def _check_entities(service: Service, entities: tuple[Entity, ...]) -> None:
    if service.target is None and entities:
        raise InvalidInput(f"{service.name} is not done to entities: leave entity_ids and areas out")
    if service.target is not None and not entities:
        raise InvalidInput(f"{service.name} needs entity_ids (or areas): what shall it be done to?")
    if len(entities) > MAX_ENTITIES:
        raise InvalidInput(f"{len(entities)} entities at once are too many: at most {MAX_ENTITIES}")
    unable = [entity.id for entity in entities if not _takes(service, entity)]
    if unable:
        raise InvalidInput(f"{service.name} cannot be done to {', '.join(unable)}")


def _takes(service: Service, entity: Entity) -> bool:
    return not service.takes or entity.domain in service.takes


def _check_data(service: Service, data: dict[str, Any], index: Index) -> Iterator[Entity]:
    """Check the arguments, and give the entities that are named in them: they have to be exposed."""
    if targets := _TARGETS.intersection(data):
        raise InvalidInput(f"{', '.join(sorted(targets))} does not belong in data: use entity_ids or areas")
    if unknown := [name for name in data if name not in service.fields]:
        raise InvalidInput(
            f"{service.name} has no argument {', '.join(unknown)}; it takes: {_described(service.fields)}"
        )
    missing = [name for name, field in service.fields.items() if field.required and name not in data]
    if missing:
        raise InvalidInput(f"{service.name} needs {_described({n: service.fields[n] for n in missing})}")
    for name, value in data.items():
        field = service.fields[name]
        if wrong_value := wrong(field.selector, value):
            raise InvalidInput(f"{name} of {service.name} {wrong_value}, not {value!r:.80}")
        yield from _named(service.name, name, field, value, index)


def _named(service: str, argument: str, field: ServiceField, value: Any, index: Index) -> Iterator[Entity]:
    """Give the entities that an argument names, in whatever way; one that is hidden is not there."""
    anything = not _TAKES_ENTITIES.isdisjoint(field.selector) or not field.selector
    for text, is_key in _texts(value):
        if _TEMPLATE.search(text):
            raise InvalidInput(f"{argument} of {service} takes no template: say what is meant")
        lower = text.lower()
        for hidden in filter(index.is_hidden, ANY_ID.findall(lower)):
            index.find(hidden)
        pattern = ANY_ID if anything or is_key else ENTITY_ID
        # Home Assistant takes ids in capitals, and lists with commas.
        for piece in (piece.strip() for piece in lower.split(",")):
            if pattern.fullmatch(piece):
                yield index.find(piece)


def _texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Give all texts in an argument, however deep, and whether each is a key."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, dict):
        yield from ((key, True) for key in value if isinstance(key, str))
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
