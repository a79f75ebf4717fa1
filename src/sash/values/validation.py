"""Checks of input: each returns the value or raises an error that says the cause and the remedy."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from sash.errors import (
    InvalidConversationId,
    InvalidInput,
    InvalidLimit,
    InvalidText,
    InvalidToolCall,
    MessageTooLarge,
)
from sash.values.frozen_json import FrozenDict, freeze

T = TypeVar("T")

MAX_MESSAGE_BYTES = 1 << 20
MAX_DOLLARS = 10**9
MAX_NOTE_CHARS = 400
MAX_JSON_BYTES = 1 << 16
ATTACHMENTS = ("image_url", "input_audio")

_MAX_LABEL_CHARS = 256
_MAX_TAGS = 64
_MAX_JSON_DEPTH = 64


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `TypeError` for an unknown keyword argument, as a function without `**options` does."""
    if unknown := sorted(set(given) - set(known)):
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}")


def check_text(text: str) -> str:
    """Return the text. Raise `InvalidText` for lone surrogates, which UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidText(
                f"the text has a lone surrogate ({text[error.start]!a}) at position {error.start}, "
                "which no provider accepts: decode it with errors='replace' first",
            ) from error
    return text


def well_formed(text: str) -> str:
    """Return the text with "?" for each lone surrogate, for callers that cannot handle an error."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def check_size(size: int, limit: int) -> None:
    """Raise `MessageTooLarge` if a message has more than `limit` bytes."""
    if size > limit:
        raise MessageTooLarge(
            f"the message has {size:,} bytes, more than the {limit:,} allowed: shorten it, keep it as a file "
            "and send a reference, or raise max_message_bytes",
            size=size,
            limit=limit,
        )


def whole(value: Any) -> Any:
    """Return 20.0 as 20: JSON and Home Assistant's forms may send whole numbers as floats."""
    return int(value) if type(value) is float and value.is_integer() else value


def check_limit(name: str, value: Any) -> int:
    """Return `value` unchanged. Raise `InvalidLimit` if it is not a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise InvalidLimit(f"{name} must be a whole number of at least 1, got {value!r}", limit=name)
    return value


def check_window(max_tokens: Any, max_turns: Any, evict_to: Any) -> None:
    """Raise `InvalidLimit` if a limit of a window is invalid. None means no limit for tokens and turns."""
    for name, value in (("max_tokens", max_tokens), ("max_turns", max_turns)):
        if value is not None:
            check_limit(name, value)
    if type(evict_to) not in (int, float) or not 0 < evict_to <= 1:
        raise InvalidLimit(
            f"evict_to must be above 0 and at most 1 (1 is plain FIFO), got {evict_to!r}", limit="evict_to"
        )


def check_count(name: str, value: Any) -> int:
    """Return `value` unchanged. Raise `InvalidInput` if it is not a whole number of at least 0."""
    if type(value) is not int or value < 0:
        raise InvalidInput(f"{name} must be a whole number of at least 0, got {value!r}")
    return value


def check_amount(name: str, value: Any) -> float | None:
    """Return a number of US dollars, or None. Raise `InvalidInput` if it is not a number of at least 0."""
    if value is not None and (type(value) not in (int, float) or not 0 <= value <= MAX_DOLLARS):
        raise InvalidInput(f"{name} must be a number from 0 to {MAX_DOLLARS:,}, or None, got {value!r:.80}")
    return None if value is None else float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return a bool unchanged. Raise `InvalidInput` for others: the text "false" would count as true."""
    if type(value) is not bool:
        raise InvalidInput(f"{name} must be True or False, got {value!r:.80}")
    return value


def check_label(name: str, value: Any) -> str:
    """Return a name or id unchanged. Raise `InvalidInput` if it is empty, too long or not a string."""
    if type(value) is not str or not 0 < len(value) <= _MAX_LABEL_CHARS:
        raise InvalidInput(
            f"{name} must be a string of 1 to {_MAX_LABEL_CHARS} characters, got {value!r:.80}"
        )
    return check_text(value)


def check_conversation_id(value: Any) -> str:
    """Return a conversation id unchanged. Raise `InvalidConversationId` if it is blank or too long."""
    if type(value) is not str or not value.strip() or len(value) > _MAX_LABEL_CHARS:
        raise InvalidConversationId(
            f"conversation_id must be a string of 1 to {_MAX_LABEL_CHARS} characters, got {value!r:.80}: "
            "pass the id of the conversation, or set auto_create_conversation_id to get a new one"
        )
    return check_text(value)


def check_tags(tags: Any) -> frozenset[str]:
    """Return tags as a frozen set. Raise `InvalidInput` if they are not a set of strings.

    A single string is an error, too, because its letters would become the tags.
    """
    if isinstance(tags, str | bytes | Mapping) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags must be a set of strings, got {type(tags).__name__}")
    checked = frozenset(check_label("a tag", tag) for tag in tags)
    if len(checked) > _MAX_TAGS:
        raise InvalidInput(f"a message can have at most {_MAX_TAGS} tags, got {len(checked)}")
    return checked


