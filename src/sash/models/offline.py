"""The model that is there without a key and without a network: it understands a little, and says so.

It answers the same way every time. Questions about the conversation and about the house it answers by the
tools that it is given, from what they return; everything else needs a language model, and it says so.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from sash.models.base import Delta, ModelRequest, Stop, TextDelta, ToolCallDelta, Usage, text_of
from sash.models.catalog import OFFLINE
from sash.models.timed import untimed
from sash.words import beginnings, plain

CANNOT = (
    "I cannot answer that without a language model, and none is configured. I can look up what the tools "
    "know, find what was said before (“what did I say about …?”), and keep facts (“remember that …”). To "
    "talk freely, configure a model and its key."
)
NO_IMAGES = (
    "I cannot look at images or listen to recordings without a language model, and none is configured."
)

_said_before = re.compile(
    r"\b(?:what did (?:i|we|you) (?:say|tell|ask|talk|decide|mention|agree)(?: you| me| to you)?"
    r"|did (?:i|we|you) (?:say|mention|tell you)(?: anything| something)?"
    r"|when did (?:i|we|you) (?:say|mention|talk)|what do you (?:remember|know)|do you remember"
    r"|remind me(?: of)? what (?:i|we) said)(?: about| of| on| that| regarding)?\b(?P<about>.*)",
    re.I | re.S,
)
_wrong = re.compile(
    r"\b(?:diagnose|what(?:['’]s| is) wrong with|what happened (?:to|with)|problems? with|check"
    r"|why (?:is|does|did|are|was|isn['’]t|won['’]t))\b(?P<about>.*)",
    re.I | re.S,
)
_errors = re.compile(r"\b(?:errors?|problems?|incidents?|faults?|warnings?|anything wrong)\b", re.I)
_own = re.compile(r"\b(?:my|our|mein|meine|unser|unsere)\b", re.I)
_question = re.compile(
    r"\?\s*$|^\s*(?:is|are|was|were|which|what|how|where|who|show|list|tell me|status|state of)\b", re.I
)
_time = re.compile(r"\bwhat (?:time|day|date) is it\b|\bwhat(?:['’]s| is) (?:the )?(?:time|date|day)\b", re.I)
_week = re.compile(r"\b(?:week|7 days)\b", re.I)
_hour = re.compile(r"\b(?:last hour|past hour|1 hour)\b", re.I)

MOST_DIAGNOSED = 3
_WHO = {"user": "you", "assistant": "I", "tool": "a tool"}


class _Call(NamedTuple):
    name: str
    arguments: dict[str, Any]


class OfflineModel:
    """A model with no network: deterministic, free, and modest."""

    name = OFFLINE

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        turn = _turn(request.messages)
        time, said = untimed(text_of(turn[0]))
        results = [(m["name"], _read(m["content"])) for m in turn if m["role"] == "tool"]
        tools = {tool["function"]["name"] for tool in request.tools}
        call = _next_call(said, results, tools)
        if call is not None:
            yield ToolCallDelta(0, f"offline-{len(results) + 1}", call.name, json.dumps(call.arguments))
        else:
            yield TextDelta(_answer(request, turn[0], said, time, results))
        yield Usage(model=OFFLINE)
        yield Stop("tool_calls" if call else "stop")


def _answer(
    request: ModelRequest,
    message: dict[str, Any],
    said: str,
    time: str | None,
    results: list[tuple[str, Any]],
) -> str:
    if found := _said_before.search(said):
        return _tell_said(found["about"], request.messages, results)
    if results and results[-1][0] == "recall":
        return _tell_said(said, request.messages, results) if _recalled(results[-1][1]) else CANNOT
    if results:
        return _tell(*_telling(results))
    if not isinstance(message["content"], str) and any(p["type"] != "text" for p in message["content"]):
        return NO_IMAGES
    if time and _time.search(said):
        return f"It is {time}."
    return CANNOT


def _telling(results: list[tuple[str, Any]]) -> tuple[str, Any]:
    """Return the result that answers: the last; of several diagnoses in which nothing is wrong the first."""
    name, last = results[-1]
    if name == "diagnose_entity" and isinstance(last, dict) and last.get("status") == "healthy":
        return next(result for result in results if result[0] == name)
    return name, last


def _turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages from the last one of the user on."""
    last = max(n for n, message in enumerate(messages) if message["role"] == "user")
    return messages[last:]


def _next_call(said: str, results: list[tuple[str, Any]], tools: set[str]) -> _Call | None:
    """Return the tool to call next, or None if there is nothing more to find out."""
    wanted = [call for call in _plan(said) if call.name in tools]
    done = [name for name, _ in results]
    if not done:
        return next(iter(wanted), None)
    if done == ["recall"] and not _said_before.search(said) and not _recalled(results[0][1]):
        return next((call for call in wanted if call.name != "recall"), None)
    if done[-1] == "diagnose_entity":
        return _diagnose_next(results)
    found = _entities(results[-1][1]) if done[-1] == "search_index" else []
    if found and "diagnose_entity" in tools and any(call.name == "diagnose_entity" for call in wanted):
        return _Call("diagnose_entity", {"entity_id": found[0]["entity_id"]})
    without_state = [e["entity_id"] for e in found if "state" not in e]
    if without_state and "get_states" in tools:
        return _Call("get_states", {"entity_ids": without_state[:10]})
    return None


