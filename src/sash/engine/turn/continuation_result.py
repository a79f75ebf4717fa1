"""The state of a turn for its caller."""

from dataclasses import dataclass

from sash.engine.turn.progress import Progress
from sash.values.continuations import Continuation, ContinuationResponse
from sash.values.steps import ApprovalRequested, Step


@dataclass(frozen=True, slots=True)
class ContinuationResult:
    """The state of a continuation with its steps."""

    continuation: Continuation
    steps: tuple[Step, ...]

    @property
    def status(self) -> str:
        return self.continuation.status

    @property
    def response(self) -> ContinuationResponse | None:
        return self.continuation.response

    @property
    def waiting_calls(self) -> tuple[ApprovalRequested, ...]:
        """The tool calls that wait for an approval."""
        if self.status != "awaiting_approval":
            return ()
        calls = Progress.from_steps(self.continuation.request.message, self.steps).open_calls.values()
        return tuple(call.approval for call in calls if call.approval is not None and call.awaits_approval)
