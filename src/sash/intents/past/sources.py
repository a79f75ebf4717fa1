"""Chooses the entities whose record answers a question about the past."""

from collections.abc import Iterable, Sequence

from sash.intents.kinds import list_kinds
from sash.intents.past.asked_states import BROKEN, AskedState, ask_for, find_asked_state
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Situation
from sash.ports.home import Entity
from sash.values.state_words import DETECTED

# These acts need no name: "was there any movement".
_NAMELESS = frozenset({"arm", "disarm", "clean", "moving", "home", "away", "leak", "rain", "snow"})
# In a place that is named, these are noticed by the sensors there only.
_IN_PLACES = frozenset({"moving", "leak", "home", "away"})
_DOORS = frozenset({"door", "garage_door", "garage", "gate", "window", "opening"})
_METER_CLASSES = frozenset({"energy", "gas", "water"})
_RULES = frozenset({"automation", "script"})
# If a sensor has no such state, these acts ask whether its connection is lost.
_GONE = frozenset({"off", "down", "away"})
_SENSORS = frozenset({"sensor", "binary_sensor"})
# Sensors of these classes go off if they notice something.
_NOTICING = DETECTED | {"moisture", "problem", "safety", "tamper", "cold"}
_OUTSIDE = frozenset({"room.outside"})
_FRONT_DOOR = frozenset({"noun.front_door"})
_HOUSE = frozenset({"room.house"})
# Words that stand for the home as a whole, not for a thing with a meter of its own.
_WHOLE = frozenset(
    {"room.house", "kind.person", "property.energy", "property.power", "property.water", "property.gas"}
)


def choose_targets(
    situation: Situation, acts: Sequence[str], entities: Sequence[Entity]
) -> list[tuple[Entity, AskedState]]:
    """Return the entities that can be in the state of one of the acts, with their states for it."""
    # An alarm that goes off is not switched off, and a sensor that goes off notices something.
    rang = bool(situation.sentence.find("alarm"))
    acts = ("trigger", *acts) if rang else acts
    if rang and entities and all(entity.domain in _SENSORS for entity in entities):
        return _find_noticed(situation, entities)
    for act in acts:
        found = _find_states(situation, act, entities)
        if not found and act == "open":
            found = _find_states(situation, act, _find_doors_of(situation, entities))
        if not found and act in _NAMELESS:
            everywhere = tuple(situation.index.entities.values())
            areas = {entity.area_id for entity in entities if entity.area_id}
            there = [e for e in everywhere if e.area_id in areas]
            if act in ("home", "away"):
                everywhere = tuple(entity for entity in everywhere if entity.domain == "person")
            found = _find_states(situation, act, there)
            if not found and (act not in _IN_PLACES or not entities):
                found = _find_states(situation, act, everywhere)
        # An automation that is called like the lights is not one of them.
        if found := [each for each in found if each[0].domain not in _RULES] or found:
            return found
    if _GONE.intersection(acts) and entities and all(entity.domain in _SENSORS for entity in entities):
        return [(entity, BROKEN) for entity in entities]  # "Since when is the leak sensor off?"
    return []


def _find_noticed(situation: Situation, entities: Sequence[Entity]) -> list[tuple[Entity, AskedState]]:
    """Return the sensors that notice something, such as water or smoke, with their states for it."""
    detected = [e for e in entities if situation.index.get_device_class(e.id) in _NOTICING]
    return [(entity, ask_for("on")) for entity in detected]


def choose_entrances(situation: Situation, entities: Sequence[Entity]) -> list[tuple[Entity, AskedState]]:
    """Return what tells that somebody came in: movement in the named room, or else the front door."""
    if entities and are_doors(situation, entities):
        return choose_targets(situation, ("open",), entities)
    if entities:
        areas = {entity.area_id for entity in entities if entity.area_id}
        return _find_states(
            situation, "moving", [e for e in situation.index.entities.values() if e.area_id in areas]
        )
    doors = [e for e in situation.index.entities.values() if situation.index.get_device_class(e.id) == "door"]
    front = situation.words.find(_FRONT_DOOR)
    return _find_states(situation, "open", [e for e in doors if e.id in front] or doors)


def are_doors(situation: Situation, entities: Sequence[Entity]) -> bool:
    """Return whether all of some entities are doors, windows, gates, or their locks."""
    return all(e.domain == "lock" or situation.index.get_device_class(e.id) in _DOORS for e in entities)


