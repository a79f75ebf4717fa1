"""How far a turn has come: a fold over its steps. Resuming is reading the steps and going on."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sash.ports.prompt import prepend_context
from sash.values.stats import Stats
from sash.values.steps import Action, ArtifactRef, NewStep, Step

NOT_TRUE = (
    "(from Sash, not from the user) Your last answer says that something was done, but no tool has done "
    "anything in this turn. Call the tool if it should be done; otherwise answer again, and say what is true."
)


@dataclass(slots=True)
class Call:
    """A tool call of the last plan: number `n` of the turn.

    `suspect`: its process died when it may have been under way. `begun`: this process has begun to make it.
    `asks` is what a person is told who has to say yes to it.
    """

    id: str
    name: str
    arguments: str
    n: int = 0
    begun: bool = False
    asked: bool = False
    approved: bool | None = None
    suspect: bool = False
    cost_usd: float = 0.0
    planned_at: datetime | None = None
    asks: dict[str, Any] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether a person has been asked and has not answered."""
        return self.asked and self.approved is None


@dataclass(slots=True)
class Progress:
    """What the steps of a turn add up to. `said` has its messages as a model takes them.

    `told` stands with the user's message for as long as that is shown. `sent_back` is an answer that was not
    true: the model sees it with the reason, and nobody else does.
    `reserved_usd` is what a call under way may cost at most.
    """

    said: list[dict[str, Any]] = field(default_factory=list)
    recalled: str | None = None
    told: str = ""
    sent_back: str | None = None
    sent_back_at: int = 0
    open_calls: dict[str, Call] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    artifacts: list[ArtifactRef] = field(default_factory=list)
    plans: int = 0
    tool_calls: int = 0
    usages: list[dict[str, Any]] = field(default_factory=list)
    total_tokens: int = 0
    tools_usd: float = 0.0
    reserved_usd: float = 0.0

    @classmethod
    def of(cls, asked: Any, steps: tuple[Step, ...]) -> "Progress":
        """Begin with what was asked, as a model is shown it, and take the steps into account."""
        progress = cls([{"role": "user", "content": asked}])
        for step in steps:
            progress.add(step)
        return progress

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all calls of the turn."""
        return frozenset(call["id"] for message in self.said for call in message.get("tool_calls", ()))

    def transcript(self) -> list[dict[str, Any]]:
        """Return the turn's messages, the results in the order of the calls, however they came in."""
        ordered: list[dict[str, Any]] = []
        order: dict[str, int] = {}
        for message in self.said:
            at = len(ordered)
            if message["role"] == "tool":
                place = order[message["tool_call_id"]]
                while ordered[at - 1]["role"] == "tool" and order[ordered[at - 1]["tool_call_id"]] > place:
                    at -= 1
            for call in message.get("tool_calls", ()):
                order[call["id"]] = len(order)
            ordered.insert(at, message)
        return ordered

    def prompt(self) -> list[dict[str, Any]]:
        """Return what a model is shown of the turn: its messages, and the answer that was sent back."""
        said = self.transcript()
        if self.sent_back is not None:
            answer = {"role": "assistant", "content": self.sent_back}
            said[self.sent_back_at : self.sent_back_at] = [answer, {"role": "user", "content": NOT_TRUE}]
        return said

    @property
    def acted(self) -> bool:
        """Whether something was done in this turn, or may have been; to note something is to do something.

        What was tried, and is seen not to have worked, was not done.
        """
        noted = any(m["role"] == "tool" and m["name"] in ("remember", "forget") for m in self.said)
        return noted or any(
            action.outcome in ("done", "unknown") and action.verified is not False for action in self.actions
        )

    def add(self, step: Step | NewStep) -> None:
        """Take one more step into account."""
        detail = step.detail
        match step.type:
            case "plan":
                self._plan(detail)
            case "tool_call":
                self.tool_calls += 1
                call = Call(detail["call_id"], detail["name"], detail["arguments"], self.tool_calls)
                call.planned_at = step.ts if isinstance(step, Step) else None
                self.open_calls[call.id] = call
            case "tool_result":
                self._result(detail)
            case "retrieval":
                self.recalled = detail["text"]
            case "observed_event":
                self._event(detail)

    def _plan(self, detail: dict[str, Any]) -> None:
        self.plans += 1
        self.count(detail.get("usage"))
        self.said.append(
            {"role": "assistant", "content": detail["content"], "tool_calls": detail["tool_calls"]}
        )

    def count(self, usage: dict[str, Any] | None) -> None:
        """Add what a model call cost; nothing, if no model was asked."""
        if usage is not None:
            self.usages.append(usage)
            self.total_tokens += usage["input_tokens"] + usage["output_tokens"]

    @property
    def asked_a_model(self) -> bool:
        return bool(self.usages)

    @property
    def cost_usd(self) -> float:
        return sum((usage["cost_usd"] or 0.0 for usage in self.usages), self.tools_usd)

    def spent(self, **outcome: Any) -> Stats:
        """Return what the calls of models and tools add up to, with what else is known of the turn."""
        return billed(self.usages, cost_usd=self.cost_usd, tool_calls=self.tool_calls, **outcome)

    def _result(self, detail: dict[str, Any]) -> None:
        del self.open_calls[detail["call_id"]]
        self.said.append(
            {
                "role": "tool",
                "content": detail["content"],
                "tool_call_id": detail["call_id"],
                "name": detail["name"],
            }
        )
        if cost := detail.get("cost_usd"):
            self.tools_usd += cost
        if action := detail.get("action"):
            self.actions.append(Action(**action))
        self.artifacts += [ArtifactRef(**artifact) for artifact in detail.get("artifacts", ())]

    def _event(self, detail: dict[str, Any]) -> None:
        match detail.get("event"):
            case "told":
                asked, self.told = self.said[0], detail["text"]
                self.said[0] = asked | {"content": prepend_context(self.told, asked["content"])}
            case "interrupted":
                for bill in detail.get("lost", ()):
                    self.count(bill)
                for call in self.open_calls.values():
                    call.suspect = call.suspect or not call.waits
            case "sent_back":
                self.count(detail.get("usage"))
                self.sent_back, self.sent_back_at = detail["content"], len(self.said)
            case "approval_requested":
                call = self.open_calls[detail["call_id"]]
                call.asked = True
                call.asks = {key: detail[key] for key in ("reason", "would") if key in detail}
            case "approval":
                call = self.open_calls[detail["call_id"]]
                call.approved, call.suspect = detail["approved"], False


def billed(bills: list[dict[str, Any]], **outcome: Any) -> Stats:
    """Return what bills of calls add up to, with what else is known."""
    reported = [bill for bill in bills if not bill["estimated"]]
    total: dict[str, Any] = {
        "model_calls": len(bills),
        "input_tokens": _sum(bills, "input_tokens"),
        "cached_tokens": _sum(bills, "cached_tokens"),
        "output_tokens": _sum(bills, "output_tokens"),
        "reasoning_tokens": _sum(bills, "reasoning_tokens"),
        "counted_tokens": _sum(reported, "counted_tokens"),
        "reported_tokens": _sum(reported, "input_tokens"),
        "cost_usd": sum([bill["cost_usd"] or 0.0 for bill in bills]),
        "unpriced_calls": sum([bill["cost_usd"] is None for bill in bills]),
    }
    return Stats(**total | outcome)


def _sum(bills: list[dict[str, Any]], name: str) -> int:
    return sum([bill[name] for bill in bills])
