"""What can be called by its name in a house, as lists for the grammar."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hassil.intents import SlotList, TextSlotList, TextSlotValue
from hassil.util import CJK_WHITESPACE, normalize_text, remove_punctuation

from sash.errors import EntityNotFound
from sash.home.index import Index
from sash.intents.grammar import Slot
from sash.ports.home import Area, Floor

# How "İ" begins in lower case; it is taken for an "i" here, as it is by who writes without the dot.
_DOTTED = "i\u0307"


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
        self._lists = {
            "name": [
                _value(spelled[name], Called(spelled[name], tuple(ids)), domain=domain)
                for (name, domain), ids in called.items()
            ],
            "area": list(_places(index.areas.values())),
            "floor": list(_places(index.floors.values())),
        }

    def within(self, haystack: str) -> Mapping[str, SlotList]:
        """Return the names that are in a sentence, which is given in lower case.

        Hassil tries every name at every place where there may be one; of some names it does not need to.
        """
        said = haystack.replace(_DOTTED, "i")
        return {
            kind: TextSlotList(kind, [value for folded, value in values if folded in said])
            for kind, values in self._lists.items()
        }

    def area(self, called: object) -> Slot | None:
        """Return the area that somebody says to be in, by its id or its name."""
        if not isinstance(called, str):
            return None
        try:
            area = self.index.find_area(called)
        except EntityNotFound:
            return None
        return Slot(area.id, area.name)


def _places(places: Iterable[Area | Floor]) -> Iterator[tuple[str, TextSlotValue]]:
    for place in places:
        for name in _sayable((place.name, *place.aliases)):
            yield _value(name, place.id)


def _value(name: str, meant: Any, **context: str) -> tuple[str, TextSlotValue]:
    folded = CJK_WHITESPACE.sub("", normalize_text(name).casefold().replace(_DOTTED, "i"))
    return folded, TextSlotValue.from_tuple((name, meant, context), allow_template=False)


def _sayable(names: Iterable[str]) -> Iterable[str]:
    """Return the names as they can be said, each once: nobody says the comma in "Lamp, left"."""
    said = (" ".join(form.split()) for name in names for form in (name, remove_punctuation(name)))
    return dict.fromkeys(filter(None, said))
