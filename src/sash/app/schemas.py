"""The output of every surface, in one form: REST, MCP and the command line's JSON.

Each surface makes these values from the values of the runtime, with the constructor or with `of`.
"""

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal, Self

from pydantic import ConfigDict

from sash.app.approval_question import write_question
from sash.app.effect_text import describe_call
from sash.engine.prompt_record import SentPrompt
from sash.engine.recall_report import RecallReport
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import ContinuationFinal
from sash.ports.store import Page, StoredMessage
from sash.values.codec import adapter
from sash.values.continuations import (
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationRequest,
    ContinuationResponse,
    Status,
)
from sash.values.sessions import Fact, Pin, Session
from sash.values.stats import Stats
from sash.values.steps import ApprovalRequested, Step
from sash.values.waiting_turns import DeferredCall, WaitingTurn
from sash.values.window_stats import WindowStats

# One message may have a megabyte, so a page of many could fill the memory.
MAX_PAGE_CHARS = 4 << 20

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SessionStarted:
    session_id: str


@dataclass(frozen=True, slots=True)
class SessionShown:
    """A session, the ids of its open turns, and the counts of its window."""

    session: Session
    open_continuations: tuple[str, ...] = ()
    window_stats: WindowStats | None = None

    @classmethod
    def of(cls, session: Session, open_turns: Sequence[Continuation], window: WindowStats) -> Self:
        return cls(session, tuple(turn.id for turn in open_turns), window)


@dataclass(frozen=True, slots=True)
class SessionList:
    """Sessions, newest first; on request also their titles by session id."""

    sessions: tuple[Session, ...]
    next_cursor: str | None = None
    titles: dict[str, str | None] | None = None

    @classmethod
    def of(cls, page: Page, titles: dict[str, str | None] | None = None) -> Self:
        return cls(page.items, page.next_cursor, titles)


@dataclass(frozen=True, slots=True)
class SessionOver:
    status: Literal["ended", "expired"]

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls("expired" if session.status == "expired" else "ended")


@dataclass(frozen=True, slots=True)
class SessionReset:
    """The window of the session is empty now."""

    session_id: str
    reset: bool = True


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The store has accepted the turn. It is running or queued."""

    continuation_id: str
    acknowledged: bool = True


@dataclass(frozen=True, slots=True)
class WaitingShown:
    """What a session does later, at the local time `at` or when the entity in the text `when` is like that.

    `only_if` are conditions, as texts, that are checked then. It makes the `calls`, or tells the text `say`.
    """

    id: str
    session_id: str
    summary: str
    created_at: datetime
    at: str | None
    when: str | None
    only_if: tuple[str, ...]
    entity_ids: tuple[str, ...]
    calls: tuple[DeferredCall, ...]
    say: str | None
    language: str | None

    @classmethod
    def of(cls, turn: WaitingTurn, described: Object) -> Self:
        return cls(
            turn.id,
            turn.session_id,
            turn.summary,
            turn.created_at,
            described.get("at"),
            described.get("when"),
            tuple(described.get("only_if", ())),
            turn.entity_ids,
            turn.calls,
            turn.say,
            turn.language,
        )


@dataclass(frozen=True, slots=True)
class WaitingList:
    """What sessions do later, oldest first."""

    waiting: tuple[WaitingShown, ...]


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A tool call that waits for an approval: the reason, and the effect of the call as JSON and in words.

    `question` is a sentence for the user in the user's language, such as "Unlock the front door lock?".
    """

    call_id: str
    name: str
    reason: str
    would: Any
    in_words: str
    question: str

    @classmethod
    def of(cls, call: ApprovalRequested) -> Self:
        words = describe_call(call.name, call.would)
        return cls(call.call_id, call.name, call.reason, call.would, words, write_question([call]))


@dataclass(frozen=True, slots=True)
class ContinuationShown:
    """The state of a continuation. `notice` is a sentence for a user who waits for the answer.

    `question` asks the user for the approval of all waiting calls, in one sentence.
    """

    continuation_id: str
    session_id: str
    status: Status
    request: ContinuationRequest
    created_at: datetime
    updated_at: datetime
    response: ContinuationResponse | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    steps: tuple[Step, ...] = ()
    error: ContinuationError | None = None
    retry_of: str | None = None
    stats: Stats | None = None
    waiting_calls: tuple[WaitingCall, ...] = ()
    notice: str | None = None
    question: str | None = None

    @classmethod
    def of(cls, turn: Continuation | ContinuationResult, notice: str | None = None) -> Self:
        """Return the state of a turn. Only a `ContinuationResult` shows steps and waiting calls."""
        result = turn if isinstance(turn, ContinuationResult) else ContinuationResult(turn, ())
        continuation = result.continuation
        return cls(
            continuation.id,
            continuation.session_id,
            continuation.status,
            continuation.request,
            continuation.created_at,
            continuation.updated_at,
            continuation.response,
            continuation.artifacts,
            result.steps,
            continuation.error,
            continuation.retry_of,
            continuation.stats,
            tuple(map(WaitingCall.of, result.waiting_calls)),
            notice,
            write_question(result.waiting_calls) or None,
        )


