"""Says that things already are as they should be, and whether they are."""

from collections.abc import Iterable, Sequence

from sash.home.index import HomeIndex
from sash.intents.acting.act import Act
from sash.intents.answers.names import Name
from sash.intents.answers.writer import AnswerWriter
from sash.ports.home import UNAVAILABLE, UNKNOWN, Entity

MAX_NAMED = 6
# The states in which a thing is as these acts leave it.
_STATES = {
    "off": frozenset({"off", "standby"}),
    "open": frozenset({"open", "opening", "unlocked"}),
    "close": frozenset({"closed", "closing", "locked"}),
    "lock": frozenset({"locked"}),
    "unlock": frozenset({"unlocked", "open"}),
}
# A thing in one of these states is not on.
_NOT_ON = frozenset({"off", "standby", "idle", "paused", "docked", "closed", "locked", UNAVAILABLE, UNKNOWN})


def is_already_so(act: Act, state: str | None) -> bool:
    """Return whether a thing in this state is as an act such as "on" would leave it."""
    if act.has("on"):
        return state is not None and state not in _NOT_ON
    return any(state in _STATES[do] for do in act.do if do in _STATES)


def say_already(entities: Sequence[Entity], index: HomeIndex, writer: AnswerWriter) -> str:
    """Return that some things already are as they should be."""
    states = {writer.state(index, entity) for entity in entities}
    if len(states) == 1 and entities:
        key = "already_one" if len(entities) == 1 else "already_all"
        return writer.say(f"command.{key}", names=name_entities(entities, writer), state=states.pop())
    return writer.say("command.already")


def say_not_so(entities: Sequence[Entity], index: HomeIndex, writer: AnswerWriter) -> str:
    """Return the states of things that are not as a command supposes: "the light is off"."""
    by_state: dict[str, list[Entity]] = {}
    for entity in entities:
        by_state.setdefault(writer.state(index, entity), []).append(entity)
    parts = [
        writer.phrase(
            "state.is" if len(alike) == 1 else "state.are", names=name_entities(alike, writer), state=state
        )
        for state, alike in by_state.items()
    ]
    text = writer.join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def name_entities(entities: Iterable[Entity], writer: AnswerWriter) -> Name:
    """Return the names of entities, or how many they are: "10 lights"."""
    listed = list(entities)
    if len(listed) > MAX_NAMED:
        domains = {entity.domain for entity in listed}
        if len(domains) == 1 and writer.has(key := f"plural.{listed[0].domain}"):
            return Name(writer.phrase(key, count=len(listed)), is_plural=True)
        return Name(writer.phrase("plural.things", count=len(listed)), is_plural=True)
    return writer.names(listed)
