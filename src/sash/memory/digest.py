"""The digest of evicted turns: one line for each turn, with its identifiers verbatim, without a model.

The digest is extractive: nothing is rephrased. A line has the turn's first words. Then it lists every
further identifier, and names of people and places. Of a JSON result it lists only the first few names among
the values. If the digest exceeds its budget, its oldest lines are dropped; the transcript still has them.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from sash.errors import InvalidLimit
from sash.memory.identifiers import find_identifiers, iterate_identifiers
from sash.memory.proper_names import find_names
from sash.values.ids import is_ulid
from sash.values.messages import LOCAL_TAG, OFFLINE_TAG, MessageEntry
from sash.values.validation import check_limit

DIGEST_TOKENS = 2000

_FIRST_WORDS = 12
_FIRST_CHARS = 90
_MAX_IDENTIFIER_LENGTH = 1000
_NOTE_TOKENS = 16
# A digest with fewer tokens has no room for a line.
MIN_DIGEST_TOKENS = 2 * _NOTE_TOKENS
_MAX_NAMES = 24
_MAX_NAMES_PER_RESULT = 12
_timestamp = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|$)")
_word = re.compile(r"\w+")
_QUOTE_SIGNS = "`'\"“”„‘’«»"
# Refusals of Sash have these words.
_OWN_WORDS = frozenset({"allow_actuation", "allowlisted_services", "not_allowed"})
# Sash's tools whose argument `service` is the name of a service.
_SERVICE_TOOLS = frozenset({"call_service", "do_later"})


def check_digest_tokens(name: str, value: int) -> int:
    """Return `value` unchanged. Raise `InvalidLimit` if a digest of so many tokens has no room for a line."""
    if check_limit(name, value) < MIN_DIGEST_TOKENS:
        raise InvalidLimit(f"a digest needs {name} of at least {MIN_DIGEST_TOKENS}, got {value}", limit=name)
    return value


def build_digest(
    evicted: Sequence[Sequence[MessageEntry]],
    count_text: Callable[[str], int],
    max_tokens: int = DIGEST_TOKENS,
) -> str:
    """Return one line for each turn, made from its evicted messages. Keep the newest within `max_tokens`.

    Of equal lines only the newest is kept.

    Raises:
        InvalidLimit: `max_tokens` is too small for one line.
    """
    check_digest_tokens("max_tokens", max_tokens)
    lines: dict[str, None] = {}
    budget = max_tokens - _NOTE_TOKENS
    for turns_left, turn in zip(range(len(evicted), 0, -1), reversed(evicted), strict=True):
        line = _build_line(turn)
        if line in lines:
            continue
        cost = count_text(line) + 1
        if cost > budget:
            line = _shorten(line, count_text, budget) if not lines else ""
            if not line:
                lines[f"- ({turns_left} earlier turn{'s' * (turns_left > 1)}, see the transcript)"] = None
                break
        lines[line] = None
        budget -= cost
    return "\n".join(reversed(lines))


def extend_digest(
    digest: str,
    evicted: Sequence[Sequence[MessageEntry]],
    count_text: Callable[[str], int],
    max_tokens: int = DIGEST_TOKENS,
) -> str:
    """Return a digest with lines for further evicted turns. It does not repeat a line that it already has.

    A full digest drops its older half at once. Dropping a few lines each time would change the beginning of
    the prompt more often.
    """
    new = build_digest(evicted, count_text, max_tokens)
    lines = deque(dict.fromkeys((*digest.splitlines(), *new.splitlines())))
    total = sum(count_text(line) + 1 for line in lines)
    if total > max_tokens:
        while total > max_tokens / 2 and len(lines) > 1:
            total -= count_text(lines.popleft()) + 1
    return "\n".join(lines)


def _build_line(turn: Sequence[MessageEntry]) -> str:
    words = turn[0].text.split() or ["(no text)"]
    first = " ".join(words[:_FIRST_WORDS])
    if len(first) > _FIRST_CHARS:
        first = first[:_FIRST_CHARS].rsplit(" ", 1)[0]
    if len(words) > _FIRST_WORDS or len(first) < len(" ".join(words)):
        first += " …"
    turn = [message for message in turn if not _is_own_text(message)]
    seen = set(find_identifiers(first))
    found = dict.fromkeys(item for item in _iterate_turn_identifiers(turn) if item not in seen)
    shown = [item for item in found if len(item) <= _MAX_IDENTIFIER_LENGTH]
    left_out = len(found) - len(shown)
    people = _list_people(turn, (first, *shown))
    names = "|".join(map(_join_words, people))
    shown = [*(item for item in shown if _join_words(item) not in names), *people]
    if left_out:
        shown.append(f"… +{left_out}")
    return f"- {first} | {' · '.join(shown)}" if shown else f"- {first}"


def _is_own_text(message: MessageEntry) -> bool:
    """Return whether Sash wrote a message without a model. It repeats the user, or tells old states."""
    return message.role != "user" and not message.tags.isdisjoint(LOCAL_TAG | OFFLINE_TAG)


def _list_people(turn: Sequence[MessageEntry], shown: Sequence[str]) -> list[str]:
    """Return the names in a turn that do not stand within `shown` or within a longer name."""
    found = (name for message in turn if message.role != "tool" for name in find_names(message.text))
    names = {_join_words(name): name for name in islice(dict.fromkeys(found), _MAX_NAMES)}
    texts = "|".join((*map(_join_words, shown), *names))
    return [name for words, name in names.items() if texts.count(words) == 1]


def _join_words(text: str) -> str:
    """Return the words of a text with a blank around each, to find whole words."""
    return f" {' '.join(_word.findall(text))} "


def _iterate_turn_identifiers(turn: Sequence[MessageEntry]) -> Iterator[str]:
    own = _find_own_words(turn)
    for message in turn:
        if message.role == "user":
            yield from iterate_identifiers(message.text)
        else:
            yield from (item for item in _iterate_written(message) if not _is_own(item, own))


def _iterate_written(message: MessageEntry) -> Iterator[str]:
    """Yield the identifiers of a message that the user did not write, and of its tool calls."""
    if message.role == "tool" and (values := _read_json_texts(message.text)) is not None:
        found = dict.fromkeys(item for _, value in values for item in iterate_identifiers(value))
        names = (item for item in found if not _is_number_or_time(item) and not is_ulid(item))
        yield from islice(names, _MAX_NAMES_PER_RESULT)
    else:
        yield from iterate_identifiers(message.text)
    for call in message.tool_calls:
        arguments = call["function"]["arguments"]
        values = _read_json_texts(arguments)
        for value in [arguments] if values is None else [value for _, value in values]:
            yield from iterate_identifiers(value)


def _find_own_words(turn: Sequence[MessageEntry]) -> frozenset[str]:
    """Return the names of the tools and services that a turn calls, and the words of Sash's refusals."""
    calls = [call["function"] for message in turn for call in message.tool_calls]
    services = (
        value
        for call in calls
        if call["name"] in _SERVICE_TOOLS
        for key, value in _read_json_texts(call["arguments"]) or ()
        if key == "service"
    )
    return _OWN_WORDS.union(services, (call["name"] for call in calls))


