"""The sliding window: which messages the model still sees, and which one is evicted next.

A pure data structure: it knows no clock, no tokeniser and no store. Messages come in with their token
count, evictions come out. Adding costs O(1), reading O(window).

The unit of eviction is a *group*: one message, or an assistant message that calls tools together with
the results of those calls. Groups wait in three queues, and leave in this order: `ephemeral` oldest
first, ordinary oldest first, `important` oldest first. A limit by turns evicts whole turns in that order.

Three kinds of groups are in no queue, so they are not evicted: system messages (with `preserve_system`),
`pinned` groups (a pinned answer with its question), and the turn that is being added. Its groups are queued
when the next turn begins.

After an eviction by turns, or with a low-water mark, the window starts with a question, because some
providers refuse a prompt that starts with an answer.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

from sash.errors import DuplicateMessage, OrphanToolResult
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.validation import check_window
from sash.values.window_stats import WindowStats

Reason = Literal["max_tokens", "max_turns", "max_characters", "unanswered", "reset"]

# The queues, in the order in which they are emptied. Kept groups are in none of them.
_EPHEMERAL, _ORDINARY, _IMPORTANT, _KEPT = range(4)

# The preview of a cut adds at most this many turns.
MAX_PREVIEW_TURNS = 10_000
# The question id of a restored turn whose question was evicted.
_EVICTED_QUESTION = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of a window, and the size to which an eviction reduces it.

    None means no limit. `evict_to` is the low-water mark as a share of the limit. Below 1, evictions remove
    more messages but happen less often, so the head of the prompt stays the same for many turns.
    """

    max_tokens: int | None = 4000
    max_turns: int | None = None
    evict_to: float = 1.0
    preserve_system: bool = True

    def __post_init__(self) -> None:
        check_window(self.max_tokens, self.max_turns, self.evict_to)


class Eviction(NamedTuple):
    """A message that left the window, and the reason."""

    message: MessageEntry
    reason: Reason


class _Group:
    __slots__ = ("messages", "rank", "turn", "unanswered")

    def __init__(self, message: MessageEntry, rank: int, turn: "_Turn") -> None:
        self.messages = [message]
        self.rank = rank
        self.turn = turn
        self.unanswered = {call["id"] for call in message.tool_calls} if message.tool_calls else None


class _Turn:
    """The groups of one turn that can still be evicted. `rank` is the rank of its most important group.

    `question` is the id of the user message, even after its eviction. Messages before the first user message
    have no question, and do not count as a turn.
    """

    __slots__ = ("groups", "question", "rank")

    def __init__(self, question: str | None) -> None:
        self.question = question
        self.groups: dict[_Group, None] = {}
        self.rank = _EPHEMERAL


