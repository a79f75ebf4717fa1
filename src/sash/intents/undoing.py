"""Undoes the last action: "undo that", "no wait, put it back"."""

from collections.abc import Mapping, Sequence
from typing import Any

from sash.intents.acting.report import has_worked
from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.topic import Topic
from sash.ports.home import Entity
from sash.ports.intents import LocalCallResult

TOOL = "undo_last_action"
_AROUND = ("filler", "refer", "not", "do", "any", "time", "join", "value", "talk", "item", "later")


# What the tool says if it has undone nothing, and the sentence for it. The first one that fits is said.
_REASONS = (
    ("not done: ", "undo.not_allowed"),
    ("cannot be undone", "undo.impossible"),
    ("it is unknown whether", "undo.uncertain"),
    ("nothing was undone", "undo.impossible"),
    ("has changed since", "undo.changed"),
    ("nothing to undo", "undo.nothing"),
)


# The attribute that is said in percent, and its full value.
_PERCENT = {
    "light": ("brightness", 255),
    "media_player": ("volume_level", 1),
    "fan": ("percentage", 100),
    "cover": ("current_position", 100),
}


def undo(situation: Situation, last: Topic | None, changes: int = 1) -> Reply | None:
    """Return the call that undoes the last action, or the report after it. None for other sentences.

    `changes` is the number of actions of the last turn that had an effect. All of them are undone.
    If the last turn promised something (`last`), that is cancelled, and nothing is undone. After a failure
    there is no reply if a language model can explain it.
    """
    if not asks_to_undo(situation.sentence) or TOOL not in situation.utterance.tools:
        return None
    if last is not None and last.kind == "waiting":
        return None
    results = situation.utterance.results
    if not results:
        return Reply(calls=(PlannedCall(TOOL, {}),) * max(changes, 1))
    if situation.utterance.has_model and not has_worked(results[-1]):
        return None
    return _report(situation, results)


def asks_to_undo(sentence: Sentence) -> bool:
    """Return whether a sentence asks for nothing but to take something back."""
    return sentence.covers("memory", more=_AROUND) == "undo"


def _report(situation: Situation, calls: Sequence[LocalCallResult]) -> Reply:
    writer, index = situation.writer, situation.index
    results: list[dict[str, Any]] = [call.parse_object() for call in calls]
    listed = [entry for result in results for entry in result.get("entities") or ()]
    ids = dict.fromkeys(entry.get("entity_id") for entry in listed if isinstance(entry, dict))
    entities = [index.entities[key] for key in ids if key in index.entities]
    if not entities:
        return Reply(_explain(situation, calls[-1]))
    if any(result.get("note") or not result.get("entities") for result in results):
        return Reply(writer.say("undo.partly"))
    if any(result.get("verified") is False for result in results):
        return Reply(writer.say("command.not_seen", names=writer.names(entities)))
    topic = Topic("other", (), tuple(entity.id for entity in entities))
    entries = {str(entry.get("entity_id")): entry for entry in listed if isinstance(entry, dict)}
    states = [_describe(situation, entity, entries[entity.id]) for entity in entities]
    text = writer.say("undo.done", states=writer.join(states))
    return Reply(text, topic=topic.to_json())


def _explain(situation: Situation, call: LocalCallResult) -> str:
    """Return why nothing was undone."""
    writer = situation.writer
    if call.is_denied_by_user:
        return writer.say("command.denied")
    return writer.say(next((key for text, key in _REASONS if text in call.content), "undo.impossible"))


def _describe(situation: Situation, entity: Entity, entry: Mapping[str, Any]) -> str:
    """Return the state of a thing, or the value that it is set to, if that is what was undone.

    `entry` has the states before and after the undo, such as "on (80 % bright)".
    """
    writer, index = situation.writer, situation.index
    state, name = index.states[entity.id], writer.name(entity)
    target = state.attributes.get("temperature")
    if entity.domain == "climate" and state.state != "off" and isinstance(target, int | float):
        return writer.phrase("undo.set_to", name=name, value=writer.quantity(target, "°C"))
    before, after = str(entry.get("before")), str(entry.get("after"))
    if before.partition(" (")[0] != after.partition(" (")[0] or before == after:
        return writer.phrase("undo.state", name=name, state=writer.state(index, entity))
    attribute, full = _PERCENT.get(entity.domain, ("", 1))
    value = state.attributes.get(attribute)
    percent = round(100 * value / full) if isinstance(value, int | float) else None
    if percent is None or f"{percent} %" in before or f"{percent} %" not in after:
        return writer.phrase("undo.as_before", name=name)
    return writer.phrase("undo.set_to", name=name, value=writer.quantity(percent, "%"))
