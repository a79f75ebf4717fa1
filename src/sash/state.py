"""What a conversation is made of: messages, the window that a model sees, the agent's state.

Plain frozen values. They check their own form, and they know the shapes of the OpenAI and LangGraph
worlds, but import neither.
"""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, Self, cast, get_args

from sash.errors import (
    InvalidConversationId,
    InvalidExport,
    InvalidInput,
    InvalidLimit,
    InvalidRole,
    InvalidText,
    InvalidToolCall,
    MessageTooLarge,
)
from sash.ids import new_id

Role = Literal["system", "user", "assistant", "tool"]
Part = dict[str, Any]
Content = str | tuple[Part, ...]

ROLES: frozenset[str] = frozenset(get_args(Role))
ROLE_TAGS: dict[str, frozenset[str]] = {
    "system": frozenset({"system"}),
    "user": frozenset({"input"}),
    "assistant": frozenset({"output"}),
    "tool": frozenset({"tool_call"}),
}
TOOL_CALL_TAGS = frozenset({"output", "tool_call"})

MAX_MESSAGE_BYTES = 1 << 20

_LANGGRAPH_ROLES = {"human": "user", "ai": "assistant"}


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """One message, word for word. `content` is text, or a tuple of OpenAI content parts."""

    role: Role
    content: Content
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    token_count: int = 0
    tags: frozenset[str] = frozenset()
    id: str = field(default_factory=new_id)
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if type(self.role) is not str or self.role not in ROLES:
            raise InvalidRole(
                f"unknown role {self.role!r}: use one of {', '.join(sorted(ROLES))}", role=self.role
            )
        if type(self.content) is not str:
            object.__setattr__(self, "content", _check_parts(self.content))
        elif not self.content.isascii():
            check_text(self.content)
        if type(self.tags) is not frozenset:
            object.__setattr__(self, "tags", check_tags(self.tags))
        if self.name is not None:
            _check_label("name", self.name)
        if self.role == "tool" or self.tool_calls or self.tool_call_id is not None:
            self._check_tools()

    def _check_tools(self) -> None:
        if self.tool_calls:
            if self.role != "assistant":
                raise InvalidToolCall("only an assistant message can have tool_calls")
            object.__setattr__(self, "tool_calls", _check_tool_calls(self.tool_calls))
        if self.role == "tool":
            if not self.tool_call_id:
                raise InvalidToolCall("a tool message needs the tool_call_id that it answers")
            _check_label("tool_call_id", self.tool_call_id)
        elif self.tool_call_id is not None:
            raise InvalidToolCall(f"tool_call_id belongs on a tool message, not on {self.role!r}")

    @property
    def text(self) -> str:
        """The words of the message, without images and the like."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part["text"] for part in self.content if type(part.get("text")) is str)

    @property
    def size(self) -> int:
        """Bytes of what was given: content and tool calls."""
        if type(self.content) is str and not self.tool_calls:
            return len(self.content) if self.content.isascii() else len(self.content.encode())
        return len(_dumps([self.content, self.tool_calls]).encode())

    def to_openai(self) -> dict[str, Any]:
        """Return the message as a model's API takes it; the dict is the caller's to change."""
        content = self.content if isinstance(self.content, str) else deepcopy(list(self.content))
        message: dict[str, Any] = {"role": self.role, "content": content}
        if self.tool_calls:
            message["tool_calls"] = deepcopy(list(self.tool_calls))
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            message["name"] = self.name
        return message

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values; `from_dict` is the way back."""
        return {
            "id": self.id,
            **self.to_openai(),
            "tags": sorted(self.tags),
            "token_count": self.token_count,
            "timestamp": self.timestamp.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        try:
            return cls(
                role=data["role"],
                content=data["content"],
                timestamp=datetime.fromisoformat(data["timestamp"]),
                token_count=_check_count(data["token_count"]),
                tags=check_tags(data["tags"]),
                id=_check_label("id", data["id"]),
                tool_calls=tuple(data.get("tool_calls", ())),
                tool_call_id=data.get("tool_call_id"),
                name=data.get("name"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidExport(f"not a message that Sash wrote: {error!r}") from error

    def to_langgraph_message(self) -> dict[str, Any]:
        """Return a dict that LangGraph's `add_messages` takes; the way back is exact.

        What LangChain has no place for travels in `additional_kwargs["sash"]`.
        """
        sash: dict[str, Any] = {
            "timestamp": self.timestamp.isoformat(),
            "token_count": self.token_count,
            "tags": sorted(self.tags),
        }
        message = {**self.to_openai(), "id": self.id, "additional_kwargs": {"sash": sash}}
        if self.tool_calls:
            sash["tool_calls"] = message["tool_calls"]
            message["tool_calls"] = [
                {"name": call["function"]["name"], "args": args, "id": call["id"], "type": "tool_call"}
                for call in self.tool_calls
                if (args := _arguments(call)) is not None
            ]
        return message

    @classmethod
    def from_langgraph_message(cls, message: Any) -> Self:
        """Read a LangChain message object or dict; one that Sash did not write has token_count 0."""
        names = ("role", "type", "content", "id", "name", "tool_calls", "tool_call_id", "additional_kwargs")
        of = message.get if isinstance(message, Mapping) else partial(getattr, message)
        given: dict[str, Any] = {name: of(name, None) for name in names}
        sash = (given["additional_kwargs"] or {}).get("sash") or {}
        kind = given["role"] or given["type"]
        role: Any = _LANGGRAPH_ROLES.get(kind, kind)
        timestamp = sash.get("timestamp")
        return cls(
            role=role,
            content=given["content"] or "",
            timestamp=datetime.fromisoformat(timestamp) if timestamp else datetime.now(UTC),
            token_count=sash.get("token_count", 0),
            tags=frozenset(sash.get("tags", ROLE_TAGS.get(role, ()))),
            id=given["id"] or new_id(),
            tool_calls=sash.get("tool_calls") or tuple(map(_openai_call, given["tool_calls"] or ())),
            tool_call_id=given["tool_call_id"],
            name=given["name"],
        )


@dataclass(frozen=True, slots=True)
class ConversationWindow:
    """What a model still sees of a conversation, with the limits that cut it.

    `messages` are the ones that were kept, so the cut is part of the value and is never recomputed.
    `turn_starts` names the messages that open a turn now because the user message before them is gone.
    """

    conversation_id: str
    messages: tuple[MessageEntry, ...] = ()
    max_tokens: int | None = 4000
    current_tokens: int = -1
    max_turns: int | None = None
    evict_to: float = 1.0
    preserve_system: bool = True
    evicted_count: int = 0
    turn_starts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "turn_starts", tuple(self.turn_starts))
        if self.current_tokens < 0:
            object.__setattr__(self, "current_tokens", sum(m.token_count for m in self.messages))


@dataclass(frozen=True, slots=True)
class AgentState:
    """A conversation as a graph's state: its id and its window."""

    conversation_id: str
    window: ConversationWindow

    def to_langgraph_state(self) -> dict[str, Any]:
        """Return a state dict with `messages` and `conversation_id`, and the window's limits."""
        window = self.window
        return {
            "conversation_id": self.conversation_id,
            "messages": [message.to_langgraph_message() for message in window.messages],
            "window": {
                "max_tokens": window.max_tokens,
                "current_tokens": window.current_tokens,
                "max_turns": window.max_turns,
                "evict_to": window.evict_to,
                "preserve_system": window.preserve_system,
                "evicted_count": window.evicted_count,
                "turn_starts": list(window.turn_starts),
            },
        }

    @classmethod
    def from_langgraph_state(cls, state: Mapping[str, Any]) -> Self:
        """Read a state dict, with messages as dicts or as LangChain objects."""
        conversation_id = check_conversation_id(state.get("conversation_id"))
        messages = tuple(map(MessageEntry.from_langgraph_message, state.get("messages", ())))
        limits = dict(state.get("window", {}))
        total = sum(message.token_count for message in messages)
        return cls(
            conversation_id,
            ConversationWindow(conversation_id, messages, **{**limits, "current_tokens": total}),
        )


def turns(messages: Iterable[MessageEntry]) -> list[list[MessageEntry]]:
    """Group messages into turns: a user message and all that answers it. System messages belong to none."""
    grouped: list[list[MessageEntry]] = []
    for message in messages:
        if message.role == "user" or (message.role != "system" and not grouped):
            grouped.append([message])
        elif message.role != "system":
            grouped[-1].append(message)
    return grouped


def check_conversation_id(value: Any) -> str:
    """Return the id, or say what is wrong with it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidConversationId(
            f"conversation_id must be a non-empty string, got {value!r}: "
            "pass the id of the conversation, or set auto_create_conversation_id to get a new one"
        )
    return check_text(value)


def check_text(text: str) -> str:
    """Return the text if it can be written as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidText(
                f"the text has a lone surrogate ({text[error.start]!a}) at position {error.start}, "
                "which no provider accepts: decode it with errors='replace' first",
                position=error.start,
            ) from error
    return text


def check_size(size: int, limit: int) -> None:
    """Refuse a message of more than `limit` bytes."""
    if size > limit:
        raise MessageTooLarge(
            f"the message has {size:,} bytes, more than the {limit:,} allowed: shorten it, keep it as a file "
            "and send a reference, or raise max_message_bytes",
            size=size,
            limit=limit,
        )


def check_limit(name: str, value: Any) -> int:
    """Return a limit that is a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise InvalidLimit(f"{name} must be a whole number of at least 1, got {value!r}", limit=name)
    return value


def check_tags(tags: Any) -> frozenset[str]:
    """Return the tags as a frozenset; a bare string is refused because it would become letters."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags must be a set of strings, got {tags!r}")
    checked = frozenset(tags)
    if not all(type(tag) is str and tag for tag in checked):
        raise InvalidInput(f"each tag must be a non-empty string, got {tags!r}")
    return checked


def _check_label(what: str, value: Any) -> str:
    if type(value) is not str or not value:
        raise InvalidInput(f"{what} must be a non-empty string, got {value!r}")
    return check_text(value)


def _check_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"token_count must be 0 or more, got {value!r}")
    return value


