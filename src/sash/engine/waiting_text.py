"""Waiting turns as values that a client or a model reads."""

from datetime import datetime, tzinfo
from typing import Any

from sash.home.index import HomeIndex
from sash.values.state_words import choose_state_words
from sash.values.waiting_turns import StateCondition, WaitingTurn


def describe_waiting_turn(turn: WaitingTurn, index: HomeIndex | None, zone: tzinfo | None) -> dict[str, Any]:
    """Return what a waiting turn does and what it waits for.

    It has `at`, a local ISO time, or `when`, a text such as "Washing machine is off".
    """
    described: dict[str, Any] = {"id": turn.id, "summary": turn.summary}
    if turn.at is not None:
        described["at"] = format_time(turn.at, zone)
    if turn.when is not None:
        described["when"] = describe_condition(turn.when, index, turn.language)
        if turn.status == "already_so":
            described["already_so"] = True
    if turn.only_if:
        described["only_if"] = [describe_condition(each, index, turn.language) for each in turn.only_if]
    return described | {"entity_ids": list(turn.entity_ids)}


def format_time(at: datetime, zone: tzinfo | None) -> str:
    """Return a local time as an ISO text, to the second."""
    return at.astimezone(zone).isoformat(timespec="seconds")


def describe_condition(
    condition: StateCondition, index: HomeIndex | None, language: str | None = None
) -> str:
    """Return a condition as a text, such as "Washing machine is off for 60 s".

    Without the home, the words of an entity id stand for its name.
    """
    entity = None if index is None else index.entities.get(condition.entity_id)
    name = _to_words(condition.entity_id) if entity is None else entity.name
    device_class = "" if index is None else index.get_device_class(condition.entity_id)
    words = choose_state_words(language or "en")

    def write_states(states: tuple[str, ...]) -> str:
        return " / ".join(words.name_state(state, device_class).replace("_", " ") for state in states)

    link = words.linking
    joined = f" {link['and']} "
    parts = [write_states(condition.states)] if condition.states else []
    parts += [f"{link['above']} {condition.above:g}"] if condition.above is not None else []
    parts += [f"{link['below']} {condition.below:g}"] if condition.below is not None else []
    said = [f"{link['is']} {joined.join(parts)}"] if parts else []
    said += [f"{link['is_not']} {write_states(condition.not_states)}"] if condition.not_states else []
    held = f" {link['for']} {condition.for_s:g} s" if condition.for_s else ""
    return f"{name} {joined.join(said)}{held}"


def _to_words(entity_id: str) -> str:
    return entity_id.partition(".")[2].replace("_", " ").capitalize()
