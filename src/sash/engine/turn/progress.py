"""The state of a turn, computed from its steps. A resumed turn reads its steps and continues from there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sash.ports.intents import LocalCallResult
from sash.ports.prompt import prepend_context
from sash.ports.tools import ActionOutcome
from sash.values.citations import TurnCitation
from sash.values.continuations import Action, ArtifactRef
from sash.values.stats import Bill, Stats, sum_bills
from sash.values.steps import (
    RESET_RESULT,
    RESET_TOOL,
    AnswerSentBack,
    ApprovalGiven,
    ApprovalRequested,
    HomeChanged,
    Interrupted,
    Plan,
    Recalled,
    Step,
    StepBody,
    ToolCall,
    ToolResult,
    WaitingTurnFired,
)

NOT_TRUE = (
    "(from Sash, not from the user) Your last answer says that something was done, but no tool has done "
    "anything in this turn. Call the tool if it should be done; otherwise answer again, and say what is true."
)


@dataclass(slots=True)
class OpenCall:
    """A tool call that has no result yet: number `n` of the turn.

    `is_suspect` is True if a process died while the call may have been running. `is_begun` is True if this
    process has started the call. `approval` is the request that a person has to answer. `observe` returns
    what is known about the call while it runs. `allowed_by` is the entry of the allowlist that allows it.
    """

    id: str
    name: str
    arguments: str
    n: int = 0
    is_begun: bool = False
    is_suspect: bool = False
    approval: ApprovalRequested | None = None
    is_approval_written: bool = False
    approved: bool | None = None
    cost_usd: float = 0.0
    planned_at: datetime | None = None
    observe: Callable[[], ActionOutcome] | None = None
    allowed_by: str | None = None

    @property
    def awaits_approval(self) -> bool:
        """Return True if a person was asked for an approval and has not answered."""
        return self.is_approval_written and self.approved is None


@dataclass(slots=True)
class Progress:
    """The sum of a turn's steps. `messages` are the turn's messages in the form that a model accepts.

    `home_changes` is text that stands before the user's message. `sent_back` is an answer that was not true:
    the model sees it with the reason, and the user does not. `reserved_usd` is the maximum cost of the model
    call that is running. `open_bill` is the bill of an answer that no step has yet. With `has_reset`, the end
    of the turn evicts all earlier turns. `fired` says what a waiting turn that became this turn may do.
    `language` is the one in which the message was understood without a model; None if that is not known.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    recalled: str | None = None
    recalled_turns: tuple[TurnCitation, ...] = ()
    home_changes: str = ""
    sent_back: str | None = None
    sent_back_index: int = 0
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    artifacts: list[ArtifactRef] = field(default_factory=list)
    plans: int = 0
    tool_calls: int = 0
    bills: list[Bill] = field(default_factory=list)
    total_tokens: int = 0
    tools_usd: float = 0.0
    reserved_usd: float = 0.0
    open_bill: Bill | None = None
    has_reset: bool = False
    fired: WaitingTurnFired | None = None
    language: str | None = None

    @classmethod
    def from_steps(cls, question: Any, steps: tuple[Step, ...]) -> "Progress":
        """Return the progress after these steps. `question` is the user's message as a model reads it."""
        progress = cls([{"role": "user", "content": question}])
        for step in steps:
            progress.apply(step.body, step.ts)
        return progress

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all tool calls of the turn."""
        return frozenset(call["id"] for message in self.messages for call in message.get("tool_calls", ()))

    @property
    def has_model_call(self) -> bool:
        return bool(self.bills)

    @property
    def has_acted(self) -> bool:
        """Return True if the turn changed something, or may have. Facts that were noted count as a change.

        An action whose effect was looked for and not seen does not count.
        """
        noted = any(m["role"] == "tool" and m["name"] in ("remember", "forget") for m in self.messages)
        return noted or any(
            action.outcome in ("done", "unknown") and action.verified is not False for action in self.actions
        )

    @property
    def cost_usd(self) -> float:
        return sum((bill.cost_usd or 0.0 for bill in self.bills), self.tools_usd)

    @property
    def claimed_usd(self) -> float:
        """The dollars that no other turn may spend: those of this turn, and of its calls under way."""
        answered = 0.0 if self.open_bill is None else self.open_bill.cost_usd or 0.0
        return self.cost_usd + self.reserved_usd + answered + self.open_calls_usd

    @property
    def open_calls_usd(self) -> float:
        """The dollars of the paid tool calls that have no result yet."""
        return sum(call.cost_usd for call in self.open_calls.values())

    def transcript(self) -> list[dict[str, Any]]:
        """Return the turn's messages. Tool results stand in the order of their calls."""
        if self.tool_calls < 2:
            return list(self.messages)
        ordered: list[dict[str, Any]] = []
        order: dict[str, int] = {}
        for message in self.messages:
            index = len(ordered)
            if message["role"] == "tool":
                rank = order[message["tool_call_id"]]
                while (
                    ordered[index - 1]["role"] == "tool" and order[ordered[index - 1]["tool_call_id"]] > rank
                ):
                    index -= 1
            for call in message.get("tool_calls", ()):
                order[call["id"]] = len(order)
            ordered.insert(index, message)
        return ordered

    def list_results(self) -> tuple[LocalCallResult, ...]:
        """Return the results of the turn's tool calls, with the arguments of the calls."""
        if not self.tool_calls:
            return ()
        messages = self.transcript()
        calls = {call["id"]: call["function"] for each in messages for call in each.get("tool_calls", ())}
        return tuple(
            LocalCallResult(each["name"], each["content"], calls[each["tool_call_id"]]["arguments"])
            for each in messages
            if each["role"] == "tool"
        )

    def prompt(self) -> list[dict[str, Any]]:
        """Return the turn's messages for the model. An answer that was sent back is among them."""
        messages = self.transcript()
        if self.sent_back is not None:
            answer = {"role": "assistant", "content": self.sent_back}
            index = self.sent_back_index
            messages[index:index] = [answer, {"role": "user", "content": NOT_TRUE}]
        return messages

    def add_bill(self, bill: Bill | None) -> None:
        """Add the bill of a model call. None, or a bill that was added before, changes nothing."""
        if bill is self.open_bill:
            self.open_bill = None
        if bill is not None and not any(bill is known for known in self.bills):
            self.bills.append(bill)
            self.total_tokens += bill.total_tokens

    def stats(self, **outcome: Any) -> Stats:
        """Return tokens, dollars and numbers of all model and tool calls. `outcome` sets more fields."""
        return sum_bills(self.bills, cost_usd=self.cost_usd, tool_calls=self.tool_calls, **outcome)

    def apply(  # noqa: C901 (one case for each kind of step)
        self, body: StepBody, planned_at: datetime | None = None
    ) -> None:
        """Apply one step. `planned_at` is when a stored tool call was planned."""
        match body:
            case Plan(content, tool_calls, bill, lost_bills):
                self.plans += 1
                for each in (*lost_bills, bill):
                    self.add_bill(each)
                self.messages.append(
                    {"role": "assistant", "content": content, "tool_calls": list(tool_calls)}
                )
            case ToolCall(call_id, name, arguments):
                self.tool_calls += 1
                call = OpenCall(call_id, name, arguments, self.tool_calls, planned_at=planned_at)
                self.open_calls[call_id] = call
            case ToolResult():
                self._apply_result(body)
            case Recalled(text=text, turns=turns):
                self.recalled, self.recalled_turns = text, turns
            case HomeChanged(text):
                question, self.home_changes = self.messages[0], text
                self.messages[0] = question | {"content": prepend_context(text, question["content"])}
            case Interrupted(lost_bills=bills, begun=begun):
                for bill in bills:
                    self.add_bill(bill)
                for call in self.open_calls.values():
                    if not call.awaits_approval:
                        call.is_suspect, call.approval = True, None
                for action in begun:
                    call = self.open_calls[action.call_id]
                    call.allowed_by = action.allowed_by
                    call.observe = partial(ActionOutcome, None, before=action.before, undoes=action.undoes)
            case AnswerSentBack(content, bill):
                self.add_bill(bill)
                self.sent_back, self.sent_back_index = content, len(self.messages)
            case ApprovalRequested(call_id):
                call = self.open_calls[call_id]
                call.approval, call.is_approval_written = body, True
            case ApprovalGiven(call_id, approved):
                self.open_calls[call_id].approved = approved
            case WaitingTurnFired():
                self.fired = body

    def list_under_way(self) -> list[str]:
        """Return the names of the tools whose calls have begun, or may have begun before a crash."""
        return [call.name for call in self.open_calls.values() if call.is_begun or call.is_suspect]

    def mark_begun(self) -> None:
        """Mark the open calls as begun, except those that wait for an approval or were denied."""
        for call in self.open_calls.values():
            call.is_begun = not call.awaits_approval and call.approved is not False

    def _apply_result(self, result: ToolResult) -> None:
        if self.open_calls.pop(result.call_id, None) is None:
            return  # Another process cancelled the turn just when the result was written.
        self.messages.append(
            {
                "role": "tool",
                "content": result.content,
                "tool_call_id": result.call_id,
                "name": result.name,
            }
        )
        self.tools_usd += result.cost_usd
        if result.action is not None:
            self.actions.append(result.action)
        self.artifacts += result.artifacts
        self.has_reset |= (result.name, result.content) == (RESET_TOOL, RESET_RESULT)
