"""The results of MCP tools that differ from those of REST: shorter, because a model reads them."""

from dataclasses import dataclass
from datetime import datetime

from sash.app.schemas import ContinuationShown, WaitingCall
from sash.ports.store import Page
from sash.values.continuations import ArtifactRef, ContinuationError, ContinuationResponse, Status
from sash.values.sessions import ModelConfig, SessionStatus

NEXT_CALL: dict[str, str] = {
    "pending": "The turn waits for another. Call ha_agent_await_continuation with this continuation_id.",
    "running": "The turn is still running. Call ha_agent_await_continuation with this continuation_id.",
    "streaming": "The turn writes its answer. Call ha_agent_await_continuation with this continuation_id.",
    "awaiting_approval": "The turn needs an approval. Ask the user the question of each of waiting_calls, "
    "then call ha_agent_approve.",
    "interrupted": "The turn was interrupted. Call ha_agent_resume with this continuation_id to continue it.",
    "expired": "The turn waited too long. Call ha_agent_retry with this continuation_id to start again.",
}


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list: what distinguishes it, and what it has used so far."""

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
class TurnSummary:
    """The state of a turn. `to_do` is the next call to make, and `notice` a sentence for the user, if any.

    `question` asks the user for the approval of all waiting calls, in one sentence.
    """

    status: Status
    continuation_id: str
    session_id: str
    response: ContinuationResponse | None
    artifacts: tuple[ArtifactRef, ...]
    error: ContinuationError | None
    waiting_calls: tuple[WaitingCall, ...]
    to_do: str | None
    notice: str | None = None
    question: str | None = None


def summarize_sessions(page: Page) -> SummaryList:
    summaries = tuple(
        SessionSummary(
            session.id,
            session.name,
            session.status,
            session.created_at,
            session.updated_at,
            session.model,
            session.stats.turns,
            session.stats.total_tokens,
            session.stats.cost_usd,
        )
        for session in page.items
    )
    return SummaryList(summaries, page.next_cursor)


def summarize_turn(turn: ContinuationShown) -> TurnSummary:
    """Return the state of a turn without its steps and its request, which are long."""
    return TurnSummary(
        turn.status,
        turn.continuation_id,
        turn.session_id,
        turn.response,
        turn.artifacts,
        turn.error,
        turn.waiting_calls,
        NEXT_CALL.get(turn.status),
        turn.notice,
        turn.question,
    )
