"""Finds the thing of an earlier list that is meant by its place: "the first one", "the last"."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sash.home.index import HomeIndex
from sash.intents.sentence.clause import Clause, Word
from sash.intents.topic import Topic

_PLACES: Mapping[str, int] = {"first": 0, "second": 1, "third": 2, "last": -1}
ORDINALS = frozenset(_PLACES)
# A list of an older turn is not what a place belongs to.
_MAX_TURNS = 3


def find_place(refer: Collection[str], count: int) -> int | None:
    """Return the place in a list of things that a reference names; None if the list has no such place."""
    place = next((_PLACES[each] for each in refer if each in _PLACES), None)
    return place if place is not None and count > 1 and place < count else None


def choose_by_place(clause: Clause, topics: Sequence[Topic], index: HomeIndex) -> Clause:
    """Return a clause with the thing of the newest list that it names by its place."""
    if ORDINALS.isdisjoint(clause.refer) or any(
        word.entity_ids or not word.has("kind") for word in clause.words
    ):
        return clause
    listed = (_list_things(topic, index) for topic in topics[:_MAX_TURNS])
    ids = next((each for each in listed if len(each) > 1), ())
    if (place := find_place(clause.refer, len(ids))) is None:
        return clause
    thing = Word(index.entities[ids[place]].name, frozenset(), (ids[place],))
    return replace(clause, words=(thing,), refer=clause.refer - ORDINALS)


def _list_things(topic: Topic, index: HomeIndex) -> tuple[str, ...]:
    return tuple(key for key in topic.choices or topic.entity_ids if key in index.entities)
