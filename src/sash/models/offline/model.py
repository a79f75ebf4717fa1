"""The offline model: deterministic, free, without a key and without a network.

It answers questions about the conversation and the home from the results of the tools in the request. It
refuses everything else, because that needs a language model. It never changes the home.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from sash.models.catalog import OFFLINE
from sash.models.offline.answers import AnswerInput, compose_answer
from sash.models.offline.entity_matching import find_missing_names, select_entities
from sash.models.offline.phrases import UNAVAILABLE, WRITTEN_PHRASES, choose_phrases
from sash.models.offline.recollections import is_answered_by_fact
from sash.models.offline.sentence import (
    PUNCTUATION,
    Sentence,
    extract_names,
    find_entity_id,
    is_about_speaker,
    parse_sentence,
    read_hours,
)
from sash.models.offline.spoken_phrases import SPOKEN_PHRASES
from sash.models.offline.tool_output import ToolOutput, get_entities, get_found_entities, read_outputs
from sash.ports.intents import NOT_UNDERSTOOD
from sash.ports.model import (
    Delta,
    Model,
    ModelRequest,
    Stop,
    TextDelta,
    ToolCallDelta,
    Usage,
    extract_text,
)
from sash.ports.prompt import split_time

# A longer sentence is not understood anyway, and would occupy the event loop.
MAX_SENTENCE_CHARS = 400
# The runtime cuts results of more than a few kilobytes, so each call asks for little.
MAX_FOUND = 30
MAX_READ = 10
MAX_BATTERIES = 25
MAX_HISTORIES = 8
MAX_ENTRIES = 40
MAX_DIAGNOSES = 3


class _ToolCall(NamedTuple):
    name: str
    arguments: dict[str, Any]


class OfflineModel(Model):
    """A model without a network. It parses plain sentences and calls reading tools to answer them.

    `is_spoken` gives short answers for a voice, and names settings as Home Assistant shows them.
    """

    name = OFFLINE

    def __init__(self, *, is_spoken: bool = False) -> None:
        self._phrases = SPOKEN_PHRASES if is_spoken else WRITTEN_PHRASES

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        turn = _get_turn(request.messages)
        time, text = split_time(extract_text(turn[0]))
        sentence, outputs = parse_sentence(text[:MAX_SENTENCE_CHARS]), read_outputs(turn)
        outputs = [output for output in outputs if output.value != NOT_UNDERSTOOD]
        tools = frozenset(tool["function"]["name"] for tool in request.tools)
        call = _plan_call(sentence, outputs, tools)
        if call is not None and call.name in tools:
            yield ToolCallDelta(0, f"offline-{len(outputs) + 1}", call.name, json.dumps(call.arguments))
            yield Usage(model=OFFLINE)
            yield Stop("tool_calls")
            return
        earlier = [m for m in request.messages[: -len(turn)] if m["role"] in ("user", "assistant")]
        given = AnswerInput(sentence, outputs, turn[0]["content"], time, earlier, tools)
        yield TextDelta(compose_answer(given, choose_phrases(request.messages, self._phrases)))
        yield Usage(model=OFFLINE)
        yield Stop("stop")


def _get_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last user message and all messages after it."""
    start_index = max(index for index, message in enumerate(messages) if message["role"] == "user")
    return messages[start_index:]


def _plan_call(sentence: Sentence, outputs: list[ToolOutput], tools: frozenset[str]) -> _ToolCall | None:
    """Return the next tool call for a sentence, or None if the results so far suffice."""
    called = [output.tool for output in outputs]
    if "call_service" in called or "undo_last_action" in called:
        return None
    if is_about_speaker(sentence.text) and not called and "recall" in tools:
        return _ToolCall("recall", {"query": sentence.text.strip(PUNCTUATION)})
    if "recall" in called and (sentence.kind == "recall" or is_answered_by_fact(sentence, outputs)):
        return None
    plan = _PLANS.get(sentence.kind)
    return plan(sentence, [output for output in outputs if output.tool != "recall"]) if plan else None


