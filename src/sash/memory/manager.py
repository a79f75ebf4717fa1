"""Conversations with a sliding window, in memory. Messages in the window stay word for word.

The manager owns the clock, the ids and the token counts. `window` decides what is evicted. Evicted messages
stay in the transcript: `search` finds them, and `digest` is made from them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from inspect import iscoroutinefunction
from operator import call
from typing import Any, NamedTuple, Self, TypedDict, Unpack
from uuid import uuid4

from sash.errors import (
    ConversationExists,
    ConversationNotFound,
    InvalidConfig,
    InvalidExport,
    InvalidInput,
    MessageTooLarge,
    SashError,
)
from sash.memory.digest import DIGEST_TOKENS, build_digest
from sash.memory.tokens import TokenCounter
from sash.memory.window import Eviction, Limits, Window, split_groups
from sash.memory.window_log import log_evictions, log_window
from sash.memory.windowed_transcript import WindowedTranscript, find_messages
from sash.values.clock import Clock, SystemClock
from sash.values.config import AgentConfig
from sash.values.ids import Ulids
from sash.values.messages import AgentState, ConversationWindow, MessageEntry, built_in_tags
from sash.values.validation import (
    MAX_MESSAGE_BYTES,
    check_conversation_id,
    check_flag,
    check_keywords,
    check_label,
    check_limit,
    check_size,
    check_tags,
)
from sash.values.window_stats import MAX_HEALTHY_UTILIZATION

MAX_HEALTHY_CONVERSATIONS = 100
EXPORT_FORMAT = "sash.memory.conversation"
EXPORT_VERSION = 1

# Larger messages are counted in a thread, because that would block the event loop for milliseconds.
_MAX_INLINE_BYTES = 32 << 10

_logger = logging.getLogger(__name__)


class Added(NamedTuple):
    """The result of `add_message`: the stored message, and the messages that it pushed out of the window."""

    conversation_id: str
    message: MessageEntry
    evicted: tuple[Eviction, ...]
    over_budget: bool


class _WriteQueue:
    """The writers that wait for one conversation, in order of arrival."""

    __slots__ = ("lock", "waiting_count")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting_count = 0


class MemoryOptions(TypedDict, total=False):
    """The optional arguments of a `ConversationMemoryManager`, beside the limits of its windows."""

    model: str | None
    """The model whose tokens are counted."""
    auto_create_conversation_id: bool
    """Whether a message without a conversation id starts a conversation. Default: False."""
    max_message_bytes: int
    keep_transcript: bool
    """False forgets evicted messages, so that the windows bound the memory. Default: True."""
    on_evict: Callable[[str, Eviction], None] | None
    """Called with the conversation id for every evicted message."""
    clock: Clock | None


class ConversationMemoryManager:
    """Keeps conversations apart, and each one within its window. `MemoryOptions` describes the options.

    `max_tokens` of None means no limit by tokens, `max_turns` of None or 0 no limit by turns.

    Messages of one conversation are stored in the order of the `add_message` calls, also if several tasks of
    one event loop call it.
    """

    def __init__(
        self,
        max_tokens: int | None = 4000,
        max_turns: int | None = None,
        preserve_system: bool = True,
        enabled: bool = True,
        evict_to: float = 1.0,
        **options: Unpack[MemoryOptions],
    ) -> None:
        check_keywords(type(self).__name__, options, MemoryOptions.__annotations__)
        max_turns = None if max_turns == 0 and max_turns is not False else max_turns
        limits = Limits(max_tokens, max_turns, evict_to, check_flag("preserve_system", preserve_system))
        unlimited = replace(limits, max_tokens=None, max_turns=None)
        self._limits = limits if check_flag("enabled", enabled) else unlimited
        max_message_bytes = options.get("max_message_bytes", MAX_MESSAGE_BYTES)
        self._max_message_bytes = check_limit("max_message_bytes", max_message_bytes)
        auto_create = options.get("auto_create_conversation_id", False)
        self._auto_create = check_flag("auto_create_conversation_id", auto_create)
        self._keep_transcript = check_flag("keep_transcript", options.get("keep_transcript", True))
        on_evict = options.get("on_evict")
        if on_evict is not None and (not callable(on_evict) or iscoroutinefunction(on_evict)):
            raise InvalidInput("on_evict must be a plain function, not a coroutine function")
        self._on_evict = on_evict
        self._clock = options.get("clock") or SystemClock()
        self._ulids = Ulids()
        self._counter = TokenCounter(options.get("model"))
        self._conversations: dict[str, WindowedTranscript] = {}
        self._queues: dict[str, _WriteQueue] = {}

    @classmethod
    def from_config(cls, config: AgentConfig, **options: Any) -> Self:
        """Build a manager from the agent's configuration. `options` are more arguments of the constructor."""
        if not isinstance(config, AgentConfig):
            raise InvalidConfig(f"config must be an AgentConfig, got {type(config).__name__}: use from_dict")
        return cls(
            max_tokens=config.sliding_window_max_tokens,
            max_turns=config.max_history_turns,
            preserve_system=config.sliding_window_preserve_system,
            enabled=config.sliding_window_enable,
            auto_create_conversation_id=config.auto_create_conversation_id,
            **options,
        )

    async def add_message(
        self,
        conversation_id: str | None,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        tags: Iterable[str] | None = None,
        *,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        tool_call_id: str | None = None,
        name: str | None = None,
    ) -> Added:
        """Add a message and slide the window. If this raises, nothing has changed.

        `tool_calls` has OpenAI's format. A `conversation_id` of None starts a new conversation if the manager
        was built with `auto_create_conversation_id`.
        """
        if conversation_id is None and self._auto_create:
            conversation_id = str(uuid4())
        conversation_id = check_conversation_id(conversation_id)
        message = self._build_message(role, content, tags, tool_calls, tool_call_id, name)
        size = message.size
        check_size(size, self._max_message_bytes)
        if self._counter.is_loaded and size <= _MAX_INLINE_BYTES and conversation_id not in self._queues:
            _set_token_count(message, self._count(message))
            return self._store(conversation_id, message)
        async with self._hold(conversation_id):
            _set_token_count(message, await asyncio.to_thread(self._count, message))
            return self._store(conversation_id, message)

    async def get_messages(
        self, conversation_id: str, tag_filter: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the window in OpenAI's format; empty for an unknown id. The caller may change the dicts.

        A `tag_filter` keeps system messages and messages with any of the tags. Tool calls keep their results.
        """
        conversation = self._conversations.get(check_conversation_id(conversation_id))
        if conversation is None:
            return []
        if tag_filter is None:
            return list(map(call, conversation.renderers.values()))
        wanted = check_tags(tag_filter)
        return [
            message.to_openai()
            for group in split_groups(conversation.window)
            if any(m.role == "system" or not wanted.isdisjoint(m.tags) for m in group)
            for message in group
        ]

    async def get_transcript(self, conversation_id: str) -> list[MessageEntry]:
        """Return all messages, also evicted ones, oldest first. Raise `ConversationNotFound` if unknown."""
        return list(self._get(conversation_id).messages)

    async def get_state(self, conversation_id: str) -> AgentState:
        """Return the conversation's window as a value, for the state of a graph or for a store."""
        window = self._get(conversation_id).window
        return AgentState(conversation_id, window.snapshot(conversation_id))

    async def reset_conversation(self, conversation_id: str) -> None:
        """Delete the conversation and its transcript. An unknown id has no effect."""
        async with self._hold(check_conversation_id(conversation_id)):
            self._conversations.pop(conversation_id, None)

    async def search(self, conversation_id: str, query: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return messages that contain every word of `query`, newest first.

        Evicted messages and tool calls are searched too.
        """
        if type(query) is not str or not query.strip():
            raise InvalidInput(f"query must be a non-empty string, got {query!r}")
        check_limit("limit", limit)
        conversation = self._get(conversation_id)
        newest_first = list(conversation.messages)[::-1]
        found = await asyncio.to_thread(find_messages, newest_first, query.casefold().split(), limit)
        return list(map(conversation.describe, found))

    async def digest(self, conversation_id: str, max_tokens: int = DIGEST_TOKENS) -> str:
        """Return one line for each evicted turn: its first words, and all its identifiers verbatim."""
        conversation = self._get(conversation_id)
        evicted = conversation.get_evicted_turns()
        return await asyncio.to_thread(build_digest, evicted, self._counter.count_text, max_tokens)

    async def export(self, conversation_id: str) -> dict[str, Any]:
        """Return the whole conversation as JSON values. `import_` restores it."""
        conversation = self._get(conversation_id)
        window = conversation.window.snapshot(conversation_id)
        return {
            "format": EXPORT_FORMAT,
            "version": EXPORT_VERSION,
            "conversation_id": conversation_id,
            "evicted_count": window.evicted_count,
            "turn_starts": list(window.turn_starts),
            "messages": list(map(conversation.describe, conversation.messages)),
        }

    async def import_(self, data: Mapping[str, Any], conversation_id: str | None = None) -> str:
        """Restore an exported conversation under its own or another id, and return the id.

        The window keeps its messages. Their tokens are counted again for this manager's model.
        """
        new_id = _check_export_header(data, conversation_id)
        async with self._hold(new_id):
            self._check_id_is_free(new_id)
            conversation = await asyncio.to_thread(self._read_export, new_id, data)
            self._conversations[new_id] = conversation
        return new_id

    async def fork(self, conversation_id: str, new_conversation_id: str | None = None) -> str:
        """Copy a conversation and return the id of the copy. Later changes of one do not affect the other."""
        source = self._get(conversation_id)
        new_id = str(uuid4()) if new_conversation_id is None else check_conversation_id(new_conversation_id)
        async with self._hold(new_id):
            self._check_id_is_free(new_id)
            transcript = None if source.transcript is None else list(source.transcript)
            window = self._restore_window(source.window.snapshot(new_id))
            self._conversations[new_id] = WindowedTranscript(window, transcript)
        return new_id

    def get_stats(self, conversation_id: str) -> dict[str, Any]:
        """Return counts of the window and the transcript. `exists` is False for an unknown id."""
        conversation = self._conversations.get(check_conversation_id(conversation_id))
        window = Window(self._limits) if conversation is None else conversation.window
        stats = window.count_stats()
        return {
            "exists": conversation is not None,
            "message_count": stats.message_count,
            "current_tokens": stats.current_tokens,
            "max_tokens": stats.max_tokens,
            "utilization": stats.utilization,
            "tag_distribution": dict(stats.tag_distribution),
            "turn_count": stats.turn_count,
            "max_turns": stats.max_turns,
            "over_budget": stats.over_budget,
            "evicted_count": stats.evicted_count,
            "transcript_count": 0 if conversation is None else len(conversation.messages),
            "encoding": self._counter.encoding,
            "exact": self._counter.exact,
        }

    def get_all_conversations(self) -> list[str]:
        """Return the ids of all conversations, oldest first."""
        return list(self._conversations)

    def health(self) -> list[str]:
        """Return warnings about too many conversations and nearly full windows, and log them."""
        warnings = []
        if len(self._conversations) > MAX_HEALTHY_CONVERSATIONS:
            warnings.append(f"Too many active conversations: {len(self._conversations)}")
        warnings += [
            f"Window nearly full: {conversation_id}"
            for conversation_id in self._conversations
            if self.get_stats(conversation_id)["utilization"] > MAX_HEALTHY_UTILIZATION
        ]
        for warning in warnings:
            _logger.warning(warning)
        return warnings

    def _build_message(
        self,
        role: str,
        content: Any,
        tags: Iterable[str] | None,
        tool_calls: Any,
        tool_call_id: str | None,
        name: str | None,
    ) -> MessageEntry:
        """Build the message without its token count. Building it validates it."""
        built_in = built_in_tags(role, bool(tool_calls))
        now = self._clock.now()
        return MessageEntry(
            role,  # type: ignore[arg-type]  # MessageEntry checks the role
            "" if content is None and tool_calls else content,
            now,
            0,
            built_in if tags is None else built_in | check_tags(tags),
            self._ulids.new(now),
            tool_calls or (),
            tool_call_id,
            name,
        )

    def _count(self, message: MessageEntry) -> int:
        return self._counter.count_message(message.content, message.tool_calls, message.name)

    def _store(self, conversation_id: str, message: MessageEntry) -> Added:
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            conversation = WindowedTranscript(Window(self._limits), [] if self._keep_transcript else None)
        evicted = conversation.add(message)
        self._conversations[conversation_id] = conversation
        window = conversation.window
        debug = _logger.isEnabledFor(logging.DEBUG)
        if evicted and (debug or self._on_evict is not None):
            self._report_evictions(conversation_id, evicted)
        if debug and message.role == "assistant":
            log_window(_logger, conversation_id, window)
        return Added(conversation_id, message, evicted, window.over_budget)

    def _report_evictions(self, conversation_id: str, evicted: tuple[Eviction, ...]) -> None:
        log_evictions(_logger, conversation_id, evicted)
        for eviction in evicted:
            if self._on_evict is not None:
                try:
                    self._on_evict(conversation_id, eviction)
                except Exception:
                    _logger.exception("on_evict failed for conversation %s", conversation_id)

    def _get(self, conversation_id: str) -> WindowedTranscript:
        conversation = self._conversations.get(check_conversation_id(conversation_id))
        if conversation is None:
            raise ConversationNotFound(
                f"there is no conversation {conversation_id!r}: get_all_conversations() lists all ids",
                conversation_id=conversation_id,
            )
        return conversation

    def _check_id_is_free(self, conversation_id: str) -> None:
        if conversation_id in self._conversations:
            raise ConversationExists(
                f"conversation {conversation_id!r} already exists: reset it first, or choose another id",
                conversation_id=conversation_id,
            )

    def _read_export(self, new_id: str, data: Mapping[str, Any]) -> WindowedTranscript:
        """Build a conversation from an export. Raise `InvalidExport` if that is impossible."""
        try:
            if not isinstance(data["messages"], list) or not isinstance(data["turn_starts"], list):
                raise InvalidExport("messages and turn_starts must be lists")
            messages = [MessageEntry.from_dict(item) for item in data["messages"]]
            for message in messages:
                check_size(message.size, self._max_message_bytes)
                _set_token_count(message, self._count(message))
            flags = [check_flag("in_window", item["in_window"]) for item in data["messages"]]
            kept = tuple(message for message, flag in zip(messages, flags, strict=True) if flag)
            starts = tuple(check_label("turn_starts", item) for item in data["turn_starts"])
            state = ConversationWindow(new_id, kept, evicted_count=data["evicted_count"], turn_starts=starts)
            window = self._restore_window(state)
        except MessageTooLarge:
            raise
        except (SashError, KeyError, TypeError) as error:
            raise InvalidExport(f"the export is damaged: {error}") from error
        if len(window) != len(kept) or len({message.id for message in messages}) != len(messages):
            raise InvalidExport("the export is damaged: a message occurs twice, or a tool call has no result")
        return WindowedTranscript(window, messages if self._keep_transcript else None)

    def _restore_window(self, state: ConversationWindow) -> Window:
        limits = self._limits
        return Window.restore(
            replace(
                state,
                max_tokens=limits.max_tokens,
                max_turns=limits.max_turns,
                evict_to=limits.evict_to,
                preserve_system=limits.preserve_system,
            )
        )

    @asynccontextmanager
    async def _hold(self, conversation_id: str) -> AsyncIterator[None]:
        """Hold the conversation for one writer. Writers proceed in order of arrival."""
        queue = self._queues.setdefault(conversation_id, _WriteQueue())
        queue.waiting_count += 1
        try:
            async with queue.lock:
                yield
        finally:
            queue.waiting_count -= 1
            if not queue.waiting_count:
                del self._queues[conversation_id]


def _set_token_count(message: MessageEntry, count: int) -> None:
    """Set the token count of a frozen message, which is safe only before other code has the message."""
    object.__setattr__(message, "token_count", count)


def _check_export_header(data: Any, conversation_id: str | None) -> str:
    """Return the id for the imported conversation. Raise `InvalidExport` if format or version is wrong."""
    if not isinstance(data, Mapping) or data.get("format") != EXPORT_FORMAT:
        raise InvalidExport("this is not a conversation that Sash exported: `format` is missing or wrong")
    if (type(data.get("version")), data.get("version")) != (int, EXPORT_VERSION):
        raise InvalidExport(
            f"the export has version {data.get('version')!r}, this Sash reads {EXPORT_VERSION}: "
            "import it with the Sash that wrote it, or a newer one",
        )
    return check_conversation_id(data.get("conversation_id") if conversation_id is None else conversation_id)