class Window:
    """The messages within the limits, oldest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.tokens = 0
        self.turns = 0
        self.evicted_count = 0
        self._messages: dict[str, MessageEntry] = {}
        self._turn = _Turn(question=None)
        self._last: _Group | None = None
        self._groups: tuple[OrderedDict[_Group, None], ...] = tuple(OrderedDict() for _ in range(3))
        self._turns: tuple[OrderedDict[_Turn, None], ...] = tuple(OrderedDict() for _ in range(3))

    @classmethod
    def restore(cls, state: ConversationWindow) -> Self:
        """Return the window that `snapshot` copied. Nothing is evicted."""
        window = cls(Limits(state.max_tokens, state.max_turns, state.evict_to, state.preserve_system))
        starts = set(state.turn_starts)
        for message in state.messages:
            if message.id in starts:
                window._begin_turn(_EVICTED_QUESTION)
            window._insert(message, [])
        window.evicted_count = state.evicted_count
        return window

    def snapshot(self, conversation_id: str) -> ConversationWindow:
        """Return a frozen copy of the window; `restore` reads it."""
        limits = self.limits
        return ConversationWindow(
            conversation_id,
            tuple(self._messages.values()),
            max_tokens=limits.max_tokens,
            current_tokens=self.tokens,
            max_turns=limits.max_turns,
            evict_to=limits.evict_to,
            preserve_system=limits.preserve_system,
            evicted_count=self.evicted_count,
            turn_starts=tuple(self.find_turn_starts()),
        )

    def replace_message(self, message: MessageEntry) -> Self:
        """Return a copy of the window with another version of one message. Nothing is evicted."""
        state = self.snapshot("copy")
        changed = tuple(message if old.id == message.id else old for old in state.messages)
        return self.restore(replace(state, messages=changed))

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[MessageEntry]:
        return iter(self._messages.values())

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    @property
    def over_budget(self) -> bool:
        """Whether the window exceeds `max_tokens`, because the remaining messages may not be evicted."""
        limit = self.limits.max_tokens
        return limit is not None and self.tokens > limit

    @property
    def utilization(self) -> float:
        """Used share of `max_tokens` in percent; 0 without that limit."""
        limit = self.limits.max_tokens
        return 100 * self.tokens / limit if limit else 0.0

    def count_stats(self, *, with_tags: bool = True) -> WindowStats:
        """Return the counts of the window, optionally without those of its tags."""
        return WindowStats(
            len(self),
            self.tokens,
            self.limits.max_tokens,
            self.turns,
            self.limits.max_turns,
            self.evicted_count,
            Counter(tag for message in self for tag in message.tags) if with_tags else {},
        )

    def add(self, message: MessageEntry) -> tuple[Eviction, ...]:
        """Add a message and return the evictions that it caused. If this raises, nothing has changed."""
        evicted: list[Eviction] = []
        self._insert(message, evicted)
        limits = self.limits
        too_many_turns = limits.max_turns is not None and self.turns > limits.max_turns
        if limits.max_turns is not None and too_many_turns:
            self._shed_turns(limits.max_turns, evicted)
        too_many_tokens = limits.max_tokens is not None and self.tokens > limits.max_tokens
        if limits.max_tokens is not None and too_many_tokens:
            self._shed_tokens(limits.max_tokens, evicted)
        if too_many_turns or (too_many_tokens and limits.evict_to < 1):
            self._shed_leading_answers("max_turns" if too_many_turns else "max_tokens", evicted)
        self.evicted_count += len(evicted)
        return tuple(evicted)

    def preview_cut(self) -> tuple[Eviction, ...]:
        """Return what the next cut will evict, if small turns fill the window until then. Nothing changes.

        With both limits, the one by tokens counts. Empty without limits, or if the cut is more than
        `MAX_PREVIEW_TURNS` away.
        """
        limits, copy = self.limits, self.restore(self.snapshot("copy"))
        if limits.max_tokens is not None:
            fillers = [max(0, limits.max_tokens - self.tokens) + 1]
        elif limits.max_turns is not None:
            fillers = [0] * min(MAX_PREVIEW_TURNS, max(0, limits.max_turns - self.turns) + 1)
        else:
            return ()
        copy.limits = replace(limits, max_turns=None if limits.max_tokens is not None else limits.max_turns)
        evicted = [copy.add(MessageEntry("user", "", token_count=tokens)) for tokens in fillers][-1]
        return tuple(each for each in evicted if each.message.id in self and each.reason != "unanswered")

    def _insert(self, message: MessageEntry, evicted: list[Eviction]) -> None:
        if message.id in self._messages:
            raise DuplicateMessage(f"message {message.id} is already in the window")
        if message.role == "tool":
            self._add_result(message)
        else:
            if self._last is not None and self._last.unanswered:
                self._drop_unanswered(self._last, evicted)
            if message.role == "user":
                self._begin_turn(message.id)
            group = self._last = _Group(message, self._rank(message.role, message.tags), self._turn)
            self._turn.groups[group] = None
        self._messages[message.id] = message
        self.tokens += message.token_count

    def _add_result(self, result: MessageEntry) -> None:
        """Add a tool result to the last group. Raise `OrphanToolResult` if the group lacks its open call."""
        group = self._last
        if group is None or not group.unanswered or result.tool_call_id not in group.unanswered:
            raise OrphanToolResult(
                f"no open tool call {result.tool_call_id!r}: first add the assistant message with its "
                "tool_calls, then each result once, before any other message",
                tool_call_id=result.tool_call_id,
            )
        group.unanswered.remove(result.tool_call_id)
        group.messages.append(result)
        group.rank = self._rank("tool", frozenset().union(*(m.tags for m in group.messages)))

    def _drop_unanswered(self, group: _Group, evicted: list[Eviction]) -> None:
        """Drop an assistant message with tool calls, and their results, if a call has no result.

        It is called when the next message is added. Model providers refuse a call without its result.
        """
        del group.turn.groups[group]
        self._remove(group, "unanswered", evicted)

    def _begin_turn(self, question: str) -> None:
        """End the current turn, so that it can be evicted, and start the next one."""
        ended = self._turn
        if kept := [group for group in ended.groups if group.rank == _KEPT]:
            self._keep(kept, ended)
        for group in ended.groups:
            ended.rank = max(ended.rank, group.rank)
            self._groups[group.rank][group] = None
        if ended.groups:
            self._turns[ended.rank][ended] = None
        else:
            self.turns -= ended.question is not None
        self._turn = _Turn(question)
        self.turns += 1

    @staticmethod
    def _keep(kept: list[_Group], turn: _Turn) -> None:
        """Exclude groups from eviction. A kept answer keeps its question: no window starts with an answer."""
        if any(group.messages[0].role == "assistant" for group in kept):
            kept += [group for group in turn.groups if group.messages[0].id == turn.question]
        for group in kept:
            turn.groups.pop(group, None)

    def _shed_turns(self, limit: int, evicted: list[Eviction]) -> None:
        low_water = limit * self.limits.evict_to
        for queue in self._turns:
            while queue and self.turns > low_water:
                turn = next(iter(queue))
                for group in tuple(turn.groups):
                    del self._groups[group.rank][group]
                    self._evict(group, "max_turns", evicted)

    def _shed_tokens(self, limit: int, evicted: list[Eviction]) -> None:
        low_water = limit * self.limits.evict_to
        for queue in self._groups:
            while queue and self.tokens > low_water:
                self._evict(queue.popitem(last=False)[0], "max_tokens", evicted)

    def _shed_leading_answers(self, reason: Reason, evicted: list[Eviction]) -> None:
        """Evict leading answers, so that the window starts with a question."""
        while True:
            preserved = self.limits.preserve_system
            first = next((m for m in self if not (preserved and m.role == "system")), None)
            heads = (next(iter(queue)) for queue in self._groups if queue)
            group = next((group for group in heads if group.messages[0] is first), None)
            if first is None or first.role not in ("assistant", "tool") or group is None:
                return
            del self._groups[group.rank][group]
            self._evict(group, reason, evicted)

    def _evict(self, group: _Group, reason: Reason, evicted: list[Eviction]) -> None:
        turn = group.turn
        del turn.groups[group]
        if not turn.groups:
            del self._turns[turn.rank][turn]
            self.turns -= turn.question is not None
        self._remove(group, reason, evicted)

    def _remove(self, group: _Group, reason: Reason, evicted: list[Eviction]) -> None:
        for message in group.messages:
            del self._messages[message.id]
            self.tokens -= message.token_count
            evicted.append(Eviction(message, reason))

    def find_turn_starts(self) -> Iterator[str]:
        """Yield the id of the first remaining message of each turn that has lost its user message."""
        for queue in self._turns:
            for turn in queue:
                if turn.question is not None and turn.question not in self._messages:
                    yield next(iter(turn.groups)).messages[0].id

    def _rank(self, role: str, tags: frozenset[str]) -> int:
        if "pinned" in tags or (role == "system" and self.limits.preserve_system):
            return _KEPT
        if "important" in tags:
            return _IMPORTANT
        return _EPHEMERAL if "ephemeral" in tags else _ORDINARY


def split_groups(messages: Iterable[MessageEntry]) -> Iterator[list[MessageEntry]]:
    """Split messages into groups: a tool call with its results, or a single message."""
    group: list[MessageEntry] = []
    for message in messages:
        if message.role == "tool" and group:
            group.append(message)
            continue
        if group:
            yield group
        group = [message]
    if group:
        yield group
