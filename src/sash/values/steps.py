"""A continuation: the execution of one turn. It is a fold over its steps, and the steps are the journal."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sash.values.sessions import ModelConfig
from sash.values.stats import Stats

Status = Literal[
    "pending",
    "running",
    "streaming",
    "awaiting_approval",
    "interrupted",
    "completed",
    "failed",
    "cancelled",
    "expired",
]
FINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled", "expired"})
UNDER_WAY: frozenset[str] = frozenset({"pending", "running", "streaming"})
HOLDING: frozenset[str] = frozenset({"running", "awaiting_approval"})

StepType = Literal["plan", "tool_call", "tool_result", "retrieval", "observed_event", "summary", "error"]


@dataclass(frozen=True, slots=True)
class Step:
    """One journal entry: number `n` of its continuation, at place `cursor` among its session's events."""

    n: int
    ts: datetime
    type: StepType
    detail: dict[str, Any]
    cursor: int


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step that is still to be written; the store gives it its number, place and time."""

    type: StepType
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """A large result kept by reference."""

    id: str
    type: str
    size: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContinuationRequest:
    """What was asked, and under which bounds; None is the session's budget, and the session's model.

    `attachments` are images and audio beside the message, as OpenAI's content parts. `metadata` is what the
    caller keeps with the turn; no model sees it.
    """

    message: str
    allow_tools: bool = True
    max_steps: int | None = None
    time_budget_ms: int | None = None
    planner_hints: dict[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    model: ModelConfig | None = None
    attachments: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> str | tuple[dict[str, Any], ...]:
        """The message as a model takes it."""
        if not self.attachments:
            return self.message
        return ({"type": "text", "text": self.message}, *self.attachments)


@dataclass(frozen=True, slots=True)
class Action:
    """A call that changed something, or tried to. `verified` is None if nobody can say whether it worked.

    `before` and `after` are what was so, by entity; `undoes` is the call that this one has taken back.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    outcome: Literal["done", "failed", "denied", "unknown", "dry_run"]
    verified: bool | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class ContinuationResponse:
    """What came of it. `stopped_by` names the budget that ended the turn early."""

    final_message: str
    reasoning_summary: str | None = None
    citations: tuple[dict[str, Any], ...] = ()
    follow_ups: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    stopped_by: str | None = None


@dataclass(frozen=True, slots=True)
class ContinuationError:
    """Why a turn failed: a stable code and a message to act on."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """One turn's execution, without its steps. `stats` says what it took, when it is over."""

    id: str
    session_id: str
    owner: str
    status: Status
    created_at: datetime
    updated_at: datetime
    request: ContinuationRequest
    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    retry_of: str | None = None
    stats: Stats | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing can happen to it any more."""
        return self.status in FINAL
