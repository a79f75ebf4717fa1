"""The parts of a conversation: messages, the window that a model sees, the agent's state.

Frozen values that check their own form. They convert to the formats of OpenAI and LangGraph, and import
neither.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, Self, get_args
from zlib import crc32

from sash.errors import InvalidExport, InvalidInput, InvalidRole, InvalidToolCall
from sash.values.bounds import Natural, Time
from sash.values.frozen_json import thaw
from sash.values.ids import new_id
from sash.values.validation import (
    check_conversation_id,
    check_count,
    check_label,
    check_parts,
    check_tags,
    check_text,
    check_tool_calls,
)

Role = Literal["system", "user", "assistant", "tool"]
Part = dict[str, Any]
Content = str | tuple[Part, ...]

ROLES: frozenset[str] = frozenset(get_args(Role))

_ROLE_TAGS: dict[Any, frozenset[str]] = {
    "system": frozenset({"system"}),
    "user": frozenset({"input"}),
    "assistant": frozenset({"output"}),
    "tool": frozenset({"tool_call"}),
}
_CALLING_TAGS = frozenset({"output", "tool_call"})
_NO_TAGS: frozenset[str] = frozenset()
LOCAL_TAG = frozenset({"local_intent"})
# A turn that no local intent understood, and that the offline model answered.
OFFLINE_TAG = frozenset({"offline_model"})
RECORDED_TAG = frozenset({"recorded"})
# Only Sash sets these tags.
RESERVED_TAGS: frozenset[str] = _CALLING_TAGS.union(
    *_ROLE_TAGS.values(), LOCAL_TAG, OFFLINE_TAG, RECORDED_TAG
)
_CHECKED_TAGS = frozenset({_NO_TAGS, _CALLING_TAGS, *_ROLE_TAGS.values()})
_LANGGRAPH_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def built_in_tags(role: Any, calls_tools: bool) -> frozenset[str]:
    """Return the tags that every message of this role has. An assistant message that calls tools has two."""
    return _CALLING_TAGS if calls_tools else _ROLE_TAGS.get(str(role), _NO_TAGS)


def refuse_reserved(tags: Iterable[str]) -> None:
    """Raise `InvalidInput` if one of the tags is reserved: only Sash sets those."""
    if reserved := sorted(RESERVED_TAGS.intersection(tags)):
        raise InvalidInput(f"Sash sets the tag {reserved[0]!r} itself: leave it out")


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """One message, word for word. `content` is text, or a tuple of OpenAI content parts."""

    role: Role
    content: Content
    timestamp: Time = field(default_factory=lambda: datetime.now(UTC))
    token_count: Natural = 0
    tags: frozenset[str] = _NO_TAGS
    id: str = field(default_factory=new_id)
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.role, str) or self.role not in ROLES:
            raise InvalidRole(f"unknown role {self.role!r:.80}: use one of {', '.join(sorted(ROLES))}")
        if isinstance(self.content, str):
            check_text(self.content)
        else:
            object.__setattr__(self, "content", check_parts(self.content) or "")
        if not (self.id and type(self.id) is str and type(self.token_count) is int and self.token_count >= 0):
            check_label("id", self.id)
            check_count("token_count", self.token_count)
        if not isinstance(self.timestamp, datetime):
            raise InvalidInput(f"timestamp must be a datetime, got {self.timestamp!r:.80}")
        if type(self.tags) is not frozenset or self.tags not in _CHECKED_TAGS:
            object.__setattr__(self, "tags", check_tags(self.tags))
        if self.name is not None:
            check_label("name", self.name)
        if self.role == "tool" or self.tool_calls or self.tool_call_id is not None:
            self._check_tools()

    def _check_tools(self) -> None:
        if self.tool_calls:
            if self.role != "assistant":
                raise InvalidToolCall("only an assistant message can have tool_calls")
            object.__setattr__(self, "tool_calls", check_tool_calls(self.tool_calls))
        if self.role == "tool":
            if not self.tool_call_id:
                raise InvalidToolCall("a tool message needs the tool_call_id that it answers")
            check_label("tool_call_id", self.tool_call_id)
        elif self.tool_call_id is not None:
            raise InvalidToolCall(f"tool_call_id belongs on a tool message, not on {self.role!r}")

    @property
    def text(self) -> str:
        """The text of the message, without images and audio."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part["text"] for part in self.content if "text" in part)

    @property
    def size(self) -> int:
        """The size of content and tool calls together, in bytes."""
        if type(self.content) is str and not self.tool_calls:
            return len(self.content) if self.content.isascii() else len(self.content.encode())
        return len(json.dumps([self.content, self.tool_calls], ensure_ascii=False).encode())

    def to_openai(self) -> dict[str, Any]:
        """Return the message in OpenAI form, as a new dict."""
        message: dict[str, Any] = {"role": self.role, "content": thaw(self.content)}
        if self.tool_calls:
            message["tool_calls"] = thaw(self.tool_calls)
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            message["name"] = self.name
        return message

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values; `from_dict` reads them."""
        return {
            "id": self.id,
            **self.to_openai(),
            "tags": sorted(self.tags),
            "token_count": self.token_count,
            "timestamp": self.timestamp.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the message that `to_dict` wrote. Raise `InvalidExport` for other data."""
        try:
            return cls(
                role=data["role"],
                content=data["content"],
                timestamp=datetime.fromisoformat(data["timestamp"]),
                token_count=data["token_count"],
                tags=check_tags(data["tags"]),
                id=data["id"],
                tool_calls=data.get("tool_calls", ()),
                tool_call_id=data.get("tool_call_id"),
                name=data.get("name"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidExport(f"not a message that Sash wrote: {error!r}") from error

    def to_langgraph_message(self) -> dict[str, Any]:
        """Return a dict for LangGraph's `add_messages`; `from_langgraph_message` restores it exactly.

        Fields that LangChain lacks, and the exact text of a call's arguments, are in
        `additional_kwargs["sash"]`. Its `said` is a checksum that shows if a node has changed the message.
        """
        message = self.to_openai() | {"id": self.id}
        sash: dict[str, Any] = {
            "timestamp": self.timestamp.isoformat(),
            "token_count": self.token_count,
            "tags": sorted(self.tags),
        }
        if self.tool_calls:
            sash["tool_calls"] = message["tool_calls"]
            message["tool_calls"] = list(map(_langgraph_call, self.tool_calls))
        sash["said"] = _said(message["content"], message.get("tool_calls"))
        return message | {"additional_kwargs": {"sash": sash}}

    @classmethod
    def from_langgraph_message(cls, message: Any) -> Self:
        """Read a LangChain message object or dict. Raise `InvalidInput` for other values.

        A message that Sash did not write, or that a node changed, gets a `token_count` of 0.
        """
        names = ("role", "type", "content", "id", "name", "tool_calls", "tool_call_id", "additional_kwargs")
        of = message.get if isinstance(message, Mapping) else partial(getattr, message)
        given: dict[str, Any] = {name: of(name, None) for name in names}
        try:
            sash = (given["additional_kwargs"] or {}).get("sash") or {}
            role = given["role"] or given["type"]
            role = _LANGGRAPH_ROLES.get(role, role)
            timestamp = sash.get("timestamp")
            unchanged = sash.get("said") == _said(given["content"], given["tool_calls"])
            calls = (sash.get("tool_calls") if unchanged else None) or tuple(
                map(_openai_call, given["tool_calls"] or ())
            )
            return cls(
                role=role,
                content=_openai_content(given["content"]),
                timestamp=datetime.fromisoformat(timestamp) if timestamp else datetime.now(UTC),
                token_count=sash.get("token_count", 0) if unchanged else 0,
                tags=check_tags(sash.get("tags", built_in_tags(role, bool(calls)))),
                id=given["id"] or new_id(),
                tool_calls=calls,
                tool_call_id=given["tool_call_id"],
                name=given["name"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"not a LangGraph message: {error!r}") from error


@dataclass(frozen=True, slots=True)
class ConversationWindow:
    """The messages that a model still sees, and the limits of the window.

    `messages` are the messages that were not evicted. A restored window has exactly these, because the limits
    are not applied again. `turn_starts` are the ids of messages that are now the first of their turn, because
    the user message of that turn was evicted.
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
        check_conversation_id(self.conversation_id)
        check_count("evicted_count", self.evicted_count)
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "turn_starts", tuple(self.turn_starts))
        if self.current_tokens < 0:
            object.__setattr__(self, "current_tokens", sum(m.token_count for m in self.messages))


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of a conversation for a LangGraph graph: its id and its window."""

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
                "max_turns": window.max_turns,
                "evict_to": window.evict_to,
                "preserve_system": window.preserve_system,
                "evicted_count": window.evicted_count,
                "turn_starts": list(window.turn_starts),
            },
        }

    @classmethod
    def from_langgraph_state(cls, state: Mapping[str, Any]) -> Self:
        """Read a state dict, with messages as dicts or LangChain objects. Raise `InvalidInput` otherwise."""
        try:
            messages = tuple(map(MessageEntry.from_langgraph_message, state["messages"]))
            conversation_id = check_conversation_id(state.get("conversation_id"))
            window = ConversationWindow(conversation_id, messages, **state.get("window", {}))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"not a LangGraph state that Sash can read: {error!r}") from error
        return cls(conversation_id, window)