def check_parts(content: Any) -> tuple[dict[str, Any], ...]:
    """Return OpenAI content parts, frozen. Raise `InvalidInput` for other values."""
    if not isinstance(content, list | tuple):
        raise InvalidInput(
            f"content must be a string or a list of content parts, got {type(content).__name__}"
        )
    for part in content:
        if not isinstance(part, Mapping) or type(part.get("type")) is not str:
            raise InvalidInput(
                f"a content part must be an object with a field 'type', got {type(part).__name__}"
            )
        if not isinstance(part.get("text", ""), str):
            raise InvalidInput(f"a content part's text must be a string, got {type(part['text']).__name__}")
        image = part.get("image_url", "")
        if not isinstance(image.get("url") if isinstance(image, Mapping) else image, str):
            raise InvalidInput("image_url must be a URL, or an object with the URL in its field 'url'")
    return tuple(freeze(copy_json(content)))


def check_tool_calls(calls: Any) -> tuple[dict[str, Any], ...]:
    """Return tool calls, frozen. Raise `InvalidToolCall` if they do not have OpenAI's form."""
    if not isinstance(calls, list | tuple):
        raise InvalidToolCall(f"tool_calls must be a list, got {type(calls).__name__}")
    ids = set()
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if (
            not isinstance(function, Mapping)
            or type(function.get("name")) is not str
            or type(function.get("arguments")) is not str
        ):
            raise InvalidToolCall(
                "a tool call must have the form {'id': …, 'type': 'function', 'function': "
                "{'name': …, 'arguments': '<JSON text>'}}"
            )
        call_id = call.get("id")
        if type(call_id) is not str or not call_id or call_id in ids:
            raise InvalidToolCall(f"tool call ids must be unique and not empty, got {call_id!r:.80}")
        ids.add(call_id)
    return tuple(map(_freeze_call, calls))


def _freeze_call(call: Mapping[str, Any]) -> FrozenDict:
    """Return a frozen copy of a tool call. A call of the usual form is copied without JSON, for speed."""
    function = call["function"]
    if len(call) == 3 and len(function) == 2 and type(call.get("type")) is str:
        said = FrozenDict(name=check_text(function["name"]), arguments=check_text(function["arguments"]))
        return FrozenDict(id=check_text(call["id"]), type=check_text(call["type"]), function=said)
    frozen: FrozenDict = freeze(copy_json(call))
    return frozen


def check_json(value: Any) -> dict[str, Any]:
    """Return a copy of a JSON object. Raise `InvalidInput` if it is no object, or too large or deep."""
    if not isinstance(value, dict):
        raise InvalidInput(f"a JSON object is needed here, got {type(value).__name__}")
    copied: dict[str, Any] = copy_json(value, MAX_JSON_BYTES)
    return copied


def copy_if_object(value: Any) -> Any:
    """Return a copy of a JSON object as `check_json` does, and any other value unchanged."""
    return check_json(value) if isinstance(value, dict) else value


def copy_json(value: Any, max_bytes: int | None = None) -> Any:
    """Return a deep copy of JSON values. Raise `InvalidInput` for other values, or if they are too deep.

    Also raise `InvalidInput` if their JSON text is larger than `max_bytes`. None means no limit.
    """
    try:
        text = check_text(json.dumps(value, ensure_ascii=False, allow_nan=False))
        if max_bytes is not None and (size := len(text.encode())) > max_bytes:
            raise InvalidInput(f"the JSON object has {size:,} bytes; {max_bytes:,} are allowed: shorten it")
        copied = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"only JSON values can be stored: {error}") from error
    check_depth(copied)
    return copied


def check_depth(value: Any) -> None:
    """Raise `InvalidInput` if JSON values are nested so deep that recursive code would fail on them."""
    waiting = [(value, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _MAX_JSON_DEPTH:
            raise InvalidInput(
                f"JSON values may be nested at most {_MAX_JSON_DEPTH} levels deep: flatten them"
            )
        if isinstance(value, dict):
            waiting += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]


def check_message(text: str) -> str:
    """Return the text of a message unchanged. Raise `InvalidInput` if it is blank."""
    if not text.strip():
        raise InvalidInput("message must be a non-empty string")
    return text


def check_note(text: str) -> str:
    """Return a note without blanks around it. Raise `InvalidInput` if it is blank or too long."""
    if not text.strip():
        raise InvalidInput("a note must be a text that is not empty")
    if len(text) > MAX_NOTE_CHARS:
        raise InvalidInput(
            f"a note may have at most {MAX_NOTE_CHARS} characters, got {len(text)}: shorten it"
        )
    return check_text(text.strip())


def check_attachment(part: dict[str, Any]) -> dict[str, Any]:
    """Return a content part, frozen. Raise `InvalidInput` if it is neither an image nor audio."""
    [checked] = check_parts([part])
    kind = checked["type"]
    if kind not in ATTACHMENTS:
        raise InvalidInput(f"an attachment must be of type {' or '.join(ATTACHMENTS)}, got {kind!r:.80}")
    if not checked.get(kind):
        raise InvalidInput(f"an attachment of type {kind} needs the field {kind}")
    return checked
