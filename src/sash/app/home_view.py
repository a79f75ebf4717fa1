"""The home as the agent sees it, for a person: areas, and entities with their states in words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from sash.engine.redaction import redact
from sash.errors import HomeUnavailable
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.home.state_text import write_state
from sash.ports.home import Area, Entity


@dataclass(frozen=True, slots=True)
class AreaShown:
    """An area that has entities which the agent sees. `floor` is the name of its floor."""

    area_id: str
    name: str
    floor: str | None

    @classmethod
    def of(cls, index: HomeIndex, area: Area) -> Self:
        floor = index.floors.get(area.floor_id) if area.floor_id else None
        return cls(area.id, area.name, floor.name if floor else None)


@dataclass(frozen=True, slots=True)
class EntityShown:
    """An entity that the agent sees. `shown` is its state in words, such as "closed" or "21.5 °C".

    `state` and `changed_at` are null if the home has no state for it. `state` has the spelling of the home.
    """

    entity_id: str
    name: str
    area_id: str | None
    area: str | None
    domain: str
    device_class: str | None
    state: str | None
    unit: str | None
    shown: str
    changed_at: datetime | None

    @classmethod
    def of(cls, index: HomeIndex, entity: Entity, language: str | None) -> Self:
        state, area = index.states.get(entity.id), index.get_area(entity)
        return cls(
            entity.id,
            redact(entity.name),
            area.id if area else None,
            area.name if area else None,
            entity.domain,
            index.get_device_class(entity.id) or None,
            redact(state.state) if state else None,
            (state.unit or None) if state else None,
            redact(write_state(index, entity, language)),
            state.changed_at if state else None,
        )


@dataclass(frozen=True, slots=True)
class HomeShown:
    """The home. Without a home, `name` is null and the lists are empty.

    The lists are also empty while the home does not answer. Then `problem` is a sentence that says why, and
    `language` and `time_zone` are null. `time_zone` is also null if the home does not tell it.
    """

    name: str | None = None
    is_connected: bool = False
    problem: str | None = None
    language: str | None = None
    time_zone: str | None = None
    areas: tuple[AreaShown, ...] = ()
    entities: tuple[EntityShown, ...] = ()

    @classmethod
    def of(cls, home: LiveHome | None, language: str | None = None) -> Self:
        """Return the areas and entities of a home, sorted by id, with words of a language.

        Without a language, the words are those of the home's own language.
        """
        if home is None:
            return cls()
        try:
            index = home.index
        except HomeUnavailable as error:
            return cls(home.home.name, problem=redact(error.message))
        areas = [area for key, area in sorted(index.areas.items()) if index.list_area_entities(key)]
        return cls(
            index.name,
            is_connected=True,
            language=index.language,
            time_zone=None if home.time_zone is None else str(home.time_zone),
            areas=tuple(AreaShown.of(index, area) for area in areas),
            entities=tuple(EntityShown.of(index, one, language) for _, one in sorted(index.entities.items())),
        )
