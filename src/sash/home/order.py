"""An order to the house: a service, its arguments and its entities, checked before anybody is asked.

It names exposed entities only, one by one: areas are resolved here, and an entity that is not exposed cannot
be smuggled in by an argument either.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sash.errors import InvalidInput
from sash.home.base import ENTITY_ID, Entity, Service, ServiceField
from sash.home.index import Index

MOST_ENTITIES = 100

_TARGETS = frozenset({"entity_id", "entity_ids", "device_id", "area_id", "floor_id", "label_id", "target"})
# Services for everything: what they do depends on what they are done to.
_GENERIC = "homeassistant"


@dataclass(frozen=True, slots=True)
class Order:
    """What the house is asked to do."""

    service: str
    entities: tuple[Entity, ...]
    data: dict[str, Any]

    @property
    def entity_ids(self) -> tuple[str, ...]:
        return tuple(entity.id for entity in self.entities)

    def judged_as(self) -> tuple[str, ...]:
        """Return the services that a policy has to allow: one for everything is also what it does to each."""
        domain, _, verb = self.service.partition(".")
        if domain != _GENERIC:
            return (self.service,)
        return (self.service, *sorted({f"{entity.domain}.{verb}" for entity in self.entities}))


def read_order(arguments: dict[str, Any], index: Index, services: dict[str, Service]) -> Order:
    """Read what a tool was asked for; what is wrong with it is said so that it can be mended."""
    name = str(arguments["service"]).strip().lower()
    service = services.get(name)
    if service is None:
        near = get_close_matches(name, services, n=3) or sorted(
            s for s in services if s.startswith(f"{name.partition('.')[0]}.")
        )
        hint = f"; there are {', '.join(near[:8])}" if near else ""
        raise InvalidInput(f"there is no service {name!r}{hint}")
    data = dict(arguments.get("data") or {})
    entities = tuple(_entities(arguments, index, service))
    _check_data(service, data, index)
    _check_entities(service, entities)
    return Order(name, entities, data)


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
    if len(entities) > MOST_ENTITIES:
        raise InvalidInput(f"{len(entities)} entities at once are too many: at most {MOST_ENTITIES}")
    wrong = [entity.id for entity in entities if not _takes(service, entity)]
    if wrong:
        raise InvalidInput(f"{service.name} cannot be done to {', '.join(wrong)}")


def _takes(service: Service, entity: Entity) -> bool:
    """Whether a service can be done to an entity, by its domain."""
    filters = _listed((service.target or {}).get("entity"))
    domains = {domain for wanted in filters for domain in _listed(wanted.get("domain"))}
    return not domains or entity.domain in domains


def _check_data(service: Service, data: dict[str, Any], index: Index) -> None:
    if wrong := _TARGETS.intersection(data):
        raise InvalidInput(f"{', '.join(sorted(wrong))} does not belong in data: use entity_ids or areas")
    if unknown := [name for name in data if name not in service.fields]:
        known = ", ".join(service.fields) or "none"
        raise InvalidInput(f"{service.name} has no argument {', '.join(unknown)}; it takes: {known}")
    missing = [name for name, field in service.fields.items() if field.required and name not in data]
    if missing:
        raise InvalidInput(f"{service.name} needs {', '.join(missing)}")
    for name, value in data.items():
        if wrong_value := _wrong(service.fields[name], value):
            raise InvalidInput(f"{name} of {service.name} {wrong_value}, not {value!r:.80}")
    for text in _texts(list(data.values())):
        if ENTITY_ID.fullmatch(text):
            index.find(text)


def _wrong(field: ServiceField, value: Any) -> str | None:
    """Say what an argument has to be, if it is not; a selector that nobody knows takes everything."""
    for kind, options in field.selector.items():
        options = options or {}
        match kind:
            case "number" | "color_temp":
                return _wrong_number(options, value)
            case "boolean":
                return None if isinstance(value, bool) else "must be true or false"
            case "select":
                return _wrong_choice(options, value)
            case "color_rgb":
                fits = isinstance(value, list) and len(value) == 3 and all(_is_byte(v) for v in value)
                return None if fits else "must be three numbers from 0 to 255"
            case "text" | "time" | "date" | "datetime" | "icon" | "theme":
                many = options.get("multiple") and isinstance(value, list)
                return None if many or isinstance(value, str | int | float) else "must be a text"
            case "object":
                return None if isinstance(value, dict | list) else "must be an object"
    return None


def _wrong_number(options: dict[str, Any], value: Any) -> str | None:
    low, high = options.get("min"), options.get("max")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return "must be a number"
    if low is not None and value < low:
        return f"must be at least {low}"
    if high is not None and value > high:
        return f"must be at most {high}"
    return None


def _wrong_choice(options: dict[str, Any], value: Any) -> str | None:
    known = [o["value"] if isinstance(o, dict) else o for o in options.get("options", ())]
    chosen = value if options.get("multiple") and isinstance(value, list) else [value]
    if options.get("custom_value") or not known or all(choice in known for choice in chosen):
        return None
    return f"must be one of {', '.join(map(str, known))}"


def _is_byte(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Give all texts in some arguments, however deep."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.keys())
            yield from _texts(value.values())
        elif isinstance(value, list | tuple):
            yield from _texts(value)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