def _check_parts(content: Any) -> tuple[Part, ...]:
    if not isinstance(content, list | tuple):
        raise InvalidInput(
            f"content must be a string or a list of content parts, got {type(content).__name__}"
        )
    for part in content:
        if not isinstance(part, Mapping) or type(part.get("type")) is not str:
            raise InvalidInput(f"a content part is an object with a 'type', got {part!r:.80}")
    return cast(tuple[Part, ...], _json_copy(content))


def _check_tool_calls(calls: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(calls, list | tuple):
        raise InvalidToolCall(f"tool_calls must be a list, got {type(calls).__name__}")
    ids = set()
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if (
            not isinstance(function, Mapping)
            or type(call.get("id")) is not str
            or type(function.get("name")) is not str
            or type(function.get("arguments")) is not str
        ):
            raise InvalidToolCall(
                "a tool call has the form {'id': …, 'type': 'function', 'function': "
                f"{{'name': …, 'arguments': '<JSON text>'}}}}, got {call!r:.120}"
            )
        if not call["id"] or call["id"] in ids:
            raise InvalidToolCall(f"tool call ids must be unique and not empty, got {call['id']!r}")
        ids.add(call["id"])
    return cast(tuple[dict[str, Any], ...], _json_copy(calls))


def _json_copy(value: Any) -> tuple[Any, ...]:
    """Copy JSON values deeply, so that nobody else holds a part of a message."""
    try:
        return tuple(json.loads(check_text(_dumps(value))))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"content parts and tool calls must be JSON values: {error}") from error


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _arguments(call: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _openai_call(call: Mapping[str, Any]) -> dict[str, Any]:
    if "function" in call:
        return dict(call)
    function = {"name": call["name"], "arguments": _dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}
