"""Compares the temperatures of two places: "is it warmer outside than inside?", "which one is colder?"."""

from collections.abc import Sequence
from typing import NamedTuple

from sash.intents.answers.names import Name
from sash.intents.asking.values import ValueAnswers
from sash.intents.missing_words import find_place
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic

_DIRECTIONS = ("warmer", "colder")
_SIDES = frozenset({"room.inside", "room.outside"})
_ONES = frozenset({"one", "ones"})
_CHOOSING = frozenset({"which", "who", "where", "what"})


class _Place(NamedTuple):
    name: Name
    degrees: float
    unit: str
    entity_ids: tuple[str, ...]


def compare_places(situation: Situation, topics: Sequence[Topic]) -> Reply | None:
    """Return which of two places is warmer or colder; None if the sentence compares nothing.

    The places are in the sentence, or in the last two answers.
    """
    clauses = situation.reader.read_clauses(situation.sentence)
    acts = {do for clause in clauses for do in clause.do}
    direction = next((each for each in _DIRECTIONS if each in acts), None) or _find_extreme(clauses)
    asks_difference = any(match.value == "difference" for match in situation.sentence.find("compare"))
    if direction is None and asks_difference:
        direction = "warmer"
    # "Il fait plus chaud dans la chambre ou dans le salon" asks without a question word.
    has_or = situation.writer.or_word in situation.sentence.words
    is_asked = has_or or any(clause.is_question or "ones" in clause.refer for clause in clauses)
    if direction is None or len(acts) > 1 or not is_asked or any(clause.tense for clause in clauses):
        return None
    words = [word for clause in clauses for word in clause.words]
    named = [word for word in words if _is_place(situation, word)]
    general = ("kind.room", "property.temperature")
    others = [word for word in words if word not in named and word.keys.isdisjoint(general)]
    if others or any(not clause.time.is_empty for clause in clauses):
        return None
    asks = {each for clause in clauses for each in clause.ask}
    refers = {each for clause in clauses for each in clause.refer}
    if not named and (_CHOOSING & asks or refers & {"one", "ones", "them"}):
        named = _list_last_places(situation, topics)
    if len(named) != 2:
        return None
    places = [place for word in named if (place := _read_place(situation, word)) is not None]
    if len(places) < 2:
        return _miss_place(situation, named, places)
    if asks & {"how_much", "how_many"} or asks_difference:
        return _tell_difference(situation, places, direction)
    return _tell(situation, places, direction, chooses=has_or or bool(_CHOOSING & asks or refers & _ONES))


def _is_place(situation: Situation, word: Word) -> bool:
    """Return whether a word names a place, or the thermometer of one: "the outside temperature"."""
    measured = {situation.index.get_device_class(key) for key in word.entity_ids}
    is_side = not word.keys.isdisjoint(_SIDES)
    return situation.words.is_place(word.keys) or is_side or measured == {"temperature"}


def _find_extreme(clauses: Sequence[Clause]) -> str | None:
    """Return the direction of a superlative: "dove fa più caldo, in camera o in soggiorno"."""
    if not any("temperature" in clause.properties for clause in clauses):
        return None
    asks = {each for clause in clauses for each in clause.ask}
    return "warmer" if "highest" in asks else "colder" if "lowest" in asks else None


def _list_last_places(situation: Situation, topics: Sequence[Topic]) -> list[Word]:
    """Return the things that the last two answers were about."""
    ids = [topic.entity_ids for topic in topics if topic.entity_ids][:2]
    if len(ids) == 1 and len(ids[0]) == 2:
        ids = [(each,) for each in ids[0]]
    index = situation.index
    return [
        Word(index.entities[each[0]].name, frozenset(), each)
        for each in ids
        if len(each) == 1 and each[0] in index.entities
    ]


def _read_place(situation: Situation, word: Word) -> _Place | None:
    """Return the mean temperature of a place."""
    answers = ValueAnswers(situation)
    readings = answers.read_temperatures(word)
    values = [reading.value for reading in readings if reading.value is not None]
    if not values:
        return None
    name = answers.name_place(readings[0].entity) if len(readings) == 1 else Name(word.text)
    ids = tuple(reading.entity.id for reading in readings)
    return _Place(name or Name(word.text), sum(values) / len(values), readings[0].unit, ids)


def _miss_place(situation: Situation, named: Sequence[Word], known: list[_Place]) -> Reply | None:
    """Return that one of two rooms has no thermometer, and how warm it is in the other one."""
    writer = situation.writer
    rooms = [find_place(situation, [word]) for word in named if _read_place(situation, word) is None]
    missing = [room for room in rooms if room is not None]
    if not missing or len(missing) < len(rooms):
        return None
    what = writer.name_noun(writer.phrase("measure.temperature"))
    texts = [writer.say("state.no_measure_in", what=what, place=room) for room in missing]
    for place in known:
        value = writer.quantity(place.degrees, place.unit)
        texts.append(writer.say("state.temperature_at", place=place.name, value=value))
    entity_ids = tuple(key for place in known for key in place.entity_ids)
    return Reply(" ".join(texts), topic=Topic("question", (), entity_ids).to_json())


def _tell_difference(situation: Situation, places: list[_Place], direction: str) -> Reply:
    """Return how much warmer or colder one of two places is."""
    writer = situation.writer
    first, second = sorted(places, key=lambda place: place.degrees, reverse=direction == "warmer")
    difference = round(abs(first.degrees - second.degrees), 1)
    if not difference:
        return _tell(situation, places, direction, chooses=True)
    text = writer.say(
        f"compare.{direction}_by",
        place=first.name,
        difference=writer.quantity(difference, first.unit),
        parts=_say_parts(situation, [first, second]),
    )
    return Reply(text, topic=Topic("question", (), (*first.entity_ids, *second.entity_ids)).to_json())


def _say_parts(situation: Situation, places: list[_Place]) -> str:
    """Return the places with their temperatures: "the bedroom 18.8 degrees and outside 14.4 degrees"."""
    writer = situation.writer
    return writer.join(
        writer.phrase("state.part", place=place.name, value=writer.quantity(place.degrees, place.unit))
        for place in places
    )


def _tell(situation: Situation, places: list[_Place], direction: str, *, chooses: bool) -> Reply:
    writer = situation.writer
    sign = 1 if direction == "warmer" else -1
    parts = _say_parts(situation, places)
    first, second = (sign * round(place.degrees, 1) for place in places)
    if first == second:
        text = writer.say("compare.equal", parts=parts)
    elif chooses:
        text = writer.say(f"compare.{direction}", place=places[0 if first > second else 1].name, parts=parts)
    else:
        text = writer.say("compare.yes" if first > second else "compare.no", parts=parts)
    entity_ids = tuple(dict.fromkeys(key for place in places for key in place.entity_ids))
    return Reply(text, topic=Topic("question", (), entity_ids).to_json())