def turns(messages: Iterable[MessageEntry]) -> list[list[MessageEntry]]:
    """Group messages into turns. A turn starts with a user message; only the first turn may lack it."""
    grouped: list[list[MessageEntry]] = []
    for message in messages:
        if message.role == "user" or not grouped:
            grouped.append([])
        grouped[-1].append(message)
    return grouped


def _said(content: Any, calls: Any) -> int:
    """Return a checksum of the content and the tool calls of a LangGraph message."""
    kept = [{key: call[key] for key in ("name", "args", "id")} for call in calls or ()]
    return crc32(json.dumps([content or "", kept], sort_keys=True).encode())


def _openai_content(content: Any) -> Any:
    """Return content parts in OpenAI form; LangChain also allows plain strings among them."""
    if not isinstance(content, list | tuple):
        return content or ""
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]


def _langgraph_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call for LangGraph. A call with invalid arguments stays: its result refers to it."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = None
    args = arguments if isinstance(arguments, dict) else {}
    return {"name": call["function"]["name"], "args": args, "id": call["id"], "type": "tool_call"}


def _openai_call(call: Mapping[str, Any]) -> dict[str, Any]:
    if "function" in call:
        return dict(call)
    function = {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)}
    return {"id": call["id"], "type": "function", "function": function}
