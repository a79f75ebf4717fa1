"""What is answered about the house at once. Nothing in here can change it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sash.home.index import Index
from sash.intents.grammar import Meaning, Slot
from sash.ports.home import NO_STATE, Entity, State

# States that are said as they are: whoever is in no zone is away.
_PLACES = frozenset({"home", "not_home"})
# Of Home Assistant's own small talk only the greeting: the rest tells where the data goes, and the like.
_SMALL_TALK = "hello"


@dataclass(frozen=True, slots=True)
class Facts:
    """What an answer is made of: the entities that are as was asked, those that are not, and more words."""

    matched: tuple[State, ...] = ()
    unmatched: tuple[State, ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)


Answerer = Callable[[Meaning, tuple[Entity, ...], Index, datetime], Facts | None]


def facts_for(meaning: Meaning, entities: tuple[Entity, ...], index: Index, now: datetime) -> Facts | None:
    """Return what a question is answered with; None if that is not known."""
    return QUESTIONS[meaning.intent](meaning, entities, index, now)


def _state(meaning: Meaning, entities: tuple[Entity, ...], index: Index, _: datetime) -> Facts | None:
    states = _known(entities, index)
    asked = meaning.slots.get("state")
    if not states or (asked is not None and asked.wildcard and not _is_place(asked, states, index)):
        return None
    if asked is None:
        return Facts(states)
    wanted = {_folded(value) for value in (asked.value if isinstance(asked.value, list) else [asked.value])}
    return Facts(
        tuple(state for state in states if _folded(state.state) in wanted),
        tuple(state for state in states if _folded(state.state) not in wanted),
    )


def _temperature(meaning: Meaning, entities: tuple[Entity, ...], index: Index, _: datetime) -> Facts | None:
    """A thermostat knows how warm it is in its room; else a single thermometer does."""
    thermostats = [
        state
        for state in _known((e for e in entities if e.domain == "climate"), index)
        if state.attributes.get("current_temperature") is not None
    ]
    if thermostats and (len(thermostats) == 1 or meaning.value("area") is not None):
        return Facts((thermostats[0],))
    thermometers = [
        state
        for state in _known((e for e in entities if e.domain == "sensor"), index)
        if state.attributes.get("device_class") == "temperature"
    ]
    return Facts((thermometers[0],)) if not thermostats and len(thermometers) == 1 else None


def _weather(_: Meaning, entities: tuple[Entity, ...], index: Index, _now: datetime) -> Facts | None:
    states = _known(entities, index)
    return Facts(states) if len(states) == 1 else None


def _time(_: Meaning, _entities: tuple[Entity, ...], _index: Index, now: datetime) -> Facts:
    return Facts(slots={"time": now.time(), "date": now.date()})


def _small_talk(meaning: Meaning, _entities: tuple[Entity, ...], _index: Index, _: datetime) -> Facts | None:
    return Facts() if meaning.intent == "HassNevermind" or meaning.response == _SMALL_TALK else None


def _known(entities: Iterable[Entity], index: Index) -> tuple[State, ...]:
    found = (index.states.get(entity.id) for entity in entities)
    return tuple(state for state in found if state is not None and state.state not in NO_STATE)


def _is_place(asked: Slot, people: tuple[State, ...], index: Index) -> bool:
    """Whether somebody can be where a question asks: any words are taken for a place by the grammar."""
    zones = (entity.name for entity in index.entities.values() if entity.domain == "zone")
    places = {*_PLACES, *zones, *(state.state for state in people)}
    return _folded(asked.value) in {_folded(place) for place in places}


def _folded(value: object) -> str:
    return str(value).strip().casefold()


QUESTIONS: Mapping[str, Answerer] = {
    "HassClimateGetTemperature": _temperature,
    "HassGetCurrentDate": _time,
    "HassGetCurrentTime": _time,
    "HassGetState": _state,
    "HassGetWeather": _weather,
    "HassNevermind": _small_talk,
    "HassRespond": _small_talk,
}
# Whom a question is about if it does not say.
ABOUT: Mapping[str, tuple[str, ...]] = {
    "HassClimateGetTemperature": ("climate", "sensor"),
    "HassGetWeather": ("weather",),
}
