"""The index of a home: the exposed entities with their devices, areas and floors, searchable by words.

Entities that are not exposed are not in the index, so that no tool can read or change them. There are three
exceptions:

* `list_contents` returns the hidden members of groups, scenes and scripts, because a policy must check them.
* `is_hidden` and `redact` know the ids of hidden entities, to keep them out of arguments and texts.
* `list_dependents` returns hidden automations, scripts and scenes by name, because a diagnosis names them.
"""

from collections import defaultdict
from collections.abc import Iterable

from sash.errors import EntityNotFound
from sash.home.fuzzy_search import FuzzySearch
from sash.ports.home import ID_PATTERN, UNKNOWN, Area, Dependent, Device, Entity, Floor, Layout, State
from sash.values.state_words import name_on_off

# The weights of matches in the search, by the kind of text that matched.
NAME_WEIGHT, AREA_WEIGHT, KIND_WEIGHT = 3.0, 2.0, 1.5
FLOOR_WEIGHT = DEVICE_WEIGHT = ID_WEIGHT = LABEL_WEIGHT = 1.0
MAX_SUGGESTIONS = 3
MAX_SEARCH_RESULTS = 50
HIDDEN_ID_TEXT = "(an entity)"


class HomeIndex:
    """The exposed entities of a layout with their states. `apply` updates a state."""

    def __init__(self, layout: Layout, states: Iterable[State]) -> None:
        self.name = layout.name
        self.language = layout.language
        self.temperature_unit = layout.temperature_unit
        self.entities: dict[str, Entity] = {e.id: e for e in layout.entities if e.exposed}
        self._hidden = frozenset(e.id for e in layout.entities if not e.exposed)
        self._all_states: dict[str, State] = {s.entity_id: s for s in states}
        self.states: dict[str, State] = {
            key: state for key, state in self._all_states.items() if key in self.entities
        }
        self.areas: dict[str, Area] = {area.id: area for area in layout.areas}
        self.floors: dict[str, Floor] = {floor.id: floor for floor in layout.floors}
        self.labels = layout.labels
        self._devices: dict[str, Device] = {device.id: device for device in layout.devices}
        via_ids = {device.via_id for device in layout.devices}
        self.bridges = [device for device in layout.devices if device.id in via_ids]
        self._device_entities: dict[str, list[Entity]] = defaultdict(list)
        self._area_entities: dict[str, list[Entity]] = defaultdict(list)
        for entity in self.entities.values():
            if entity.device_id:
                self._device_entities[entity.device_id].append(entity)
            if entity.area_id:
                self._area_entities[entity.area_id].append(entity)
        self._containers = {d.entity_id: d for d in layout.dependents}
        self._dependents: dict[str, list[Dependent]] = defaultdict(list)
        for dependent in layout.dependents:
            for entity_id in dependent.uses:
                self._dependents[entity_id].append(dependent)
        self._search = FuzzySearch(
            {entity.id: self._list_texts(entity) for entity in self.entities.values()},
            {entity.id: (entity.name, *entity.aliases) for entity in self.entities.values()},
        )

    def apply(self, entity_id: str, state: State | None) -> None:
        """Set the state of an entity, given by its id. None removes the state."""
        for states in (self._all_states, self.states) if entity_id in self.entities else (self._all_states,):
            if state is None:
                states.pop(entity_id, None)
            else:
                states[entity_id] = state

    def get_state(self, entity_id: str) -> str:
        """Return the state of an entity as a text; "unknown" if it has none."""
        state = self.states.get(entity_id)
        return UNKNOWN if state is None else state.state

    def get_device_class(self, entity_id: str) -> str:
        """Return the device class of an entity; empty if it has none."""
        state = self.states.get(entity_id)
        return str(state.attributes.get("device_class") or "") if state else ""

    def get_area(self, entity: Entity) -> Area | None:
        return self.areas.get(entity.area_id) if entity.area_id else None

    def get_device(self, entity: Entity) -> Device | None:
        return self._devices.get(entity.device_id) if entity.device_id else None

    def list_area_entities(self, area_id: str) -> list[Entity]:
        return self._area_entities.get(area_id, [])

    def list_device_entities(self, device_id: str) -> list[Entity]:
        return self._device_entities.get(device_id, [])

    def list_entities_behind(self, bridge_id: str) -> list[Entity]:
        """Return the entities of all devices that are connected through a bridge, given by its device id."""
        connected = [device.id for device in self._devices.values() if device.via_id == bridge_id]
        return [entity for device_id in connected for entity in self.list_device_entities(device_id)]

    def get_bridge(self, device: Device) -> Device | None:
        """Return the bridge that connects a device, or None."""
        return self._devices.get(device.via_id) if device.via_id else None

    def list_dependents(self, entity_id: str) -> list[Dependent]:
        """Return the automations, scripts, scenes, groups and templates that use the entity with this id."""
        return self._dependents.get(entity_id, [])

    def list_contents(self, entity_id: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of all nested members of a group, scene, script or automation, and its services.

        The members include entities that are not exposed. A template has no members, but the services that
        its actions call, and the contents of the scripts and scenes that they start.
        """
        members: set[str] = set()
        services: set[str] = set()
        read: set[str] = set()
        pending = [entity_id]
        while pending:
            current = pending.pop()
            state, container = self._all_states.get(current), self._containers.get(current)
            listed = state.attributes.get("entity_id") if state else None
            found = set(map(str, listed)) if isinstance(listed, list | tuple) else set()
            if container is not None:
                services |= container.services
            if container is not None and container.kind == "template":
                pending += container.acts_on - read
            elif container is not None:
                found |= container.uses
            read |= {current}
            pending += found - read
            members |= found
        return frozenset(members), frozenset(services)

    def is_hidden(self, entity_id: str) -> bool:
        """Return whether the entity exists but is not exposed."""
        return entity_id in self._hidden

    def find(self, id_or_name: str) -> Entity:
        """Return the entity with this id, or with this name if the name is unique.

        Raises `EntityNotFound` with suggestions.
        """
        entity = self.entities.get(id_or_name) or self.entities.get(id_or_name.strip().lower())
        if entity is not None:
            return entity
        named = self._search.find_by_name(id_or_name)
        if len(named) == 1:
            return self.entities[named[0]]
        if named:
            raise EntityNotFound(f"several entities are called {id_or_name!r:.80}: {', '.join(named)}")
        similar = self._search.search(id_or_name, MAX_SUGGESTIONS).ids
        hint = f"; did you mean {', '.join(similar)}?" if similar else ""
        raise EntityNotFound(f"there is no entity {id_or_name!r:.80}{hint}")

    def redact(self, text: str) -> str:
        """Return the text with "(an entity)" in place of the ids of hidden entities."""
        return ID_PATTERN.sub(lambda found: HIDDEN_ID_TEXT if found[0] in self._hidden else found[0], text)

    def find_area(self, name: str) -> Area:
        """Return the area with this id, name or alias. Raise `EntityNotFound` with the known areas."""
        wanted = name.strip().casefold()
        for area in self.areas.values():
            if wanted in (area.id.casefold(), area.name.casefold(), *(a.casefold() for a in area.aliases)):
                return area
        known = ", ".join(area.name for area in self.areas.values() if self.list_area_entities(area.id))
        raise EntityNotFound(f"there is no area {name!r:.80}; the areas are: {known}")

    def search(
        self,
        query: str,
        *,
        domain: str | None = None,
        area_id: str | None = None,
        state: str | None = None,
        limit: int = MAX_SEARCH_RESULTS,
    ) -> tuple[list[Entity], int]:
        """Return the matching entities, best match first, and the total number of matches.

        An empty query matches every entity that passes the filters.
        """

        wanted = None if state is None else state.casefold()

        def passes_filters(entity_id: str) -> bool:
            entity = self.entities[entity_id]
            is_here = domain in (None, entity.domain) and area_id in (None, entity.area_id)
            return is_here and (wanted is None or wanted in self._list_spellings(entity))

        accepts = None if domain is area_id is state is None else passes_filters
        if query.strip():
            ids, total = self._search.search(query, limit, accepts)
        else:
            all_ids = [entity_id for entity_id in self.entities if accepts is None or accepts(entity_id)]
            ids, total = all_ids[:limit], len(all_ids)
        return [self.entities[entity_id] for entity_id in ids], total

    def find_unmatched_words(self, query: str, entity_id: str) -> list[str]:
        """Return the words of a query that do not match an entity, given by its id."""
        return self._search.find_unmatched_words(query, entity_id)

    def _list_spellings(self, entity: Entity) -> tuple[str, str]:
        """Return the state of an entity in lower case: "on", and in words: "open"."""
        state = self.get_state(entity.id).casefold()
        return state, name_on_off(state, entity.domain, self.get_device_class(entity.id))

    def _list_texts(self, entity: Entity) -> Iterable[tuple[str, float]]:
        area, device = self.get_area(entity), self.get_device(entity)
        yield entity.name, NAME_WEIGHT
        for alias in entity.aliases:
            yield alias, NAME_WEIGHT
        yield entity.id.replace(".", " ").replace("_", " "), ID_WEIGHT
        yield entity.domain.replace("_", " "), KIND_WEIGHT
        if device_class := self.get_device_class(entity.id):
            yield device_class.replace("_", " "), KIND_WEIGHT
        if area is not None:
            yield from ((name, AREA_WEIGHT) for name in (area.name, *area.aliases))
            floor = self.floors.get(area.floor_id) if area.floor_id else None
            if floor is not None:
                yield from ((name, FLOOR_WEIGHT) for name in (floor.name, *floor.aliases))
        if device is not None:
            yield f"{device.name} {device.manufacturer} {device.model}", DEVICE_WEIGHT
        yield from ((self.labels.get(label, label), LABEL_WEIGHT) for label in entity.labels)
