"""One turn: ask the model, run the tools it calls, until it answers.

The loop knows no store: it writes every step through `Journal`, and after a crash it is given the steps that
were written and goes on from the first that is missing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from sash.engine.budget import BudgetReached, TurnBudget
from sash.engine.grounding import claim, is_question
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import Progress
from sash.engine.turn.tool_calls import ToolCalls
from sash.ports.model import Answer
from sash.ports.tools import ToolRegistry
from sash.values.sessions import Budgets, Session
from sash.values.steps import ContinuationRequest, NewStep

NO_ANSWER = "The model has said nothing."
DAY_IS_OVER = (
    "Today's budget for the language model is used up (max_cost_per_day_usd). I still answer what I "
    "understand without it."
)


class Asked(NamedTuple):
    """An answer, and what it took to get it: None if no model was asked."""

    answer: Answer
    usage: dict[str, Any] | None


Ask = Callable[[], Awaitable[Asked]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of the loop ended: with an answer, or waiting for a person."""

    what: Literal["answered", "awaiting_approval"]
    answer: Answer = field(default_factory=Answer)
    usage: dict[str, Any] | None = None
    stopped_by: str | None = None


@dataclass(slots=True)
class Loop:
    """One turn's run."""

    session: Session
    request: ContinuationRequest
    progress: Progress
    tools: ToolRegistry
    ask: Ask
    purse: TurnBudget
    journal: Journal
    calls: ToolCalls

    async def run(self) -> Outcome:
        """Go on until there is an answer, a budget is reached, or a person has to be asked."""
        milliseconds = _least(self.request.time_budget_ms, self.session.budgets.max_duration_ms)
        budget = asyncio.timeout(milliseconds / 1000)
        try:
            async with budget:
                return await self._run()
        except TimeoutError:
            if not budget.expired():
                raise
            self.purse.lose()
            self.calls.cut_off()
            return self._stopped("max_duration_ms")

    async def _run(self) -> Outcome:
        while True:
            if self.progress.open_calls and not await self.calls.run():
                return Outcome("awaiting_approval")
            if reached := self._budget_reached():
                return self._stopped(reached)
            try:
                answer, usage = await self.ask()
            except BudgetReached as passed:
                return self._stopped(passed.budget)
            if not answer.tool_calls:
                if not answer.content.strip():
                    answer = replace(answer, content=NO_ANSWER)
                truth = self._truth(answer)
                if truth is None or self.progress.sent_back is not None:
                    self.progress.count(usage)
                    cut_off = "max_output_tokens" if answer.stop_reason == "length" else None
                    content = answer.content if truth is None else truth
                    return Outcome("answered", replace(answer, content=content), usage, cut_off)
                untrue = {"event": "sent_back", "content": answer.content, "usage": usage}
                self._write([NewStep("observed_event", untrue)])
                continue
            planned = _planned(answer, usage, self.progress.call_ids)
            self._write(planned)
            for step in planned[1:]:
                # The tool gets what the model said; the journal and the prompt have it without secrets.
                self.progress.open_calls[step.detail["call_id"]].arguments = step.detail["arguments"]

    def _budget_reached(self) -> str | None:
        budgets: Budgets = self.session.budgets
        if self.progress.plans >= _least(self.request.max_steps, budgets.max_steps):
            return "max_steps"
        if self.progress.tool_calls > budgets.max_tool_calls:
            return "max_tool_calls"
        if self.progress.total_tokens >= budgets.max_tokens_per_turn:
            return "max_tokens_per_turn"
        return None

    def _truth(self, answer: Answer) -> str | None:
        """Return what is true instead of an answer that claims an action although none was carried out.

        Where no tool can act, nobody takes such words for an action.
        """
        checked = self.session.policy.grounded_answers and self.tools.can_act and not answer.local
        if not checked or self.progress.acted or is_question(self.request.message):
            return None
        truth = claim(answer.content, looked=self.progress.tool_calls > 0)
        tried = [
            f"{action.name}: {'no effect seen' if action.verified is False else action.outcome}"
            for action in self.progress.actions
        ]
        return f"{truth} ({'; '.join(tried)})" if truth and tried else truth

    def _stopped(self, budget: str) -> Outcome:
        known = [m["content"] for m in self.progress.said if m["role"] == "assistant" and m["content"]]
        text = f"I stopped because this turn reached its budget ({budget})."
        if budget == "max_cost_per_day_usd":
            text = DAY_IS_OVER
        if known:
            text += f" What I know so far: {known[-1]}"
        return Outcome("answered", Answer(text), stopped_by=budget)

    def _write(self, steps: list[NewStep]) -> None:
        for step in self.journal.write(steps):
            self.progress.add(step)


def _least(asked: int | None, budget: int) -> int:
    """A request may ask for less than the session's budget, not for more."""
    return budget if asked is None else min(asked, budget)


def _planned(answer: Answer, usage: dict[str, Any] | None, used: frozenset[str]) -> list[NewStep]:
    """The model's answer is also the intent to call the tools: both are written at once.

    Some models give no ids, or the same ones again; within a turn they have to be unique.
    """
    taken, calls = set(used), []
    for call in answer.tool_calls:
        call_id, n = call["id"] or "call", 1
        while call_id in taken:
            n += 1
            call_id = f"{call['id'] or 'call'}-{n}"
        taken.add(call_id)
        function = call["function"]
        if not function["name"]:
            function = function | {"name": "unnamed"}
        calls.append(call | {"id": call_id, "function": function})
    plan = {"content": answer.content, "tool_calls": calls, "usage": usage}
    steps = [
        {"call_id": c["id"], "name": c["function"]["name"], "arguments": c["function"]["arguments"]}
        for c in calls
    ]
    return [NewStep("plan", plan), *(NewStep("tool_call", step) for step in steps)]