def _plan_recall(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    return _ToolCall("recall", {"query": sentence.subject})


def _plan_unavailable(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    return None if outputs else _search(sentence.subject, state=UNAVAILABLE)


def _plan_batteries(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    """Return a search for batteries, then a read of their levels, then the history of unavailable ones."""
    if not outputs:
        return _search(sentence.subject)
    if len(outputs) == 1:
        found = [e["entity_id"] for e in get_found_entities(outputs)]
        return _ToolCall("get_states", {"entity_ids": found[:MAX_BATTERIES]}) if found else None
    unavailable = [e["entity_id"] for e in get_entities(outputs[-1].value) if e.get("state") == UNAVAILABLE]
    if len(outputs) > 2 or not unavailable:
        return None
    return _ToolCall("get_history", {"entity_ids": unavailable[:MAX_HISTORIES], "hours": 24 * 7})


def _plan_logbook(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    """Return a read of the logbook of the home, or of the entities that the sentence means."""
    arguments: dict[str, Any] = {"hours": read_hours(sentence.text), "limit": MAX_ENTRIES}
    if not extract_names(sentence.subject):
        return None if outputs else _ToolCall("get_logbook", arguments)
    if not outputs:
        return _search(sentence.subject)
    if len(outputs) > 1 or not (found := _select_matching(sentence, outputs)):
        return None
    entity_ids = [e["entity_id"] for e in found[:MAX_READ]]
    return _ToolCall("get_logbook", arguments | {"entity_ids": entity_ids})


def _plan_diagnosis(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    """Return a diagnosis of the first entity that the sentence may mean, or of the next if it is healthy."""
    if entity_id := find_entity_id(sentence.subject):
        return None if outputs else _ToolCall("diagnose_entity", {"entity_id": entity_id})
    if not outputs:
        return _search(sentence.subject)
    diagnoses = [output.value for output in outputs if output.tool == "diagnose_entity"]
    are_healthy = all(isinstance(d, dict) and d.get("status") == "healthy" for d in diagnoses)
    found = _select_matching(sentence, outputs)[:MAX_DIAGNOSES]
    if are_healthy and len(diagnoses) < len(found):
        return _ToolCall("diagnose_entity", {"entity_id": found[len(diagnoses)]["entity_id"]})
    is_last_step = outputs[-1].tool == "diagnose_entity"
    if sentence.kind == "why" and are_healthy and len(found) == 1 and is_last_step:
        return _ToolCall("get_logbook", {"entity_ids": [found[0]["entity_id"]], "hours": 24})
    return None


def _plan_errors(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    timeframe = {1: "1h", 24: "24h"}.get(read_hours(sentence.text), "7d")
    return None if outputs else _ToolCall("analyze_errors", {"timeframe": timeframe})


def _plan_order(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    return None if outputs else _search(sentence.subject)


def _plan_question(sentence: Sentence, outputs: list[ToolOutput]) -> _ToolCall | None:
    """Return a search, then a read of the states that the search result lacks."""
    if not outputs:
        if entity_id := find_entity_id(sentence.subject):
            return _ToolCall("get_states", {"entity_ids": [entity_id]})
        return _search(sentence.subject)
    if outputs[-1].tool != "search_index":
        return None
    found = select_entities(sentence.subject, get_found_entities(outputs))[:MAX_READ]
    # A search result lacks the device class, which names the states of a binary sensor.
    unread = [
        e["entity_id"] for e in found if "state" not in e or e["entity_id"].startswith("binary_sensor.")
    ]
    return _ToolCall("get_states", {"entity_ids": unread}) if unread else None


def _select_matching(sentence: Sentence, outputs: list[ToolOutput]) -> list[dict[str, Any]]:
    """Return the entities that the sentence means; empty if the search found only similar ones."""
    value = outputs[0].value
    if not isinstance(value, dict) or find_missing_names(sentence, value):
        return []
    return select_entities(sentence.subject, get_entities(value))


def _search(query: str, **filters: str) -> _ToolCall:
    return _ToolCall("search_index", {"query": query, "limit": MAX_FOUND} | filters)


_PLANS: dict[str, Callable[[Sentence, list[ToolOutput]], _ToolCall | None]] = {
    "recall": _plan_recall,
    "unavailable": _plan_unavailable,
    "batteries": _plan_batteries,
    "logbook": _plan_logbook,
    "why": _plan_diagnosis,
    "diagnosis": _plan_diagnosis,
    "errors": _plan_errors,
    "order": _plan_order,
    "question": _plan_question,
}