def _diagnose_next(results: list[tuple[str, Any]]) -> _Call | None:
    """Look at the next of what was found, as long as nothing is wrong with those before it."""
    diagnoses = [result for name, result in results if name == "diagnose_entity"]
    found = [e["entity_id"] for name, result in results if name == "search_index" for e in _entities(result)]
    seen = {d.get("entity_id") for d in diagnoses if isinstance(d, dict)}
    rest = [entity_id for entity_id in found if entity_id not in seen]
    healthy = all(isinstance(d, dict) and d.get("status") == "healthy" for d in diagnoses)
    if not healthy or not rest or len(diagnoses) >= MOST_DIAGNOSED:
        return None
    return _Call("diagnose_entity", {"entity_id": rest[0]})


def _plan(said: str) -> Iterator[_Call]:
    """Say which tools would answer a sentence, the best first."""
    if found := _said_before.search(said):
        yield _Call("recall", {"query": _about(found["about"])})
        return
    if _own.search(said):
        yield _Call("recall", {"query": _about(said)})
    if _time.search(said):
        return
    if found := _wrong.search(said):
        yield _Call("search_index", {"query": _about(found["about"]) or said})
        yield _Call("diagnose_entity", {})
    if _errors.search(said):
        timeframe = "7d" if _week.search(said) else "1h" if _hour.search(said) else "24h"
        yield _Call("analyze_errors", {"timeframe": timeframe})
    if _question.search(said):
        yield _Call("search_index", {"query": _about(said)})


def _about(text: str) -> str:
    return text.strip(" ?.!,:")


def _tell(name: str, result: Any) -> str:
    """Answer with what a tool has returned, and with nothing else."""
    if not isinstance(result, dict):
        return str(result)
    if name in ("call_service", "undo_last_action"):
        return _tell_action(result)
    if name == "diagnose_entity":
        return _tell_diagnosis(result)
    if name == "analyze_errors":
        return _tell_errors(result)
    entities = _entities(result)
    if entities:
        return "\n".join(_tell_entity(entity) for entity in entities)
    if "entities" in result:
        return f"I find nothing by that name in the house. {CANNOT}"
    return json.dumps(result, ensure_ascii=False, indent=1)


def _tell_said(about: str, messages: list[dict[str, Any]], results: list[tuple[str, Any]]) -> str:
    """Say what was said of something: noted facts, turns that were recalled, and what is still in sight."""
    lines = []
    for _, result in results:
        if isinstance(result, dict):
            lines += [f"I was asked to remember: {fact}" for fact in result.get("facts", ())]
            lines += [line for turn in result.get("turns", ()) for line in _tell_turn(turn)]
    telling = beginnings(about)
    said = [m for m in messages if m["role"] in ("user", "assistant") and m is not _turn(messages)[0]]
    for message in said:
        time, text = untimed(text_of(message))
        if CANNOT not in text and any(stem in plain(text) for stem in telling):
            lines.append(f"{time or 'lately'}, {_WHO[message['role']]}: {text}")
    return "\n".join(lines) or "I find nothing about that in what was said before."


def _tell_turn(turn: dict[str, Any]) -> Iterator[str]:
    date = turn["date"][:16].replace("T", " ")
    for line in turn["said"]:
        yield f"{date}, {_WHO.get(line['role'], line['role'])}: {line['text']}"


def _tell_action(result: dict[str, Any]) -> str:
    """Say what was done, and that it was not, if that is so."""
    if result.get("dry_run"):
        would = result.get("would")
        service = would.get("service", would) if isinstance(would, dict) else would
        return f"This is a dry run, and nothing was done. I would have called {service}."
    lines = [f"{e.get('name', e['entity_id'])}: {e.get('after', 'unknown')}" for e in _entities(result)]
    if result.get("verified") is False:
        lines.insert(0, "I have tried, but the house does not show that it has worked.")
    return "\n".join(lines) or "It was done; nobody can see whether it has worked."


def _tell_diagnosis(result: dict[str, Any]) -> str:
    name, status = result.get("entity_id", "It"), result.get("status", "unknown")
    lines = [f"{name} is {status}: {result.get('current_state')}."]
    for title, key in (("Likely causes", "root_causes"), ("What to do", "recommendations")):
        items = [_in_words(item) for item in result.get(key) or ()]
        if items:
            lines.append(f"{title}: {'; '.join(items)}.")
    return "\n".join(lines)


def _tell_errors(result: dict[str, Any]) -> str:
    lines = [f"{result.get('total_incidents', 0)} incidents."]
    lines += [_in_words(item) for item in result.get("incidents") or ()]
    lines += [f"What to do: {_in_words(item)}" for item in result.get("recommendations") or ()]
    return "\n".join(lines)


def _tell_entity(entity: dict[str, Any]) -> str:
    name = entity.get("name") or entity["entity_id"]
    place = f" ({entity['area']})" if entity.get("area") else ""
    unit = f" {entity['unit']}" if entity.get("unit") else ""
    return f"{name}{place}: {entity.get('state', 'unknown')}{unit}"


def _in_words(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("message") or item.get("description") or json.dumps(item, ensure_ascii=False))
    return str(item)


def _entities(result: Any) -> list[dict[str, Any]]:
    found = result.get("entities") if isinstance(result, dict) else None
    return [e for e in found or () if isinstance(e, dict) and "entity_id" in e]


def _read(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


def _recalled(result: Any) -> bool:
    return isinstance(result, dict) and bool(result.get("facts") or result.get("turns"))
