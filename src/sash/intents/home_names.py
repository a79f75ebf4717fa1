"""The names of a home's entities, areas and floors, as lists for the grammar."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hassil.intents import SlotList, TextSlotList, TextSlotValue
from hassil.util import CJK_WHITESPACE, normalize_text, remove_punctuation

from sash.errors import EntityNotFound
from sash.home.index import HomeIndex
from sash.intents.grammar import Slot
from sash.ports.home import Area, Floor

# The lower-case form of "İ". It is treated as "i".
_DOTTED_I = "i\u0307"


class NamedEntities(NamedTuple):
    """A name, and the ids of the entities of one domain that have it."""

    name: str
    entity_ids: tuple[str, ...]


class HomeNames:
    """The names in one index. They do not change, because a changed layout gets a new index."""

    def __init__(self, index: HomeIndex) -> None:
        self.index = index
        ids_by_name: dict[tuple[str, str], list[str]] = defaultdict(list)
        spellings: dict[str, str] = {}
        for entity in index.entities.values():
            for name in _list_spoken_forms((entity.name, *entity.aliases)):
                spellings.setdefault(name.casefold(), name)
                ids_by_name[name.casefold(), entity.domain].append(entity.id)
        self._values = {
            "name": [
                _build_value(spellings[name], NamedEntities(spellings[name], tuple(ids)), domain=domain)
                for (name, domain), ids in ids_by_name.items()
            ],
            "area": list(_build_place_values(index.areas.values())),
            "floor": list(_build_place_values(index.floors.values())),
        }

    def find_in(self, sentence: str) -> Mapping[str, SlotList]:
        """Return the names that occur in a sentence, by kind. The sentence must be in lower case.

        Hassil tries every name of a list at every position, so shorter lists make it faster.
        """
        text = sentence.replace(_DOTTED_I, "i")
        return {
            kind: TextSlotList(kind, [value for folded, value in values if folded in text])
            for kind, values in self._values.items()
        }

    def list_all(self) -> Mapping[str, SlotList]:
        """Return all names, by kind: entities, areas and floors."""
        return {
            kind: TextSlotList(kind, [value for _, value in values]) for kind, values in self._values.items()
        }

    def find_area(self, name: object) -> Slot | None:
        """Find an area by its id, name or alias. Return its id and name, or None if the home lacks it."""
        if not isinstance(name, str):
            return None
        try:
            area = self.index.find_area(name)
        except EntityNotFound:
            return None
        return Slot(area.id, area.name)


def _build_place_values(places: Iterable[Area | Floor]) -> Iterator[tuple[str, TextSlotValue]]:
    for place in places:
        for name in _list_spoken_forms((place.name, *place.aliases)):
            yield _build_value(name, place.id)


def _build_value(name: str, value: Any, **context: str) -> tuple[str, TextSlotValue]:
    folded = CJK_WHITESPACE.sub("", normalize_text(name).casefold().replace(_DOTTED_I, "i"))
    return folded, TextSlotValue.from_tuple((name, value, context), allow_template=False)


def _list_spoken_forms(names: Iterable[str]) -> Iterable[str]:
    """Return the names with and without punctuation, because a user does not speak it."""
    forms = (" ".join(form.split()) for name in names for form in (name, remove_punctuation(name)))
    return dict.fromkeys(filter(None, forms))
