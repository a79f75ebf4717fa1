"""Says a change of a thing and its time: "the garage door was opened at 8:04"."""

from typing import Literal

from sash.intents.past.asked_states import AskedState
from sash.intents.situation import Situation
from sash.ports.home import UNAVAILABLE, Entity

Form = Literal["last", "did"]


def say_change(situation: Situation, entity: Entity, asked: AskedState, moment: str, form: Form) -> str:
    """Return a sentence that a thing changed into a state. The form "last" says that it was the last time."""
    writer, name = situation.writer, situation.writer.name(entity)
    key = f"past.{form}_{asked.act}"
    if asked.act != "other" and writer.has(key):
        return writer.say(key, name=name, moment=moment)
    return writer.say(
        f"past.{form}_other", name=name, state=say_state(situation, entity, asked.name), moment=moment
    )


def describe_change(situation: Situation, entity: Entity, asked: AskedState, moment: str) -> str:
    """Return a change for the middle of a sentence, without a full stop."""
    text = say_change(situation, entity, asked, moment, "did").rstrip(".")
    name = situation.writer.name(entity)
    return (
        f"{name}{text[len(name) :]}" if text.lower().startswith(name.lower()) else text[:1].lower() + text[1:]
    )


def say_state(situation: Situation, entity: Entity, state: str) -> str:
    """Return a past state of a thing in words."""
    if state == UNAVAILABLE:
        return situation.writer.phrase("past.offline")
    named = situation.writer.state_name(state, situation.index.get_device_class(entity.id))
    return named.replace("_", " ")
