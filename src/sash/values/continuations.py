"""A continuation: the execution of one turn. Its steps are the journal, in `sash.values.steps`."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import MaxLen

from sash.values.bounds import Natural, Time
from sash.values.citations import MAX_CITATIONS, MAX_FOLLOW_UPS, Citation, Text
from sash.values.sessions import Label, ModelConfig
from sash.values.stats import Stats
from sash.values.turn_caller import TurnCaller as TurnCaller
from sash.values.waiting_turns import FiredTurn

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
Outcome = Literal["done", "failed", "denied", "unknown", "dry_run"]
FINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled", "expired"})
UNFINISHED: frozenset[Status] = frozenset({"pending", "running", "awaiting_approval", "interrupted"})
UNDER_WAY: frozenset[str] = frozenset({"pending", "running", "streaming"})
# A continuation with one of these statuses holds its session: no other one can start there.
HOLDING: frozenset[str] = frozenset({"running", "awaiting_approval"})


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """A reference to a large result, which is stored separately."""

    id: str
    type: str
    size: Natural
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContinuationRequest:
    """A message and the limits of its turn. None means the session's own budget, model, area or language.

    `attachments` are images and audio in OpenAI's content-part form. `metadata` is stored with the turn and
    never shown to a model. `tags` are the user's own tags of the message. `fired` is the waiting turn that
    became this continuation: it says what to do, so neither an intent nor a model is asked.
    """

    message: str
    allow_tools: bool = True
    max_steps: Natural | None = None
    time_budget_ms: Natural | None = None
    planner_hints: dict[str, Any] = field(default_factory=dict)
    idempotency_key: Label | None = None
    model: ModelConfig | None = None
    attachments: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    area: Label | None = None
    language: Label | None = None
    caller: TurnCaller | None = None
    fired: FiredTurn | None = None

    @property
    def fires(self) -> str | None:
        """The id of the waiting turn that this request removes when its continuation begins, or None.

        A retry of a fired turn has another key, and removes nothing.
        """
        turn = None if self.fired is None else self.fired.turn
        return None if turn is None or self.idempotency_key != turn.key else turn.id

    @property
    def user_name(self) -> str | None:
        """The name of the user who sent the message, if it is known."""
        return None if self.caller is None else self.caller.user_name

    @property
    def content(self) -> str | tuple[dict[str, Any], ...]:
        """The message as text, or as OpenAI content parts if it has attachments."""
        if not self.attachments:
            return self.message
        return ({"type": "text", "text": self.message}, *self.attachments)


@dataclass(frozen=True, slots=True)
class Action:
    """A tool call that changed the home, or tried to. `verified` is None if its effect cannot be observed.

    `before` and `after` are the states by entity. `undoes` is the key of the call that this one reversed.
    `allowed_by` is the entry of the allowlist that allowed the call. `approved` is the answer of a person who
    was asked first.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    outcome: Outcome
    verified: bool | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    undoes: str | None = None
    allowed_by: Label | None = None
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class ContinuationResponse:
    """The answer of a turn. `stopped_by` names the budget that ended the turn early.

    `citations` are the sources of the answer. `follow_ups` are sentences that the user may send next.
    `topic` is what a local answer is about. It belongs to the intents that wrote it, which read it for later
    sentences that refer to this one.
    """

    final_message: str
    reasoning_summary: str | None = None
    citations: Annotated[tuple[Citation, ...], MaxLen(MAX_CITATIONS)] = ()
    follow_ups: Annotated[tuple[Text, ...], MaxLen(MAX_FOLLOW_UPS)] = ()
    actions: tuple[Action, ...] = ()
    stopped_by: str | None = None
    topic: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ContinuationError:
    """Why a turn failed: a stable code, and a message that says the cause and the remedy."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """The execution of one turn, without its steps. `stats` is None until the turn ends."""

    id: str
    session_id: str
    owner: str
    status: Status
    created_at: Time
    updated_at: Time
    request: ContinuationRequest
    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    retry_of: str | None = None
    stats: Stats | None = None

    @property
    def has_model_call(self) -> bool:
        """Return True if the turn has ended and a model was asked."""
        return self.stats is not None and self.stats.model_calls > 0

    @property
    def is_final(self) -> bool:
        """Return True if the status can no longer change."""
        return self.status in FINAL
