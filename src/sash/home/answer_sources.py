"""The sources in the results of the home's tools: entities, histories and log entries, as citations."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from sash.home.index import HomeIndex
from sash.memory.words import extract_stems, split_words
from sash.ports.home import State
from sash.values.citations import (
    Citation,
    EntityCitation,
    HistoryCitation,
    LogCitation,
    TurnCitation,
    shorten,
)

MAX_ANSWER_CHARS = 8000
# An answer uses a log entry if it has this many words of it, and a recalled turn with one word.
MIN_LOG_WORDS = 2
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")

Result = dict[str, Any]


def cite_state(index: HomeIndex, state: State) -> EntityCitation:
    """Return the present state of an entity as a citation."""
    entity = index.entities.get(state.entity_id)
    name = entity.name if entity else state.entity_id
    return EntityCitation(
        state.entity_id, shorten(name), shorten(state.state), shorten(state.unit), state.changed_at
    )


def cite_result(tool: str, content: str) -> list[Citation]:
    """Return the sources in the result of a tool, given as JSON text. Empty for other tools and errors."""
    found: list[Citation] = []
    result = parse_result(content) if tool in _READERS else {}
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        found.extend(_READERS[tool](result))
    return found


def parse_result(content: str) -> Result:
    """Return the result of a tool as a JSON object. Empty if it is not one, as for an error message."""
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def find_used(citations: Iterable[Citation], answer: str) -> list[Citation]:
    """Return the sources that an answer mentions.

    It mentions an entity by its id, or by all words of its name in one sentence. It mentions a log entry or a
    recalled turn by some words of it.
    """
    answer = answer[:MAX_ANSWER_CHARS]
    sentences = [frozenset(split_words(sentence)) for sentence in _SENTENCE_END.split(answer)]
    words = frozenset[str]().union(*sentences)

    def is_used(citation: Citation) -> bool:
        match citation:
            case EntityCitation(entity_id, name) | HistoryCitation(entity_id, name):
                parts = split_words(name)
                return entity_id in answer or any(_has_words(sentence, parts) for sentence in sentences)
            case LogCitation(text=text):
                return _count_shared(text, words) >= MIN_LOG_WORDS
            case TurnCitation(text=text):
                return _count_shared(text, words) > 0

    return list(filter(is_used, citations))


def _has_words(sentence: frozenset[str], parts: list[str]) -> bool:
    return bool(parts) and all(any(word.startswith(part) for word in sentence) for part in parts)


def _count_shared(text: str, words: frozenset[str]) -> int:
    return sum(any(word.startswith(stem) for word in words) for stem in extract_stems(text))


def _read_entities(result: Result) -> Iterator[Citation]:
    for entry in result["entities"]:
        state = entry.get("after", entry.get("state"))
        if isinstance(state, str):
            yield EntityCitation(
                shorten(entry["entity_id"]),
                shorten(entry["name"]),
                shorten(state.partition(" (")[0] if "after" in entry else state),
                shorten(entry.get("unit", "")),
                datetime.fromisoformat(entry["since"]) if "since" in entry else None,
            )


def _read_histories(result: Result) -> Iterator[Citation]:
    start, end = datetime.fromisoformat(result["from"]), datetime.fromisoformat(result["to"])
    for entry in result["entities"]:
        yield HistoryCitation(shorten(entry["entity_id"]), shorten(entry["name"]), start, end)


def _read_logbook(result: Result) -> Iterator[Citation]:
    for entry in result["entries"]:
        text = shorten(f"{entry['name']} {entry['message']}")
        yield LogCitation(datetime.fromisoformat(entry["at"]), text, entry.get("entity_id"))


def _read_diagnosis(result: Result) -> Iterator[Citation]:
    since = result["last_changed"]
    at = datetime.fromisoformat(since) if since else None
    name, state = shorten(result["name"]), shorten(result["current_state"])
    yield EntityCitation(shorten(result["entity_id"]), name, state, at=at)


def _read_incidents(result: Result) -> Iterator[Citation]:
    for incident in result["incidents"]:
        text = shorten(f"{incident['source']}: {incident['message']}")
        yield LogCitation(datetime.fromisoformat(incident["last_at"]), text)


def _read_recalled(result: Result) -> Iterator[Citation]:
    for turn in result["turns"]:
        yield TurnCitation(datetime.fromisoformat(turn["date"]), shorten(turn["said"][0]["text"]))


_READERS: dict[str, Callable[[Result], Iterator[Citation]]] = {
    "search_index": _read_entities,
    "get_states": _read_entities,
    "call_service": _read_entities,
    "get_history": _read_histories,
    "analyze_history": _read_histories,
    "get_logbook": _read_logbook,
    "diagnose_entity": _read_diagnosis,
    "analyze_errors": _read_incidents,
    "recall": _read_recalled,
}
