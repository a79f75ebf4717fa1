"""Answers questions about the home from the index. Nothing here changes the home."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sash.home.index import HomeIndex
from sash.intents.grammar import Interpretation, Slot
from sash.ports.home import NO_STATE, Entity, State

# The states of a person who is not in a named zone.
_PERSON_STATES = frozenset({"home", "not_home"})
# The only small talk that is answered here. The rest is about Home Assistant itself.
_GREETING = "hello"


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """The facts for an answer: states that match the question, states that do not, and other values."""

    matched: tuple[State, ...] = ()
    unmatched: tuple[State, ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)


FindFacts = Callable[[Interpretation, tuple[Entity, ...], HomeIndex, datetime], AnswerFacts | None]


def find_facts(
    interpretation: Interpretation, entities: tuple[Entity, ...], index: HomeIndex, now: datetime
) -> AnswerFacts | None:
    """Return the facts that answer a question; None if they are not known."""
    return QUESTIONS[interpretation.intent](interpretation, entities, index, now)


def _answer_state(
    interpretation: Interpretation, entities: tuple[Entity, ...], index: HomeIndex, _: datetime
) -> AnswerFacts | None:
    states = _list_known_states(entities, index)
    asked = interpretation.slots.get("state")
    if not states or (asked is not None and asked.is_wildcard and not _is_known_place(asked, states, index)):
        return None
    if asked is None:
        return AnswerFacts(states)
    wanted = {_fold(value) for value in (asked.value if isinstance(asked.value, list) else [asked.value])}
    return AnswerFacts(
        tuple(state for state in states if _fold(state.state) in wanted),
        tuple(state for state in states if _fold(state.state) not in wanted),
    )


def _answer_temperature(
    interpretation: Interpretation, entities: tuple[Entity, ...], index: HomeIndex, _: datetime
) -> AnswerFacts | None:
    """Return the state of a thermostat, or else of the only thermometer; None if several would fit."""
    thermostats = [
        state
        for state in _list_known_states((e for e in entities if e.domain == "climate"), index)
        if state.attributes.get("current_temperature") is not None
    ]
    if thermostats and (len(thermostats) == 1 or interpretation.get_value("area") is not None):
        return AnswerFacts((thermostats[0],))
    thermometers = [
        state
        for state in _list_known_states((e for e in entities if e.domain == "sensor"), index)
        if state.attributes.get("device_class") == "temperature"
    ]
    return AnswerFacts((thermometers[0],)) if not thermostats and len(thermometers) == 1 else None


def _answer_weather(
    _: Interpretation, entities: tuple[Entity, ...], index: HomeIndex, _now: datetime
) -> AnswerFacts | None:
    states = _list_known_states(entities, index)
    return AnswerFacts(states) if len(states) == 1 else None


def _answer_time(
    _: Interpretation, _entities: tuple[Entity, ...], _index: HomeIndex, now: datetime
) -> AnswerFacts:
    return AnswerFacts(slots={"time": now.time(), "date": now.date()})


def _answer_small_talk(
    interpretation: Interpretation, _entities: tuple[Entity, ...], _index: HomeIndex, _: datetime
) -> AnswerFacts | None:
    return (
        AnswerFacts()
        if interpretation.intent == "HassNevermind" or interpretation.response == _GREETING
        else None
    )


def _list_known_states(entities: Iterable[Entity], index: HomeIndex) -> tuple[State, ...]:
    found = (index.states.get(entity.id) for entity in entities)
    return tuple(state for state in found if state is not None and state.state not in NO_STATE)


def _is_known_place(asked: Slot, people: tuple[State, ...], index: HomeIndex) -> bool:
    """Return whether a person's place exists in the home. The grammar accepts any words as a place."""
    zones = (entity.name for entity in index.entities.values() if entity.domain == "zone")
    places = {*_PERSON_STATES, *zones, *(state.state for state in people)}
    return _fold(asked.value) in {_fold(place) for place in places}


def _fold(value: object) -> str:
    return str(value).strip().casefold()


QUESTIONS: Mapping[str, FindFacts] = {
    "HassClimateGetTemperature": _answer_temperature,
    "HassGetCurrentDate": _answer_time,
    "HassGetCurrentTime": _answer_time,
    "HassGetState": _answer_state,
    "HassGetWeather": _answer_weather,
    "HassNevermind": _answer_small_talk,
    "HassRespond": _answer_small_talk,
}
# The domains of a question that names none.
DEFAULT_DOMAINS: Mapping[str, tuple[str, ...]] = {
    "HassClimateGetTemperature": ("climate", "sensor"),
    "HassGetWeather": ("weather",),
}
