"""Finds the entities that a sentence refers to."""

from collections.abc import Callable, Iterable

from sash.home.index import HomeIndex
from sash.intents.grammar import Interpretation
from sash.ports.home import Entity


def find_named_entity(
    interpretations: Iterable[Interpretation], index: HomeIndex, speaker_area_id: str | None
) -> tuple[Interpretation, tuple[Entity, ...]] | None:
    """Return the one entity that the sentence names, with the matching interpretation.

    If several entities have the name, the area in the sentence decides, or else the area of the speaker.
    Return None if the choice is still ambiguous.
    """
    found: dict[tuple[str, str], tuple[Interpretation, Entity]] = {}
    for interpretation in interpretations:
        is_in_place = _build_place_filter(interpretation, index)
        for entity_id in interpretation.get_value("name").entity_ids:
            entity = index.entities[entity_id]
            if is_in_place(entity):
                found.setdefault((interpretation.intent, entity_id), (interpretation, entity))
    if len(found) > 1 and speaker_area_id is not None:
        found = {key: pair for key, pair in found.items() if pair[1].area_id == speaker_area_id}
    if len(found) != 1:
        return None
    [(interpretation, entity)] = found.values()
    return interpretation, (entity,)


def find_matching_entities(
    interpretation: Interpretation, index: HomeIndex, default_domains: Iterable[str] = ()
) -> tuple[Entity, ...]:
    """Return all entities of the kind and in the place that the sentence names.

    `default_domains` apply if the sentence names no domain.
    """
    domains = set(_list_texts(interpretation.get_value("domain"))) or set(default_domains)
    classes = set(_list_texts(interpretation.get_value("device_class")))
    is_in_place = _build_place_filter(interpretation, index)
    return tuple(
        entity
        for entity in index.entities.values()
        if entity.domain in domains
        and is_in_place(entity)
        and (not classes or index.get_device_class(entity.id) in classes)
    )


def _build_place_filter(interpretation: Interpretation, index: HomeIndex) -> Callable[[Entity], bool]:
    """Return a function that accepts entities in the area or on the floor of the sentence."""
    area_id, floor_id = interpretation.get_value("area"), interpretation.get_value("floor")
    if area_id is not None:
        return lambda entity: entity.area_id == area_id
    if floor_id is not None:
        area_ids = {area.id for area in index.areas.values() if area.floor_id == floor_id}
        return lambda entity: entity.area_id in area_ids
    return lambda _: True


def _list_texts(value: object) -> list[str]:
    """Return the values of a slot as a list. Some languages have several values in one slot."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(each) for each in value]  # type: ignore[attr-defined]