def _is_own(item: str, own: frozenset[str]) -> bool:
    """Return whether an identifier is one of Sash's own words or ids."""
    return is_ulid(item) or item.strip(_QUOTE_SIGNS) in own


def _read_json_texts(text: str) -> list[tuple[str, str]] | None:
    """Return the strings among the values of a JSON text, each with its key. None if the text is not JSON."""
    pending: list[tuple[str, Any]]
    try:
        pending, values = [("", json.loads(text))], []
    except (ValueError, RecursionError):
        return None
    while pending:
        key, value = pending.pop()
        if isinstance(value, str):
            values.append((key, value))
        elif isinstance(value, dict):
            pending += reversed(value.items())
        elif isinstance(value, list):
            pending += [(key, item) for item in reversed(value)]
    return values


def _is_number_or_time(item: str) -> bool:
    """Whether an identifier is only a number or a time. Tool results have too many of these."""
    return not any(map(str.isalpha, item)) or _timestamp.match(item) is not None


def _shorten(line: str, count_text: Callable[[str], int], budget: int) -> str:
    """Drop identifiers from the end of a line until it has at most `budget` tokens; empty if none fits."""
    items = line.split(" · ")
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(" · ".join(items[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return f"{' · '.join(items[:low])} · … +{len(items) - low}" if low else ""
