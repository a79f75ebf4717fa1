"""Events: the values that a subscriber of a session receives, one small class for each type.

`payload` is the JSON form of an event, as clients receive it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sash.values.codec import adapter
from sash.values.continuations import Continuation
from sash.values.steps import Step

EventType = Literal["progress", "step", "partial", "final"]


# Events compare by identity: a server encodes each of them once for all subscribers.
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ProgressEvent:
    """A sentence about the work under way. It is not stored."""

    type: ClassVar[EventType] = "progress"
    cursor: ClassVar[None] = None

    session_id: str
    continuation_id: str
    message: str

    @property
    def payload(self) -> dict[str, Any]:
        return {"message": self.message}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PartialEvent:
    """Text that the model has written since the last such event. It is not stored.

    `is_provisional` is True if the answer may still be corrected: the model may claim an action that no tool
    has performed. A client that speaks the text aloud waits for the final answer then.
    """

    type: ClassVar[EventType] = "partial"
    cursor: ClassVar[None] = None

    session_id: str
    continuation_id: str
    text: str
    is_provisional: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        provisional = {"is_provisional": True} if self.is_provisional else {}
        return {"partial_response": self.text, **provisional}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StepEvent:
    """The event of a step that was written to the journal."""

    type: ClassVar[EventType] = "step"

    session_id: str
    continuation_id: str
    step: Step

    @property
    def cursor(self) -> int:
        return self.step.cursor

    @property
    def payload(self) -> dict[str, Any]:
        return {"step": adapter(Step).dump_python(self.step, mode="json")}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FinalEvent:
    """The step that ended a continuation, or amended its answer, with the continuation after it."""

    type: ClassVar[EventType] = "final"

    session_id: str
    continuation_id: str
    step: Step
    continuation: Continuation

    @property
    def cursor(self) -> int:
        return self.step.cursor

    @property
    def payload(self) -> dict[str, Any]:
        return {
            "step": adapter(Step).dump_python(self.step, mode="json"),
            **_describe_end(self.continuation),
        }


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SweptEvent:
    """The end of a continuation whose steps retention has deleted. It is not stored."""

    type: ClassVar[EventType] = "final"
    cursor: ClassVar[None] = None

    session_id: str
    continuation_id: str
    continuation: Continuation

    @property
    def payload(self) -> dict[str, Any]:
        return {"step": None, **_describe_end(self.continuation)}


Event = ProgressEvent | PartialEvent | StepEvent | FinalEvent | SweptEvent


def _describe_end(continuation: Continuation) -> dict[str, Any]:
    ended = adapter(Continuation).dump_python(continuation, mode="json")
    return {"final_response": ended["response"], "status": ended["status"], "error": ended["error"]}
