"""Answers of the offline model about the conversation itself: noted facts and earlier messages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sash.memory.words import extract_stems, normalize
from sash.models.offline.phrases import WRITTEN_PHRASES, Phrases, limit_list
from sash.models.offline.sentence import Sentence
from sash.models.offline.spoken_phrases import SPOKEN_PHRASES
from sash.models.offline.tool_output import ToolOutput
from sash.ports.model import extract_text
from sash.ports.prompt import split_time

MAX_QUOTES = 10
MAX_QUOTE_LENGTH = 300
# Earlier refusals of this model contain search words but no information.
_REFUSALS = tuple(phrases.cannot_answer for phrases in (*WRITTEN_PHRASES.values(), *SPOKEN_PHRASES.values()))


class _Statement(NamedTuple):
    """A message of the conversation, on one line. `at` is its time as text."""

    at: str
    speaker: str
    text: str


def is_answered_by_fact(sentence: Sentence, outputs: list[ToolOutput]) -> bool:
    """Whether a recalled fact has all keywords of the sentence."""
    stems = extract_stems(sentence.text)
    return any(all(stem in normalize(fact) for stem in stems) for fact in _get_facts(outputs))


def has_recalled(outputs: list[ToolOutput]) -> bool:
    """Whether the recall tool returned a fact or a turn."""
    return any(value.get("facts") or value.get("turns") for value in _get_recalled(outputs))


def quote_recalled(
    sentence: Sentence,
    outputs: list[ToolOutput],
    earlier: list[dict[str, Any]],
    tools: frozenset[str],
    phrases: Phrases,
) -> str:
    """Return quotes of noted facts, recalled turns, and earlier messages that share a keyword.

    A question that a fact may answer gets the facts alone. Results of tools in old turns are never quoted.
    """
    facts = [phrases.noted_fact.format(fact) for fact in _get_facts(outputs)]
    if facts and sentence.kind != "recall":
        return _join_quotes(facts, phrases)
    turns = (turn for value in _get_recalled(outputs) for turn in value.get("turns", ()))
    statements = [statement for turn in turns for statement in _read_turn(turn, tools)]
    stems = extract_stems(sentence.subject or sentence.text)
    statements += [
        s for s in _read_earlier(earlier, phrases) if any(stem in normalize(s.text) for stem in stems)
    ]
    # A repeated statement is quoted once, with its latest time.
    unique = {(s.speaker, s.text): s for s in statements}
    quotes = [_quote(statement, phrases) for statement in unique.values()]
    return _join_quotes([*facts, *quotes], phrases) or phrases.nothing_recalled


def quote_user(sentence: Sentence, earlier: list[dict[str, Any]], phrases: Phrases) -> str:
    """Return quotes of the user's earlier statements with all keywords of the sentence, or an empty text."""
    stems = extract_stems(sentence.text)
    quotes = [
        _quote(statement, phrases)
        for statement in _read_earlier(earlier, phrases)
        if statement.speaker == "user"
        and "?" not in statement.text
        and all(stem in normalize(statement.text) for stem in stems)
    ]
    return _join_quotes(quotes, phrases)


def _get_recalled(outputs: list[ToolOutput]) -> list[dict[str, Any]]:
    return [output.value for output in outputs if output.tool == "recall" and isinstance(output.value, dict)]


def _get_facts(outputs: list[ToolOutput]) -> list[str]:
    return [fact for value in _get_recalled(outputs) for fact in value.get("facts", ())]


def _read_earlier(earlier: list[dict[str, Any]], phrases: Phrases) -> Iterator[_Statement]:
    for message in earlier:
        time, text = split_time(extract_text(message))
        if not any(refusal in text for refusal in _REFUSALS):
            yield _Statement(time or phrases.lately, message["role"], " ".join(text.split()))


def _read_turn(turn: dict[str, Any], tools: frozenset[str]) -> Iterator[_Statement]:
    at = turn["date"][:16].replace("T", " ")
    for line in turn["said"]:
        if line["role"] not in tools and line["role"] != "tool" and not line["text"].startswith(("{", "[")):
            yield _Statement(at, line["role"], " ".join(line["text"].split()))


def _quote(statement: _Statement, phrases: Phrases) -> str:
    speaker = phrases.speaker_names.get(statement.speaker, statement.speaker)
    return f"{statement.at}, {speaker}: {statement.text}"


def _join_quotes(quotes: list[str], phrases: Phrases) -> str:
    shown = [q if len(q) <= MAX_QUOTE_LENGTH else f"{q[:MAX_QUOTE_LENGTH]} …" for q in quotes]
    return "\n".join(limit_list(shown, MAX_QUOTES, phrases))
