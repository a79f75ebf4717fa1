"""The steps of a turn: one small value for each kind. A turn's journal is the list of its steps.

`sash.values.step_codec` turns steps into JSON and back; no other module reads the JSON form.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import GetCoreSchemaHandler

from sash.values.bounds import Cost
from sash.values.citations import TurnCitation
from sash.values.continuations import Action, ArtifactRef, Status
from sash.values.stats import Bill, Stats, sum_bills

StepType = Literal["plan", "tool_call", "tool_result", "retrieval", "observed_event", "summary", "error"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A model answer that calls tools. `tool_calls` have OpenAI's form; `bill` is None without a model.

    `lost_bills` are the model calls before this answer that were paid for and gave no answer.
    """

    type: ClassVar[StepType] = "plan"

    content: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    bill: Bill | None = None
    lost_bills: tuple[Bill, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the plan before it. `arguments` is JSON text, without secrets."""

    type: ClassVar[StepType] = "tool_call"

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as the model reads it. `action` is set if the tool changes the home."""

    type: ClassVar[StepType] = "tool_result"

    call_id: str
    name: str
    content: str
    cost_usd: Cost = 0.0
    action: Action | None = None
    artifacts: tuple[ArtifactRef, ...] = ()


# Why old messages were recalled: their words, only their meaning, or the time that the question names.
RecallReason = Literal["words", "meaning", "time"]

# The result of this tool tells the end of the turn to evict all earlier turns.
RESET_TOOL = "reset_conversation"
RESET_RESULT = '{"reset": true}'


@dataclass(frozen=True, slots=True)
class Recalled:
    """Evicted messages that this turn shows to the model again, and the words that found them.

    `turns` are the turns of these messages, with their times, and `scores` the scores of the messages.
    `found_words` are the words of `query` that stand at the best old place, without very common words.
    Journals of earlier versions lack them.
    """

    type: ClassVar[StepType] = "retrieval"

    query: tuple[str, ...]
    message_ids: tuple[str, ...]
    text: str
    turns: tuple[TurnCitation, ...] = ()
    scores: tuple[float, ...] = ()
    reason: RecallReason = "words"
    found_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeChanged:
    """State changes of the home since the model last heard of it, as text for the model."""

    type: ClassVar[StepType] = "observed_event"

    text: str


@dataclass(frozen=True, slots=True)
class AnswerSentBack:
    """An answer that claimed an action which no tool performed. The model was asked again."""

    type: ClassVar[StepType] = "observed_event"

    content: str
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A tool call that waits for an approval. `would` describes the effect of the call.

    `language` is that of the user; None if it is unknown.
    """

    type: ClassVar[StepType] = "observed_event"

    call_id: str
    name: str
    reason: str
    would: Any
    language: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """A person's answer to an approval request."""

    type: ClassVar[StepType] = "observed_event"

    call_id: str
    approved: bool


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The turn stopped and can be resumed. `code` is set if an error stopped it.

    `lost_bills` are the model calls that were paid for and gave no answer. `begun` are the actions that were
    under way, with the states before them.
    """

    type: ClassVar[StepType] = "observed_event"

    code: str | None = None
    message: str | None = None
    lost_bills: tuple[Bill, ...] = ()
    begun: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingTurnFired:
    """A waiting turn has become this turn. `due_at` is an ISO time, or None if its condition was never met.

    With the outcome "due" its work is done now. With "missed" it is too late, and with "not_now" one of its
    conditions does not hold, which `reason` names: then nothing is done. `late` says why it comes late: Sash
    was not running ("down"), or the home or the session was not free ("delayed"). None means that it is not.
    """

    type: ClassVar[StepType] = "observed_event"

    waiting_turn_id: str
    summary: str
    outcome: Literal["due", "missed", "not_now"]
    due_at: str | None = None
    late: Literal["down", "delayed"] | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The turn ended with an answer. `stopped_by` names the budget that ended it early."""

    type: ClassVar[StepType] = "summary"

    final_message: str
    stopped_by: str | None = None
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The turn was added as a whole, without running the agent. `final_message` is None if unanswered."""

    type: ClassVar[StepType] = "summary"

    final_message: str | None


@dataclass(frozen=True, slots=True)
class Amended:
    """The answer of the completed turn was replaced."""

    type: ClassVar[StepType] = "summary"

    final_message: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The turn was cancelled."""

    type: ClassVar[StepType] = "summary"

    reason: str


@dataclass(frozen=True, slots=True)
class Expired:
    """The turn was left waiting for too long."""

    type: ClassVar[StepType] = "summary"


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn ended with an error."""

    type: ClassVar[StepType] = "error"

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class UnknownStep:
    """A step that another version of Sash wrote. `fields` is its `detail`, unchanged."""

    type: StepType
    fields: dict[str, Any]


EndStep = Finished | Recorded | Amended | Cancelled | Expired | Failed
StepBody = (
    Plan
    | ToolCall
    | ToolResult
    | Recalled
    | HomeChanged
    | AnswerSentBack
    | ApprovalRequested
    | ApprovalGiven
    | Interrupted
    | WaitingTurnFired
    | EndStep
    | UnknownStep
)


@dataclass(frozen=True, slots=True)
class Step:
    """A journal entry: number `n` of its continuation, at position `cursor` among its session's events."""

    n: int
    ts: datetime
    body: StepBody
    cursor: int

    @property
    def type(self) -> StepType:
        """The kind of step: the `type` field of its JSON form."""
        return self.body.type

    @property
    def detail(self) -> dict[str, Any]:
        """The body as a dict of JSON values: the `detail` field of the step's JSON form."""
        from sash.values.step_codec import encode_body

        return encode_body(self.body)

    @property
    def final_status(self) -> Status | None:
        """The status that the turn ends with, or None if this step does not end it."""
        match self.body:
            case Finished() | Recorded() | Amended():
                return "completed"
            case Cancelled():
                return "cancelled"
            case Expired():
                return "expired"
            case Failed():
                return "failed"
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> Any:
        from sash.values.step_codec import JsonStep

        return handler.generate_schema(JsonStep)


def list_actions(steps: Iterable[StepBody]) -> tuple[Action, ...]:
    """Return the actions in the results of tool calls, oldest first."""
    return tuple(step.action for step in steps if isinstance(step, ToolResult) and step.action is not None)


def bill_steps(bodies: Iterable[StepBody], **outcome: Any) -> Stats:
    """Add up the bills of model calls and the costs of tools. `outcome` has the other fields."""
    bills: list[Bill | None] = []
    tools_usd, tool_calls = 0.0, 0
    for body in bodies:
        match body:
            case Plan(bill=bill, lost_bills=lost_bills):
                bills += (*lost_bills, bill)
            case AnswerSentBack(bill=bill) | Finished(bill=bill):
                bills.append(bill)
            case Interrupted(lost_bills=lost_bills):
                bills += lost_bills
            case ToolCall():
                tool_calls += 1
            case ToolResult(cost_usd=usd):
                tools_usd += usd
    stats = sum_bills([bill for bill in bills if bill is not None], tool_calls=tool_calls, **outcome)
    return replace(stats, cost_usd=stats.cost_usd + tools_usd)


def drop_prices(body: StepBody) -> StepBody:
    """Return a step that cost nothing."""
    match body:
        case Plan(bill=bill, lost_bills=lost_bills):
            return replace(
                body, bill=bill and _drop_price(bill), lost_bills=tuple(map(_drop_price, lost_bills))
            )
        case AnswerSentBack(bill=bill) | Finished(bill=bill):
            return replace(body, bill=bill and _drop_price(bill))
        case Interrupted(lost_bills=lost_bills):
            return replace(body, lost_bills=tuple(map(_drop_price, lost_bills)))
        case ToolResult():
            return replace(body, cost_usd=0.0)
    return body


def _drop_price(bill: Bill) -> Bill:
    return replace(bill, cost_usd=0.0)
