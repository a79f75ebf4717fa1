"""What goes in and out of MCP's tools, as seed 004 prints it: the common shapes, with ids as arguments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from sash.app.schemas import ContinuationShown, SessionList, WaitingCall
from sash.values.continuations import ArtifactRef, ContinuationError, ContinuationResponse, Status
from sash.values.requests import Approve, Ask, Milliseconds, SendMessage
from sash.values.sessions import Label, ModelConfig, Session, SessionStatus
from sash.values.validated import validated
from sash.values.validation import whole

# Many clients give up after a minute.
WAIT_MS = 50_000
MAX_SESSIONS = 500

TO_DO: dict[str, str] = {
    "pending": "It waits for the turn before it. Call ha_agent_await_continuation with this continuation_id.",
    "running": "It is still at work. Call ha_agent_await_continuation with this continuation_id.",
    "streaming": "It is writing its answer. Call ha_agent_await_continuation with this continuation_id.",
    "awaiting_approval": "It waits for a yes. Ask the user about each of waiting_calls, then call "
    "ha_agent_approve.",
    "interrupted": "It was interrupted. Call ha_agent_resume with this continuation_id to go on with it.",
    "expired": "It waited for too long. Call ha_agent_retry with this continuation_id to begin anew.",
}


@validated(kw_only=True)
class SessionNamed:
    session_id: Label


@validated(kw_only=True)
class SessionToEnd(SessionNamed):
    reason: Label | None = None


@validated(kw_only=True)
class SessionsWanted:
    status: SessionStatus | None = None
    limit: Annotated[int, Strict(), Field(ge=1, le=MAX_SESSIONS), BeforeValidator(whole)] = 20
    cursor: Label | None = None


@validated(kw_only=True)
class MessageToSend(SendMessage):
    session_id: Label


@validated(kw_only=True)
class Question(Ask):
    timeout_ms: Milliseconds = WAIT_MS


@validated(kw_only=True)
class TurnNamed:
    continuation_id: Label


@validated(kw_only=True)
class TurnToCancel(TurnNamed):
    reason: Label | None = None


@validated(kw_only=True)
class TurnToAwait(TurnNamed):
    timeout_ms: Milliseconds = WAIT_MS


@validated(kw_only=True)
class TurnToApprove(Approve):
    continuation_id: Label
    timeout_ms: Milliseconds = WAIT_MS


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list: what tells it from the others, and what it took so far."""

    id: str
    name: str | None
    status: SessionStatus
    created_at: datetime
    updated_at: datetime
    model: ModelConfig
    turns: int
    total_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class SummaryList:
    sessions: tuple[SessionSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Awaited:
    """Where a turn stands; `to_do` is what to call next, if there is something."""

    status: Status
    continuation_id: str
    session_id: str
    response: ContinuationResponse | None
    artifacts: tuple[ArtifactRef, ...]
    error: ContinuationError | None
    waiting_calls: tuple[WaitingCall, ...]
    to_do: str | None


def summaries(page: SessionList) -> SummaryList:
    """Return a page of sessions as summaries."""
    return SummaryList(tuple(map(_summary, page.sessions)), page.next_cursor)


def awaited(turn: ContinuationShown) -> Awaited:
    """Return where a turn stands; its steps and its request are left out, for they are long."""
    return Awaited(
        turn.status,
        turn.continuation_id,
        turn.session_id,
        turn.response,
        turn.artifacts,
        turn.error,
        turn.waiting_calls,
        TO_DO.get(turn.status),
    )


def _summary(session: Session) -> SessionSummary:
    stats = session.stats
    return SessionSummary(
        session.id,
        session.name,
        session.status,
        session.created_at,
        session.updated_at,
        session.model,
        stats.turns,
        stats.total_tokens,
        stats.cost_usd,
    )
