"""Judges the answer to a sentence as the table of sentences demands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sash.ports.home import State
from tests.answers.table import Case

# Words of ours that no person should read, and forms that are not said.
INTERNAL = re.compile(
    r"call_service|allow_actuation|allowlist|denylist|\[redacted\]|\bNone\b|unavailable °|[{}]"
    r"|\d{4}-\d{2}-\d{2}[ T]\d{2}:|without a language model|ohne Sprachmodell",
    re.I,
)
# An answer that lists states, or finds nothing, is not what was asked for.
EVASIVE = re.compile(r"i cannot find|finde ich .{0,80}nicht|\): ", re.I)
SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
# Services that only read.
READING = (".get_items", ".get_forecasts", ".get_events")
NUMBER_TOLERANCE = 0.02
COLOUR_TOLERANCE = 10


@dataclass(frozen=True)
class Heard:
    """The answer to the last sentence, and its effects on the house.

    `changed` are the entities whose state or attributes differ after the answer, without computed ones. `calls`
    are the services that were called. `waiting` describes the turns that wait. `states` are those at the end.
    """

    answer: str
    states: Mapping[str, State]
    changed: frozenset[str]
    calls: tuple[str, ...]
    waiting: tuple[str, ...] = ()


def find_fault(case: Case, heard: Heard) -> str | None:
    """Return what is wrong with an answer, or None if a person would be content."""
    return _judge_words(case, heard) or _judge_effect(case, heard)


def _judge_words(case: Case, heard: Heard) -> str | None:
    answer = heard.answer.strip()
    everything = " ".join((answer, *heard.waiting)) if "waits" in case.outcomes else answer
    if not answer:
        return "says nothing"
    for wanted in case.says:
        if not any(_contains(everything, each) for each in wanted.split("|")):
            return f"does not say {wanted!r}"
    for bad in case.never:
        if _contains(answer, bad):
            return f"says {bad!r}"
    if (found := INTERNAL.search(answer)) or (found := _find_id(answer, heard.states)):
        return f"shows our words: {found[0]!r}"
    if case.outcomes <= {"answer", "action"} and (found := EVASIVE.search(answer)):
        return f"evades: {found[0]!r}"
    count = max(1, len(SENTENCE_END.findall(answer)))
    if case.max_sentences is not None and count > case.max_sentences:
        return f"has {count} sentences"
    return None


def _judge_effect(case: Case, heard: Heard) -> str | None:
    others = heard.changed.difference(case.may_change)
    is_done = bool(heard.calls or others)
    if is_done and not case.outcomes & {"action"}:
        return f"did {', '.join(heard.calls) or 'change'} {', '.join(sorted(others))}"
    if is_done:
        return _judge_action(case, heard, others)
    if case.outcomes == {"action"}:
        return "did nothing"
    if case.outcomes == {"waits"} and not heard.waiting:
        return "does not wait"
    if case.outcomes <= {"asks", "action"} and not heard.answer.rstrip().endswith("?"):
        return "does not ask"
    if case.then is not None or not case.outcomes & {"action"}:
        return _judge_states(case, heard)
    return None


def _judge_action(case: Case, heard: Heard, others: frozenset[str]) -> str | None:
    if fault := _judge_states(case, heard):
        return fault
    for wanted in case.calls:
        if not set(wanted.split("|")) & set(heard.calls):
            return f"called {', '.join(heard.calls)}"
    extra = others.difference(case.after, case.values)
    return f"also changed {', '.join(sorted(extra))}" if extra and not case.calls else None


def _judge_states(case: Case, heard: Heard) -> str | None:
    for entity_id, wanted in case.after.items():
        if (state := heard.states[entity_id].state) not in wanted.split("|"):
            return f"{entity_id} is {state}"
    for entity_id, values in case.values.items():
        attributes = dict(heard.states[entity_id].attributes)
        if (brightness := attributes.get("brightness")) is not None:
            attributes["brightness_pct"] = brightness / 2.55
        for name, value in values.items():
            if not _is_like(attributes.get(name), value):
                return f"{name} of {entity_id} is {attributes.get(name)}"
    return None


def _contains(text: str, wanted: str) -> bool:
    """Return whether a text has these words, in any case. Short ones have to be whole words."""
    text, wanted = text.casefold(), wanted.casefold()
    if len(wanted) <= 3 and wanted.isalnum():
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text) is not None
    return wanted in text


def _find_id(answer: str, states: Mapping[str, State]) -> re.Match[str] | None:
    return next((one for one in re.finditer(r"[a-z_]+\.[a-z0-9_]+", answer) if one[0] in states), None)


def _is_like(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and wanted[:2] in ("> ", "< "):
        if not isinstance(value, int | float):
            return False
        return value > float(wanted[2:]) if wanted[0] == ">" else value < float(wanted[2:])
    if isinstance(wanted, list):
        return isinstance(value, list | tuple) and all(
            abs(one - other) <= COLOUR_TOLERANCE for one, other in zip(value, wanted, strict=True)
        )
    if isinstance(wanted, bool | str):
        return bool(value == wanted)
    return isinstance(value, int | float) and abs(value - wanted) <= NUMBER_TOLERANCE * max(1, abs(wanted))