@dataclass(frozen=True, slots=True)
class ContinuationList:
    """Continuations without their steps, newest first."""

    continuations: tuple[ContinuationShown, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    status: Literal["cancelled", "not_found", "already_final"]

    @classmethod
    async def of(cls, cancelling: Awaitable[Continuation]) -> Self:
        """Await a cancellation. The status of a turn that had ended before is "already_final"."""
        try:
            await cancelling
        except ContinuationFinal:
            return cls("already_final")
        return cls("cancelled")


@dataclass(frozen=True, slots=True)
class MessageShown:
    """A message of a transcript."""

    id: str
    role: str
    content: str | tuple[Object, ...] | None
    tags: tuple[str, ...]
    token_count: int
    timestamp: datetime
    continuation_id: str | None
    session_id: str
    position: int
    in_window: bool
    tool_calls: tuple[Object, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, stored: StoredMessage) -> Self:
        message = stored.message
        return cls(
            message.id,
            message.role,
            message.content,
            tuple(sorted(message.tags)),
            message.token_count,
            message.timestamp,
            stored.continuation_id,
            stored.session_id,
            stored.position,
            stored.in_window,
            message.tool_calls,
            message.tool_call_id,
            message.name,
        )


def count_chars(stored: StoredMessage) -> int:
    """Return the number of characters of a message, with its images."""
    content = stored.message.content
    return len(content) if isinstance(content, str) else sum(len(str(part)) for part in content)


def _count_fitting(sizes: Iterable[int]) -> int:
    """Return how many records fit in one page, given their sizes in characters. It is at least 1."""
    return max(1, sum(total <= MAX_PAGE_CHARS for total in accumulate(sizes)))


@dataclass(frozen=True, slots=True)
class MessageList:
    messages: tuple[MessageShown, ...]
    next_cursor: str | None = None

    @classmethod
    def of(cls, found: Sequence[StoredMessage], limit: int | None = None) -> Self:
        """Return a page of at most `limit` messages. A longer `found` shows that another page follows.

        A page of large messages has fewer of them, so that its text stays below `MAX_PAGE_CHARS`.
        """
        if limit is None:
            return cls(tuple(map(MessageShown.of, found)))
        shown = found[: _count_fitting(map(count_chars, found[:limit]))]
        is_last = len(shown) == len(found)
        return cls(tuple(map(MessageShown.of, shown)), None if is_last else str(shown[-1].position))

    @classmethod
    def of_best(cls, found: Sequence[StoredMessage]) -> Self:
        """Return the results of a search, as many as fit in one page. No other page follows."""
        return cls(tuple(map(MessageShown.of, found[: _count_fitting(map(count_chars, found))])))

    @classmethod
    def of_older(cls, found: Sequence[StoredMessage], limit: int) -> Self:
        """Return a page as `of` does, with the last messages of `found`. Older messages follow it."""
        shown = found[-_count_fitting(map(count_chars, found[: -limit - 1 : -1])) :]
        is_last = len(shown) == len(found)
        return cls(tuple(map(MessageShown.of, shown)), None if is_last else str(shown[0].position))


@dataclass(frozen=True, slots=True)
class FactList:
    facts: tuple[Fact, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class PinList:
    pins: tuple[Pin, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceList:
    """The preferences with which new sessions start."""

    preferences: Object


@dataclass(frozen=True, slots=True)
class ContextSection:
    name: str
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class ContextPart:
    name: str
    tokens: int
    stable: bool
    sections: tuple[ContextSection, ...] = ()


@dataclass(frozen=True, slots=True)
class EvictedShown:
    message_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContextShown:
    """The parts of the next model call of a session; on request also its messages and tools.

    `recalled` has the old messages that were recalled for the last turn.
    """

    parts: tuple[ContextPart, ...]
    total_tokens: int
    prefix_share: float | None
    evicted: tuple[EvictedShown, ...]
    evicted_count: int
    next_evicted: tuple[str, ...]
    digest: str
    recalled: RecallReport | None = None
    messages: tuple[Object, ...] | None = None
    tools: tuple[Object, ...] | None = None

    @classmethod
    def of(cls, report: Object) -> Self:
        context: Self = adapter(cls).validate_python(report)
        return context


@dataclass(frozen=True, slots=True)
class PromptList:
    """The prompts of the model calls of a turn, oldest first."""

    prompts: tuple[SentPrompt, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Erased:
    """The number of sessions that were deleted permanently."""

    sessions: int


@dataclass(frozen=True, slots=True)
class Export:
    """A whole session, for a later import."""

    __pydantic_config__ = ConfigDict(extra="allow")

    format: Literal["sash.session"]
    version: int
    session: Object = field(default_factory=dict)
