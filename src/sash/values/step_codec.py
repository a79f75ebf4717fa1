"""Steps as JSON and back: the only module that knows the JSON form of a step.

A step is `{"n", "ts", "type", "detail", "cursor"}`. Within one type, `detail` has a tag: an observed
event has an `event`, an end has a `status`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, GetPydanticSchema, PlainSerializer

from sash.values.bounds import Natural, Time
from sash.values.citations import TurnCitation
from sash.values.continuations import Action, ArtifactRef
from sash.values.stats import Bill
from sash.values.steps import (
    Amended,
    AnswerSentBack,
    ApprovalGiven,
    ApprovalRequested,
    Cancelled,
    Expired,
    Failed,
    Finished,
    HomeChanged,
    Interrupted,
    Plan,
    Recalled,
    Recorded,
    Step,
    StepBody,
    StepType,
    ToolCall,
    ToolResult,
    UnknownStep,
    WaitingTurnFired,
)

Detail = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A journal entry: number `n` of its continuation, at position `cursor` among its session's events."""

    n: Natural
    ts: Time
    type: StepType
    detail: Detail
    cursor: Natural


StepRecord.__name__ = StepRecord.__qualname__ = "Step"  # The name that the OpenAPI document shows.


@dataclass(frozen=True, slots=True)
class BodyRecord:
    """The JSON form of a step that has no number, time and cursor yet."""

    type: StepType
    detail: Detail


def encode_body(body: StepBody) -> Detail:
    """Return the `detail` field of a step's JSON form, given the body of the step."""
    return _ENCODERS[type(body)](body)


def decode_body(kind: StepType, detail: Detail) -> StepBody:
    """Return the body that `detail` describes: an `UnknownStep` if this version does not know its tag.

    Raise `ValueError` if a field is missing.
    """
    tag = _find_tag(kind, detail)
    decode = _DECODERS.get((kind, tag))
    if decode is None:
        return UnknownStep(kind, detail)
    try:
        return decode(detail)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a step of type {kind!r} ({tag or 'no tag'}) lacks or misuses {error}") from error


def _encode_step(step: Step) -> StepRecord:
    return StepRecord(step.n, step.ts, step.body.type, encode_body(step.body), step.cursor)


def _decode_step(record: StepRecord) -> Step:
    return Step(record.n, record.ts, decode_body(record.type, record.detail), record.cursor)


def _encode_numberless(body: StepBody) -> BodyRecord:
    return BodyRecord(body.type, encode_body(body))


def _decode_numberless(record: BodyRecord) -> StepBody:
    return decode_body(record.type, record.detail)


def _find_tag(kind: StepType, detail: Detail) -> str | None:
    tag = None
    if kind == "observed_event":
        tag = detail.get("event")
    elif kind == "summary":
        marks = [mark for mark in ("recorded", "amended") if detail.get(mark)]
        tag = marks[0] if marks else detail.get("status")
    return tag if isinstance(tag, str) else None


def _encode_fields(value: Any) -> Detail:
    """Return the fields of a slotted dataclass by name. Its values are JSON values already."""
    return {name: getattr(value, name) for name in value.__slots__}


def _decode_fields(kind: type[T], fields: Detail) -> T:
    """Return a value of a slotted dataclass. Unknown fields are ignored: a later version may write them."""
    known: Any = kind
    return known(**{name: fields[name] for name in known.__slots__ if name in fields})  # type: ignore[no-any-return]


def _encode_bill(bill: Bill | None) -> Detail | None:
    if bill is None:
        return None
    return {
        "model": bill.model,
        "input_tokens": bill.input_tokens,
        "cached_tokens": bill.cached_tokens,
        "output_tokens": bill.output_tokens,
        "reasoning_tokens": bill.reasoning_tokens,
        "counted_tokens": bill.counted_tokens,
        "estimated": bill.estimated,
        "cost_usd": bill.cost_usd,
    }


def _decode_bill(usage: Detail | None) -> Bill | None:
    return None if usage is None else _decode_fields(Bill, usage)


def _encode_plan(plan: Plan) -> Detail:
    detail: Detail = {"content": plan.content, "tool_calls": list(plan.tool_calls)}
    detail["usage"] = _encode_bill(plan.bill)
    if plan.lost_bills:
        detail["lost"] = list(map(_encode_bill, plan.lost_bills))
    return detail


def _decode_plan(detail: Detail) -> Plan:
    return Plan(
        detail["content"],
        tuple(detail["tool_calls"]),
        _decode_bill(detail.get("usage")),
        tuple(_decode_fields(Bill, bill) for bill in detail.get("lost", ())),
    )


def _encode_result(result: ToolResult) -> Detail:
    detail: Detail = {"call_id": result.call_id, "name": result.name, "content": result.content}
    if result.cost_usd:
        detail["cost_usd"] = result.cost_usd
    if result.action is not None:
        detail["action"] = _encode_fields(result.action)
    if result.artifacts:
        detail["artifacts"] = [_encode_fields(artifact) for artifact in result.artifacts]
    return detail


def _decode_result(detail: Detail) -> ToolResult:
    action = detail.get("action")
    return ToolResult(
        detail["call_id"],
        detail["name"],
        detail["content"],
        detail.get("cost_usd", 0.0),
        None if action is None else _decode_fields(Action, action),
        tuple(_decode_fields(ArtifactRef, artifact) for artifact in detail.get("artifacts", ())),
    )


