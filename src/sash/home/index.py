"""The house as the agent may know it: exposed entities with their devices, areas and floors, found by words.

What is not exposed is not in here, so that nothing that stands on the index can tell of it or touch it. Two
things are, for those who have to refuse: what is within groups, scenes and scripts, and the ids that must not
be named. And the names of automations, scripts and the like are told: who asks what is wrong with a light
learns which automations need it, even though the agent can do nothing with them.
"""

from collections import defaultdict
from collections.abc import Iterable

from sash.errors import EntityNotFound
from sash.home.search import WordSearch
from sash.ports.home import ANY_ID, UNKNOWN, Area, Dependant, Device, Entity, Floor, Layout, State

# How much a word tells about an entity, by where it stands.
BY_NAME, BY_AREA, BY_KIND, BY_FLOOR, BY_DEVICE, BY_ID, BY_LABEL = 3.0, 2.0, 1.5, 1.0, 1.0, 1.0, 1.0
MAX_SUGGESTIONS = 3
MAX_FOUND = 50
HIDDEN = "(an entity)"


class Index:
    """The exposed entities of a layout, with their states, which `apply` keeps fresh."""

    def __init__(self, layout: Layout, states: Iterable[State]) -> None:
        self.name = layout.name
        self.language = layout.language
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
        reaching = {device.via_id for device in layout.devices}
        self._bridges = [device for device in layout.devices if device.id in reaching]
        self._of_device: dict[str, list[Entity]] = defaultdict(list)
        self._of_area: dict[str, list[Entity]] = defaultdict(list)
        for entity in self.entities.values():
            if entity.device_id:
                self._of_device[entity.device_id].append(entity)
            if entity.area_id:
                self._of_area[entity.area_id].append(entity)
        self._used_by = {d.entity_id: d for d in layout.dependants if d.kind != "template"}
        self._dependants: dict[str, list[Dependant]] = defaultdict(list)
        for dependant in layout.dependants:
            for entity_id in dependant.uses:
                self._dependants[entity_id].append(dependant)
        self._search = WordSearch(
            {entity.id: self._texts(entity) for entity in self.entities.values()},
            {entity.id: (entity.name, *entity.aliases) for entity in self.entities.values()},
        )

    def apply(self, entity_id: str, state: State | None) -> None:
        """Take a new state into account, or that an entity has none any more."""
        for states in (self._all_states, self.states) if entity_id in self.entities else (self._all_states,):
            if state is None:
                states.pop(entity_id, None)
            else:
                states[entity_id] = state

    def state(self, entity_id: str) -> str:
        """Return what an entity's state is."""
        state = self.states.get(entity_id)
        return UNKNOWN if state is None else state.state

    def area(self, entity: Entity) -> Area | None:
        return self.areas.get(entity.area_id) if entity.area_id else None

    def device(self, entity: Entity) -> Device | None:
        return self._devices.get(entity.device_id) if entity.device_id else None

    def in_area(self, area_id: str) -> list[Entity]:
        return self._of_area.get(area_id, [])

    def of_device(self, device_id: str) -> list[Entity]:
        return self._of_device.get(device_id, [])

    def behind(self, device_id: str) -> list[Entity]:
        """Return the entities of all devices that are reached by this one."""
        reached = [device.id for device in self._devices.values() if device.via_id == device_id]
        return [entity for device in reached for entity in self.of_device(device)]

    def bridges(self) -> list[Device]:
        """Return the devices by which others are reached."""
        return self._bridges

    def bridge(self, device: Device) -> Device | None:
        """Return the device that this one is reached by."""
        return self._devices.get(device.via_id) if device.via_id else None

    def dependants(self, entity_id: str) -> list[Dependant]:
        """Return the automations, scripts, scenes, groups and templates that work with an entity."""
        return self._dependants.get(entity_id, [])

    def inside(self, entity_id: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return what is within a group, a scene, a script or an automation, however deep.

        Its entities, whether exposed or not, and the services that it calls.
        """
        members: set[str] = set()
        services: set[str] = set()
        open_ids = [entity_id]
        while open_ids:
            one = open_ids.pop()
            state, dependant = self._all_states.get(one), self._used_by.get(one)
            listed = state.attributes.get("entity_id") if state else None
            found = set(map(str, listed)) if isinstance(listed, list | tuple) else set()
            if dependant is not None:
                found |= dependant.uses
                services |= dependant.services
            open_ids += found - members
            members |= found
        return frozenset(members), frozenset(services)

    def is_hidden(self, entity_id: str) -> bool:
        """Whether there is such an entity that the agent must not know of."""
        return entity_id in self._hidden

    def find(self, called: str) -> Entity:
        """Return the entity with this id or, if there is but one, this name."""
        entity = self.entities.get(called) or self.entities.get(called.strip().lower())
        if entity is not None:
            return entity
        named = self._search.called(called)
        if len(named) == 1:
            return self.entities[named[0]]
        if named:
            raise EntityNotFound(
                f"{called!r} is the name of several: {', '.join(named)}", entity_ids=tuple(named)
            )
        near = self._search.search(called, MAX_SUGGESTIONS).ids
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise EntityNotFound(f"there is no entity {called!r}{hint}", entity_ids=tuple(near))

    def hide(self, text: str) -> str:
        """Return a text of the house without the ids of entities that the agent does not know."""
        return ANY_ID.sub(lambda found: HIDDEN if found[0] in self._hidden else found[0], text)

    def find_area(self, called: str) -> Area:
        """Return the area with this id, name or alias."""
        wanted = called.strip().casefold()
        for area in self.areas.values():
            if wanted in (area.id.casefold(), area.name.casefold(), *(a.casefold() for a in area.aliases)):
                return area
        known = ", ".join(area.name for area in self.areas.values() if self.in_area(area.id))
        raise EntityNotFound(f"there is no area {called!r}; the areas are: {known}")

    def search(
        self,
        query: str,
        *,
        domain: str | None = None,
        area_id: str | None = None,
        state: str | None = None,
        most: int = MAX_FOUND,
    ) -> tuple[list[Entity], int]:
        """Return the entities that fit, best first, and how many do; without words all of the rest."""

        def fits(entity_id: str) -> bool:
            entity = self.entities[entity_id]
            here = domain in (None, entity.domain) and area_id in (None, entity.area_id)
            return here and (state is None or self.state(entity_id).casefold() == state.casefold())

        narrowed = None if domain is area_id is state is None else fits
        if query.strip():
            ids, total = self._search.search(query, most, narrowed)
        else:
            all_ids = [entity_id for entity_id in self.entities if narrowed is None or narrowed(entity_id)]
            ids, total = all_ids[:most], len(all_ids)
        return [self.entities[entity_id] for entity_id in ids], total

    def unmatched(self, query: str, entity_id: str) -> list[str]:
        """Return the words of a query that an entity was not found by."""
        return self._search.unmatched(query, entity_id)

    def _texts(self, entity: Entity) -> Iterable[tuple[str, float]]:
        state, area, device = self.states.get(entity.id), self.area(entity), self.device(entity)
        yield entity.name, BY_NAME
        for alias in entity.aliases:
            yield alias, BY_NAME
        yield entity.id.replace(".", " ").replace("_", " "), BY_ID
        yield entity.domain.replace("_", " "), BY_KIND
        if state and (kind := state.attributes.get("device_class")):
            yield str(kind).replace("_", " "), BY_KIND
        if area is not None:
            yield from ((name, BY_AREA) for name in (area.name, *area.aliases))
            floor = self.floors.get(area.floor_id) if area.floor_id else None
            if floor is not None:
                yield from ((name, BY_FLOOR) for name in (floor.name, *floor.aliases))
        if device is not None:
            yield f"{device.name} {device.manufacturer} {device.model}", BY_DEVICE
        yield from ((self.labels.get(label, label), BY_LABEL) for label in entity.labels)
