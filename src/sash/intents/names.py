"""What can be called by its name in a house, as lists for the grammar."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hassil.intents import SlotList, TextSlotList

from sash.errors import EntityNotFound
from sash.home.base import Area, Floor
from sash.home.index import Index
from sash.intents.grammar import Slot


class Called(NamedTuple):
    """A name as it is written in the house, and the entities of one domain that have it."""

    name: str
    entity_ids: tuple[str, ...]


class Names:
    """The names in one index. They do not change: a house that changes has another index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        called: dict[tuple[str, str], list[str]] = defaultdict(list)
        spelled: dict[str, str] = {}
        for entity in index.entities.values():
            for name in _sayable((entity.name, *entity.aliases)):
                spelled.setdefault(name.casefold(), name)
                called[name.casefold(), entity.domain].append(entity.id)
        names = [
            (spelled[name], Called(spelled[name], tuple(ids)), {"domain": domain})
            for (name, domain), ids in called.items()
        ]
        self.lists: Mapping[str, SlotList] = {
            "name": TextSlotList.from_tuples(names, allow_template=False, name="name"),
            "area": _places("area", index.areas.values()),
            "floor": _places("floor", index.floors.values()),
        }
        for values in self.lists.values():
            values.get_candidates("")  # type: ignore[attr-defined]

    def area(self, called: object) -> Slot | None:
        """Return the area that somebody says to be in, by its id or its name."""
        if not isinstance(called, str):
            return None
        try:
            area = self.index.find_area(called)
        except EntityNotFound:
            return None
        return Slot(area.id, area.name)


def _places(kind: str, places: Iterable[Area | Floor]) -> TextSlotList:
    called = [(name, place.id) for place in places for name in _sayable((place.name, *place.aliases))]
    return TextSlotList.from_tuples(called, allow_template=False, name=kind)


def _sayable(names: Iterable[str]) -> Iterable[str]:
    """Return the names as they can be said, each once."""
    return dict.fromkeys(name for text in names if (name := " ".join(text.split())))
