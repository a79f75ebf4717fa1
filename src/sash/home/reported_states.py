"""Compares a sentence that reports a state with the present states of the entities that it names."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sash.home.index import HomeIndex
from sash.memory.words import split_words
from sash.ports.home import Entity

MAX_SENTENCE_CHARS = 1000
_OPENINGS = frozenset({"door", "window", "opening", "garage_door"})


class _Wording(NamedTuple):
    """The words for a state, and the states of entities that have it or its opposite."""

    words: re.Pattern[str]
    states: frozenset[str]
    opposites: frozenset[str]


def _wording(words: str, states: str, opposites: str) -> _Wording:
    return _Wording(
        re.compile(rf"\b(?:{words})\b", re.I), frozenset(states.split()), frozenset(opposites.split())
    )


_ARMED = "armed_home armed_away armed_night armed_vacation armed_custom_bypass"
_ON = "on heat cool heat_cool auto dry fan_only playing paused idle cleaning"
_OPEN, _CLOSED = "open opening", "closed closing"
# The words are those of the patterns in `sash.engine.grounding`.
_WORDINGS = (
    _wording("on|an|eingeschaltet|angemacht|allumée?s?|encendid[oa]s?|acces[oaie]|aan", _ON, "off standby"),
    _wording("off|aus|ausgeschaltet|éteinte?s?|apagad[oa]s?|spent[oaie]|uit", "off standby", _ON),
    _wording("open|opened|auf|offen|geöffnet|ouverte?s?|abiert[oa]s?|apert[oaie]", _OPEN, _CLOSED),
    _wording("closed|shut|zu|geschlossen|fermée?s?|cerrad[oa]s?|chius[oaie]|dicht|gesloten", _CLOSED, _OPEN),
    _wording(
        "locked|verriegelt|abgeschlossen|verrouillée?s?|bloquead[oa]s?|bloccat[oaie]|vergrendeld",
        "locked",
        "unlocked open jammed",
    ),
    _wording("unlocked|entriegelt|aufgeschlossen|déverrouillée?s?", "unlocked", "locked jammed"),
    _wording("armed", _ARMED, "disarmed triggered"),
    _wording("disarmed", "disarmed", _ARMED),
)


def reports_present_state(index: HomeIndex, sentence: str, message: str = "") -> bool:
    """Return True if all entities that the sentence names have the state that it reports.

    A sentence such as "It is locked now" names none; then the entities that the message names count. If no
    entity is named, or the sentence reports no known state, the result is False.
    """
    sentence, message = sentence[:MAX_SENTENCE_CHARS], message[:MAX_SENTENCE_CHARS]
    wordings = [wording for wording in _WORDINGS if wording.words.search(sentence)]
    for text in (sentence, f"{sentence} {message}"):
        checks = [check for wording in wordings for check in _compare(index, text, wording)]
        if checks:
            return all(checks)
    return False


def _compare(index: HomeIndex, text: str, wording: _Wording) -> Iterator[bool]:
    """Yield for each named entity that can have the state of the wording whether it has it."""
    words = frozenset(split_words(text))
    named = [(entity, state) for entity in index.entities.values() if (state := _read(index, entity))]
    named = [
        (entity, state)
        for entity, state in named
        if state in wording.states | wording.opposites
        and contain_name(words, entity.id, entity.name, *entity.aliases)
    ]
    of_kind = [(entity, state) for entity, state in named if words & _kinds(entity.id)]
    for _, state in of_kind or named:
        yield state in wording.states


def _read(index: HomeIndex, entity: Entity) -> str:
    """Return the present state. A sensor of a door or a window is open or closed."""
    state = index.get_state(entity.id)
    if index.get_device_class(entity.id) in _OPENINGS and entity.domain == "binary_sensor":
        return {"on": "open", "off": "closed"}.get(state, state)
    return state


def _kinds(entity_id: str) -> frozenset[str]:
    """Return the words for the kind of an entity: "light" and "lights"."""
    words = split_words(entity_id.partition(".")[0].replace("_", " "))
    return frozenset(words + [f"{word}s" for word in words])


def contain_name(words: frozenset[str], entity_id: str, *names: str) -> bool:
    """Return True if the words contain a name of the entity, apart from the word for its kind."""
    return any(bool(own := set(split_words(name)) - _kinds(entity_id)) and own <= words for name in names)
