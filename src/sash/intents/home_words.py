"""The words of a home: the names of its entities, areas, floors and labels, and what each word may mean.

A word is compared by its keys: the word itself without accents ("kuche"), and the meanings that a lexicon
gives to it ("room.kitchen"). So a name in one language is found by a word of another one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sash.home.index import HomeIndex
from sash.intents.kinds import list_kinds
from sash.intents.words.lexicon import Lexicon
from sash.intents.words.tokens import remove_accents, split_words
from sash.ports.home import Entity

Keys = frozenset[str]
NO_IDS: frozenset[str] = frozenset()


class Name(NamedTuple):
    """A full name in the home, with its entities, or the area, the floor or the label of that name."""

    keys: Keys
    entity_ids: tuple[str, ...] = ()


class HomeWords:
    """The words of one index. They do not change, because a changed layout gets a new index."""

    def __init__(self, index: HomeIndex, lexicons: Sequence[Lexicon]) -> None:
        self.index = index
        self._lexicons = lexicons
        self.names: dict[tuple[str, ...], Name] = {}
        self.words: set[str] = set()
        self.by_name: defaultdict[str, set[str]] = defaultdict(set)
        self.by_place: defaultdict[str, set[str]] = defaultdict(set)
        self.by_kind: defaultdict[str, set[str]] = defaultdict(set)
        self.by_other: defaultdict[str, set[str]] = defaultdict(set)
        self.area_keys: defaultdict[str, set[str]] = defaultdict(set)
        self.floor_keys: defaultdict[str, set[str]] = defaultdict(set)
        self._add_places()
        for entity in index.entities.values():
            self._add_entity(entity)
        self.longest_name = max(map(len, self.names), default=0)

    def find(self, keys: Keys) -> frozenset[str]:
        """Return the ids of the entities that a word with these keys may mean."""
        groups = (self.by_name, self.by_place, self.by_kind, self.by_other)
        return NO_IDS.union(*(group.get(key, NO_IDS) for group in groups for key in keys))

    def find_named(self, keys: Keys) -> frozenset[str]:
        """Return the ids of the entities with this word in their names."""
        return NO_IDS.union(*(self.by_name.get(key, NO_IDS) for key in keys))

    def find_kind(self, keys: Keys) -> frozenset[str]:
        """Return the ids of the entities of this kind."""
        return NO_IDS.union(*(self.by_kind.get(key, NO_IDS) for key in keys))

    def find_place(self, keys: Keys) -> frozenset[str]:
        """Return the ids of the entities in this area or on this floor."""
        return NO_IDS.union(*(self.by_place.get(key, NO_IDS) for key in keys))

    def is_place(self, keys: Keys) -> bool:
        """Return whether a word names an area or a floor of the home."""
        return any(key in self.area_keys or key in self.floor_keys for key in keys)

    def find_areas(self, keys: Keys) -> set[str]:
        """Return the ids of the areas that a word names."""
        return set().union(*(self.area_keys.get(key, set()) for key in keys))

    def _add_places(self) -> None:
        for area in self.index.areas.values():
            for name in (area.name, *area.aliases):
                keys = self._add_name(name, f"area:{area.id}")
                for key in keys:
                    self.area_keys[key].add(area.id)
        for floor in self.index.floors.values():
            for name in (floor.name, *floor.aliases):
                for key in self._add_name(name, f"floor:{floor.id}"):
                    self.floor_keys[key].add(floor.id)
        for label, name in self.index.labels.items():
            self._add_name(name, f"label:{label}")

    def _add_name(self, name: str, key: str) -> Keys:
        """Add the name of a place or a label, and return the keys that mean it as a whole."""
        words = split_words(name)
        plain = tuple(map(remove_accents, words))
        known = self.names.get(plain, Name(frozenset()))
        keys = {key, *self._find_whole_meanings(words)}
        self.names[plain] = Name(known.keys | keys, known.entity_ids)
        self.words.update(words)
        return frozenset(keys)

    def _find_whole_meanings(self, words: Sequence[str]) -> set[str]:
        """Return the meanings of a whole name: "room.kitchen" for "Küche"."""
        return {
            match.tag
            for lexicon in self._lexicons
            for match in lexicon.nouns.find_all(words)
            if len(match.places) == len(words) and match.kind == "room"
        }

    def _add_entity(self, entity: Entity) -> None:
        for name in (entity.name, *entity.aliases):
            words = split_words(name)
            plain = tuple(map(remove_accents, words))
            self.words.update(words)
            if plain:
                known = self.names.get(plain, Name(frozenset()))
                ids = tuple(dict.fromkeys((*known.entity_ids, entity.id)))
                self.names[plain] = Name(known.keys, ids)
            for key in (*plain, *self._find_meanings(words)):
                self.by_name[key].add(entity.id)
        # A user may name an entity by its id, as one word.
        self.names[(entity.id,)] = Name(frozenset(), (entity.id,))
        for key in list_kinds(entity.domain, self.index.get_device_class(entity.id)):
            self.by_kind[key].add(entity.id)
        for label in entity.labels:
            self.by_other[f"label:{label}"].add(entity.id)
            for word in split_words(self.index.labels.get(label, label)):
                self.by_other[remove_accents(word)].add(entity.id)
        self._add_place_of(entity)

    def _find_meanings(self, words: Sequence[str]) -> Iterable[str]:
        return {match.tag for lexicon in self._lexicons for match in lexicon.nouns.find_all(words)}

    def _add_place_of(self, entity: Entity) -> None:
        area = self.index.get_area(entity)
        if area is None:
            return
        self.by_place[f"area:{area.id}"].add(entity.id)
        for key, area_ids in self.area_keys.items():
            if area.id in area_ids:
                self.by_place[key].add(entity.id)
        if area.floor_id:
            self.by_place[f"floor:{area.floor_id}"].add(entity.id)
            for key, floor_ids in self.floor_keys.items():
                if area.floor_id in floor_ids:
                    self.by_place[key].add(entity.id)
