"""The sources in the results of the home's tools: entities, histories and log entries, as citations."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sash.home.index import HomeIndex
from sash.memory.words import extract_keywords, extract_stems, split_words, stem
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
# An answer uses a log entry if it has this many words of it. The words that a question lacks tell whether it
# uses a recalled turn: so many of them, or as many as there are.
MIN_LOG_WORDS = MIN_TURN_WORDS = 2
# The other recalled turns have a smaller part of these words than the turn that has most of them.
MIN_PART_OF_BEST = 0.5
_THOUSANDS = re.compile(r"(?<=\d)[.,'\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_HEADER = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\]")
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

    It mentions an entity by its id, or by all words of its name in one sentence. It mentions a log entry by
    some words of it. Turns are kept: see `find_used_turns`.
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
            case TurnCitation():
                return True

    return list(filter(is_used, citations))


def find_used_turns(texts: Mapping[TurnCitation, str], answer: str, asked: str) -> list[TurnCitation]:
    """Return the recalled turns that an answer uses. `texts` has all that was said in each of them.

    The words of the question are in most of them, and often in the answer. So only other words count: names,
    numbers and what else the answer has from a turn.
    """
    known = _list_stems(asked)
    told = {word for word in _list_telling(answer[:MAX_ANSWER_CHARS]) if not _begins(word, known)}
    shared: dict[TurnCitation, int] = {}
    for turn, text in texts.items():
        said = _list_stems(text)
        shared[turn] = sum(_begins(word, said) for word in told)
    best = max(shared.values(), default=0)
    needed = max(1, min(MIN_TURN_WORDS, best), MIN_PART_OF_BEST * best)
    return [turn for turn, count in shared.items() if count >= needed]


def read_recalled(tool: str, content: str) -> dict[TurnCitation, str]:
    """Return what was said in each turn that the tool `recall` has found. Empty for other tools."""
    found: dict[TurnCitation, str] = {}
    # A program may have a tool of its own with this name.
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        for turn in parse_result(content)["turns"] if tool == "recall" else ():
            found[_cite_turn(turn)] = " ".join(message["text"] for message in turn["said"])
    return found


def split_recalled(said: str, turns: Sequence[TurnCitation]) -> dict[TurnCitation, str]:
    """Return what was said in each recalled turn. `said` has all of them in the order of the conversation.

    Its first line is a heading. The text of a citation is only the beginning of its turn.
    """
    text = " ".join(_HEADER.sub(" ", said.partition("\n")[2]).split())
    starts: dict[TurnCitation, int] = {}
    end = 0
    for turn in sorted(turns, key=lambda turn: turn.at):
        beginning = f": {turn.text.partition(' / ')[0].rstrip('…')}"
        if (start := text.find(beginning, end)) >= 0:
            starts[turn] = start
            end = start + len(beginning)
    ends = [*list(starts.values())[1:], len(text)]
    return {turn: text[start:end] for (turn, start), end in zip(starts.items(), ends, strict=False)}


def _list_telling(text: str) -> frozenset[str]:
    """Return the words with a topic and all numbers of a text, without the signs between thousands."""
    plain = _THOUSANDS.sub("", text)
    return frozenset({*extract_keywords(plain), *(word for word in split_words(plain) if not word.isalpha())})


def _list_stems(text: str) -> tuple[str, ...]:
    return tuple({stem(word) for word in _list_telling(text)})


def _begins(word: str, stems: tuple[str, ...]) -> bool:
    """Return whether a word begins with one of the stems. A number has to be the same."""
    return word.startswith(stems) if word.isalpha() else word in stems


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
    yield from map(_cite_turn, result["turns"])


def _cite_turn(turn: Result) -> TurnCitation:
    return TurnCitation(datetime.fromisoformat(turn["date"]), shorten(turn["said"][0]["text"]))


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
