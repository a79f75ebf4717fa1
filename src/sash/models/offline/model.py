"""The model that is there without a key and without a network: it understands a little, and says so.

It answers the same way every time. Questions about the conversation and about the house it answers by the
tools that it is given, from what they return; everything else needs a language model, and it says so. It
calls nothing that changes the house.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from sash.models.catalog import OFFLINE
from sash.models.offline.answers import Found, Results, answer, entities_of, found_in, is_told
from sash.models.offline.sentence import (
    Wish,
    entity_id,
    hours,
    is_about_own,
    meant,
    missing,
    names,
    read,
)
from sash.models.offline.speech import UNAVAILABLE, speech
from sash.ports.model import Delta, Model, ModelRequest, Stop, TextDelta, ToolCallDelta, Usage, extract_text
from sash.ports.prompt import split_time

MAX_DIAGNOSED = 3
# A result that is larger than some kilobytes is cut.
MAX_FOUND = 30
MAX_READ = 10
MAX_BATTERIES = 25
MAX_HISTORIES = 8
MAX_ENTRIES = 40


class _Call(NamedTuple):
    name: str
    arguments: dict[str, Any]


class OfflineModel(Model):
    """A model with no network: deterministic, free, and modest."""

    name = OFFLINE

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        turn = _turn(request.messages)
        time, said = split_time(extract_text(turn[0]))
        wish = read(said)
        results = [(m["name"], _read(m["content"])) for m in turn if m["role"] == "tool"]
        tools = {tool["function"]["name"] for tool in request.tools}
        call = _next_call(wish, results, tools)
        if call is not None and call.name in tools:
            yield ToolCallDelta(0, f"offline-{len(results) + 1}", call.name, json.dumps(call.arguments))
        else:
            call = None
            earlier = request.messages[: -len(turn)]
            before = [message for message in earlier if message["role"] in ("user", "assistant")]
            found = Found(results, turn[0], time, before, frozenset(tools))
            yield TextDelta(answer(wish, found, speech(request.messages)))
        yield Usage(model=OFFLINE)
        yield Stop("tool_calls" if call else "stop")


def _turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages from the last one of the user on."""
    last = max(n for n, message in enumerate(messages) if message["role"] == "user")
    return messages[last:]


def _next_call(wish: Wish, results: Results, tools: set[str]) -> _Call | None:
    """Return the tool to call next, or None if there is nothing more to find out."""
    done = [name for name, _ in results]
    if "call_service" in done or "undo_last_action" in done:
        return None
    if is_about_own(wish.said) and not done and "recall" in tools:
        return _Call("recall", {"query": wish.said.strip(" ?.!,:")})
    if "recall" in done and (wish.kind == "said" or is_told(wish, results)):
        return None
    plan = _PLANS.get(wish.kind)
    return plan(wish, [result for result in results if result[0] != "recall"]) if plan else None


def _look_back(wish: Wish, results: Results) -> _Call | None:
    return _Call("recall", {"query": wish.about})


def _find_away(wish: Wish, results: Results) -> _Call | None:
    return None if results else _search(wish.about, state=UNAVAILABLE)


def _find_batteries(wish: Wish, results: Results) -> _Call | None:
    """Find the batteries, then their levels, and the last known ones of those that have none just now."""
    if not results:
        return _search(wish.about)
    if len(results) == 1:
        found = [e["entity_id"] for e in found_in(results)]
        return _Call("get_states", {"entity_ids": found[:MAX_BATTERIES]}) if found else None
    silent = [e["entity_id"] for e in entities_of(results[-1][1]) if e.get("state") == UNAVAILABLE]
    if len(results) > 2 or not silent:
        return None
    return _Call("get_history", {"entity_ids": silent[:MAX_HISTORIES], "hours": 24 * 7})


def _read_logbook(wish: Wish, results: Results) -> _Call | None:
    """Read what happened, in the house or to a thing."""
    arguments: dict[str, Any] = {"hours": hours(wish.said), "limit": MAX_ENTRIES}
    if not names(wish.about):
        return None if results else _Call("get_logbook", arguments)
    if not results:
        return _search(wish.about)
    if len(results) > 1 or not (found := _meant(wish, results)):
        return None
    return _Call("get_logbook", arguments | {"entity_ids": [e["entity_id"] for e in found[:MAX_READ]]})


def _diagnose(wish: Wish, results: Results) -> _Call | None:
    """Look at what was asked about; if nothing is wrong with it, at the next that the words fit as well."""
    if written := entity_id(wish.about):
        return None if results else _Call("diagnose_entity", {"entity_id": written})
    if not results:
        return _search(wish.about)
    diagnoses = [result for name, result in results if name == "diagnose_entity"]
    healthy = all(isinstance(d, dict) and d.get("status") == "healthy" for d in diagnoses)
    found = _meant(wish, results)[:MAX_DIAGNOSED]
    if healthy and len(diagnoses) < len(found):
        return _Call("diagnose_entity", {"entity_id": found[len(diagnoses)]["entity_id"]})
    if wish.kind == "why" and healthy and len(found) == 1 and results[-1][0] == "diagnose_entity":
        return _Call("get_logbook", {"entity_ids": [found[0]["entity_id"]], "hours": 24})
    return None


def _sum_up(wish: Wish, results: Results) -> _Call | None:
    timeframe = {1: "1h", 24: "24h"}.get(hours(wish.said), "7d")
    return None if results else _Call("analyze_errors", {"timeframe": timeframe})


def _look_for(wish: Wish, results: Results) -> _Call | None:
    return None if results else _search(wish.about)


def _look_up(wish: Wish, results: Results) -> _Call | None:
    if results:
        return _read_found(wish, results) if results[-1][0] == "search_index" else None
    written = entity_id(wish.about)
    return _Call("get_states", {"entity_ids": [written]}) if written else _search(wish.about)


def _read_found(wish: Wish, results: Results) -> _Call | None:
    """Read the states of what was found, if they are not known or nobody knows what they are called."""
    found = meant(wish.about, found_in(results))[:MAX_READ]
    unclear = [
        e["entity_id"] for e in found if "state" not in e or e["entity_id"].startswith("binary_sensor.")
    ]
    return _Call("get_states", {"entity_ids": unclear}) if unclear else None


def _meant(wish: Wish, results: Results) -> list[dict[str, Any]]:
    """Return what a sentence speaks of; nothing if what was found is only near it."""
    result = results[0][1]
    if not isinstance(result, dict) or missing(wish, result):
        return []
    return meant(wish.about, entities_of(result))


def _search(query: str, **narrowed: str) -> _Call:
    return _Call("search_index", {"query": query, "limit": MAX_FOUND} | narrowed)


def _read(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


_PLANS: dict[str, Callable[[Wish, Results], _Call | None]] = {
    "said": _look_back,
    "away": _find_away,
    "batteries": _find_batteries,
    "happened": _read_logbook,
    "why": _diagnose,
    "wrong": _diagnose,
    "errors": _sum_up,
    "order": _look_for,
    "question": _look_up,
}
