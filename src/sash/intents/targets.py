"""Which entities a sentence speaks of."""

from collections.abc import Callable, Iterable

from sash.home.index import Index
from sash.intents.grammar import Meaning
from sash.ports.home import Entity


def named(
    meanings: Iterable[Meaning], index: Index, here: str | None
) -> tuple[Meaning, tuple[Entity, ...]] | None:
    """Return the one entity that is called so, with the meaning that speaks of it.

    Where several have the name, the one in the area that is said is meant, or else that in the area of the
    speaker. If it is still not one, nobody can be sure.
    """
    found: dict[tuple[str, str], tuple[Meaning, Entity]] = {}
    for meaning in meanings:
        within = _place(meaning, index)
        for entity_id in meaning.value("name").entity_ids:
            entity = index.entities[entity_id]
            if within(entity):
                found.setdefault((meaning.intent, entity_id), (meaning, entity))
    if len(found) > 1 and here is not None:
        found = {key: pair for key, pair in found.items() if pair[1].area_id == here}
    if len(found) != 1:
        return None
    [(meaning, entity)] = found.values()
    return meaning, (entity,)


def all_of(meaning: Meaning, index: Index, domains: Iterable[str] = ()) -> tuple[Entity, ...]:
    """Return the entities of the kind that a sentence speaks of, in the area or on the floor that it says."""
    wanted = set(_texts(meaning.value("domain"))) or set(domains)
    classes, within = set(_texts(meaning.value("device_class"))), _place(meaning, index)
    return tuple(
        entity
        for entity in index.entities.values()
        if entity.domain in wanted and within(entity) and (not classes or _class(entity, index) in classes)
    )


def _place(meaning: Meaning, index: Index) -> Callable[[Entity], bool]:
    """Return whether an entity is where a sentence says."""
    area_id, floor_id = meaning.value("area"), meaning.value("floor")
    if area_id is not None:
        return lambda entity: entity.area_id == area_id
    if floor_id is not None:
        areas = {area.id for area in index.areas.values() if area.floor_id == floor_id}
        return lambda entity: entity.area_id in areas
    return lambda _: True


def _class(entity: Entity, index: Index) -> str:
    state = index.states.get(entity.id)
    return str(state.attributes.get("device_class") or "") if state else ""


def _texts(value: object) -> list[str]:
    """A slot has one value or, in some languages, several."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(each) for each in value]  # type: ignore[attr-defined]