def _encode_recalled(recalled: Recalled) -> Detail:
    detail: Detail = {"query": list(recalled.query), "message_ids": list(recalled.message_ids)}
    detail["text"] = recalled.text
    if recalled.turns:
        detail["turns"] = [
            {"at": turn.at.isoformat(), "text": turn.text, "message_id": turn.message_id}
            for turn in recalled.turns
        ]
    if recalled.scores:
        detail["scores"] = list(recalled.scores)
    detail["reason"] = recalled.reason
    if recalled.found_words:
        detail["found_words"] = list(recalled.found_words)
    return detail


def _decode_recalled(detail: Detail) -> Recalled:
    turns = tuple(
        TurnCitation(datetime.fromisoformat(turn["at"]), turn["text"], turn.get("message_id"))
        for turn in detail.get("turns", ())
    )
    query = tuple(detail["query"])
    return Recalled(
        query,
        tuple(detail["message_ids"]),
        detail["text"],
        turns,
        tuple(map(float, detail.get("scores", ()))),
        detail.get("reason") or ("words" if query else "time"),
        tuple(detail.get("found_words", ())),
    )


def _encode_interruption(interrupted: Interrupted) -> Detail:
    detail: Detail = {"event": "interrupted"}
    if interrupted.code is not None:
        detail |= {"code": interrupted.code, "message": interrupted.message}
    if interrupted.lost_bills:
        detail["lost"] = [_encode_bill(bill) for bill in interrupted.lost_bills]
    if interrupted.begun:
        detail["begun"] = [_encode_fields(action) for action in interrupted.begun]
    return detail


def _decode_interruption(detail: Detail) -> Interrupted:
    lost = tuple(_decode_fields(Bill, usage) for usage in detail.get("lost", ()))
    begun = tuple(_decode_fields(Action, action) for action in detail.get("begun", ()))
    return Interrupted(detail.get("code"), detail.get("message"), lost, begun)


_ENCODERS: dict[type, Callable[[Any], Detail]] = {
    Plan: _encode_plan,
    ToolCall: lambda s: {"call_id": s.call_id, "name": s.name, "arguments": s.arguments},
    ToolResult: _encode_result,
    Recalled: _encode_recalled,
    HomeChanged: lambda s: {"event": "told", "text": s.text},
    AnswerSentBack: lambda s: {"event": "sent_back", "content": s.content, "usage": _encode_bill(s.bill)},
    ApprovalRequested: lambda s: {"event": "approval_requested", **_encode_fields(s)},
    ApprovalGiven: lambda s: {"event": "approval", **_encode_fields(s)},
    Interrupted: _encode_interruption,
    WaitingTurnFired: lambda s: {"event": "waiting_turn_fired", **_encode_fields(s)},
    Finished: lambda s: {
        "status": "completed",
        "final_message": s.final_message,
        "stopped_by": s.stopped_by,
        "usage": _encode_bill(s.bill),
    },
    Recorded: lambda s: {"status": "completed", "final_message": s.final_message, "recorded": True},
    Amended: lambda s: {"status": "completed", "final_message": s.final_message, "amended": True},
    Cancelled: lambda s: {"status": "cancelled", "reason": s.reason},
    Expired: lambda s: {"status": "expired"},
    Failed: lambda s: {"status": "failed", "code": s.code, "message": s.message},
    UnknownStep: lambda s: s.fields,
}

_DECODERS: dict[tuple[StepType, str | None], Callable[[Detail], StepBody]] = {
    ("plan", None): _decode_plan,
    ("tool_call", None): lambda d: ToolCall(d["call_id"], d["name"], d["arguments"]),
    ("tool_result", None): _decode_result,
    ("retrieval", None): _decode_recalled,
    ("observed_event", "told"): lambda d: HomeChanged(d["text"]),
    ("observed_event", "sent_back"): lambda d: AnswerSentBack(d["content"], _decode_bill(d.get("usage"))),
    ("observed_event", "approval_requested"): lambda d: ApprovalRequested(
        d["call_id"], d["name"], d.get("reason", ""), d.get("would"), d.get("language")
    ),
    ("observed_event", "approval"): lambda d: ApprovalGiven(d["call_id"], d["approved"]),
    ("observed_event", "interrupted"): _decode_interruption,
    ("observed_event", "waiting_turn_fired"): lambda d: _decode_fields(WaitingTurnFired, d),
    ("summary", "completed"): lambda d: Finished(
        d["final_message"], d.get("stopped_by"), _decode_bill(d.get("usage"))
    ),
    ("summary", "recorded"): lambda d: Recorded(d["final_message"]),
    ("summary", "amended"): lambda d: Amended(d["final_message"]),
    ("summary", "cancelled"): lambda d: Cancelled(d["reason"]),
    ("summary", "expired"): lambda d: Expired(),
    ("error", None): lambda d: Failed(d["code"], d["message"]),
}


JsonStep = Annotated[
    StepRecord, AfterValidator(_decode_step), PlainSerializer(_encode_step, return_type=StepRecord)
]
_JsonBody = Annotated[
    BodyRecord,
    AfterValidator(_decode_numberless),
    PlainSerializer(_encode_numberless, return_type=BodyRecord),
]
# A step without a number, as a field of a value that is stored as JSON.
JsonBody = Annotated[StepBody, GetPydanticSchema(lambda _, handler: handler.generate_schema(_JsonBody))]