def choose_sensors(situation: Situation, clause: Clause, entities: Sequence[Entity]) -> list[Entity]:
    """Return the sensors of what is measured. Outdoors is meant if no place is named."""
    name = next((p for p in clause.properties), None)
    if name is None:
        numeric = [e for e in entities if is_numeric(situation, e)]
        # Of things that measure several properties, the temperature is meant: "the highest outside".
        warmth = [e for e in numeric if _measures(situation, e, "temperature")]
        if numeric:
            return warmth or numeric
        name = "temperature"
    measuring = [e for e in situation.index.entities.values() if _measures(situation, e, name)]
    if any("kind.room" in word.keys for word in clause.words):
        outdoors = situation.words.find(_OUTSIDE)
        return [e for e in measuring if e.id not in outdoors and e.area_id]
    named = {entity.id for entity in entities}
    areas = {entity.area_id for entity in entities if entity.area_id}
    if found := [e for e in measuring if e.id in named]:
        return found
    if areas:
        return [e for e in measuring if e.area_id in areas]
    places = [word.keys for word in clause.words if word.has("room") or word.has("area") or word.has("floor")]
    if places:
        inside = situation.words.find(frozenset().union(*places))
        return [e for e in measuring if e.id in inside]
    outside = situation.words.find(_OUTSIDE)
    return [e for e in measuring if e.id in outside] or measuring


def list_consumer_words(clause: Clause) -> tuple[Word, ...]:
    """Return the words for the things whose consumption is asked for; none for that of the home."""
    return tuple(word for word in clause.words if not word.keys & _WHOLE and not is_label(word))


def find_unknown_thing(situation: Situation, named: Iterable[Word]) -> str:
    """Return the first thing that a question names and the home does not know; empty if there is none.

    A word that may be no thing is left out: "in total".
    """
    sentence, articles = situation.sentence, situation.reader.lexicon.articles
    after_article = {sentence.words[n + 1] for n, word in enumerate(sentence.words[:-1]) if word in articles}
    for word in named:
        is_thing = any(map(word.has, ("kind", "room", "noun"))) or word.text.lower() in after_article
        if is_thing and not word.entity_ids and not situation.words.find(word.keys):
            return word.text
    return ""


def find_meters(
    situation: Situation, named: Sequence[Word], entities: Sequence[Entity], kind: str
) -> list[Entity]:
    """Return the meters of the named things, or of the home. Sensors of power stand in for missing ones."""
    classes = [kind, "power"] if kind == "energy" else [kind]
    others = [e for e in entities if situation.index.get_device_class(e.id) not in (*_METER_CLASSES, "power")]
    for device_class in classes:
        meters = [e for e in situation.index.entities.values() if _is_meter(situation, e, device_class)]
        if own := _find_own(situation, meters, entities):
            return own
        if not others or not named:
            of_house = situation.words.find_named(_HOUSE)
            if meters:
                return [e for e in meters if e.id in of_house] or meters
    return []


def is_label(word: Word) -> bool:
    """Return whether a word is a label of the home, such as "energy"."""
    return any(key.startswith("label:") for key in word.keys)


def _find_own(situation: Situation, meters: Iterable[Entity], entities: Sequence[Entity]) -> list[Entity]:
    """Return the meters among the entities, or else those of their devices."""
    meters = list(meters)
    ids = {entity.id for entity in entities}
    devices = {entity.device_id for entity in entities if entity.device_id}
    return [e for e in meters if e.id in ids] or [e for e in meters if e.device_id in devices]


def _is_meter(situation: Situation, entity: Entity, device_class: str) -> bool:
    if entity.domain != "sensor" or situation.index.get_device_class(entity.id) != device_class:
        return False
    state = situation.index.states.get(entity.id)
    counts = str(state.attributes.get("state_class", "")) if state else ""
    return device_class == "power" or counts.startswith("total")


def _measures(situation: Situation, entity: Entity, name: str) -> bool:
    kinds = list_kinds(entity.domain, situation.index.get_device_class(entity.id))
    return entity.domain == "sensor" and f"property.{name}" in kinds


def is_numeric(situation: Situation, entity: Entity) -> bool:
    state = situation.index.states.get(entity.id)
    return entity.domain in ("sensor", "number", "input_number") and state is not None and bool(state.unit)


def _find_states(
    situation: Situation, act: str, entities: Iterable[Entity]
) -> list[tuple[Entity, AskedState]]:
    found = []
    for entity in entities:
        asked = find_asked_state(act, entity.domain, situation.index.get_device_class(entity.id))
        if asked is not None:
            found.append((entity, asked))
    return found


def _find_doors_of(situation: Situation, entities: Sequence[Entity]) -> list[Entity]:
    """Return the door sensors beside locks, or all doors and windows if nothing is named.

    A lock has no open state.
    """
    openings = [
        e for e in situation.index.entities.values() if situation.index.get_device_class(e.id) in _DOORS
    ]
    areas = {entity.area_id for entity in entities if entity.domain == "lock" and entity.area_id}
    return [e for e in openings if e.area_id in areas] if entities else openings
