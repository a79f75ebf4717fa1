"""One turn: ask the model, run the tools it calls, until it answers.

The loop knows no store: it writes every step through `Journal`, and after a crash it is given the steps that
were written and goes on from the first that is missing. It waits for the disk before and after a call that
must not be made twice: it is known before it is made, and its result before anything else. A call whose
result is in the journal is never repeated.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass, field, replace
from inspect import isawaitable
from typing import Any, Literal, NamedTuple

from sash.agent.claims import claim, is_question
from sash.agent.journal import Journal
from sash.agent.money import BudgetReached, Purse
from sash.agent.policy import Verdict, judge
from sash.agent.progress import Call, Progress
from sash.agent.redaction import MARK, redact, redact_result
from sash.errors import InvalidInput
from sash.models.base import Answer
from sash.sessions import Budgets, Session
from sash.steps import Action, ArtifactRef, ContinuationRequest, NewStep
from sash.tools import ToolContext, ToolRegistry, ToolSpec, as_text

OUTCOME_UNKNOWN = (
    "outcome unknown: the process died while this call was under way, and it is not safe to repeat it. "
    "Tell the user, and check the state before doing anything about it."
)


CUT_OFF = (
    "outcome unknown: the time budget of this turn ran out while this call was under way. Tell the user, and "
    "check the state before doing anything about it."
)
NOT_KNOWN_ANY_MORE = f"an argument reads {MARK}, because secrets are not kept: ask the user for it"

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
    continuation_id: str
    progress: Progress
    tools: ToolRegistry
    ask: Ask
    purse: Purse
    journal: Journal

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
            for call in tuple(self.progress.open_calls.values()):
                self._cut_off(call)
            return self._stopped("max_duration_ms")

    async def _run(self) -> Outcome:
        while True:
            if self.progress.open_calls and not await self._run_calls():
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
        tried = [f"{action.name}: {action.outcome}" for action in self.progress.actions]
        return f"{truth} ({'; '.join(tried)})" if truth and tried else truth

    def _stopped(self, budget: str) -> Outcome:
        known = [m["content"] for m in self.progress.said if m["role"] == "assistant" and m["content"]]
        text = f"I stopped because this turn reached its budget ({budget})."
        if budget == "max_cost_per_day_usd":
            text = DAY_IS_OVER
        if known:
            text += f" What I know so far: {known[-1]}"
        return Outcome("answered", Answer(text), stopped_by=budget)

    async def _run_calls(self) -> bool:
        """Run the open calls, all at once; False if some of them wait for a person's yes."""
        results = [self._run_call(call) for call in tuple(self.progress.open_calls.values())]
        if len(results) == 1:
            await results[0]
        else:
            await _all_at_once(results)
        if not self.progress.open_calls:
            return True
        unasked = [call for call in self.progress.open_calls.values() if not call.asked]
        asks = [
            NewStep("observed_event", {"event": "approval_requested", "call_id": c.id, "name": c.name})
            for c in unasked
        ]
        await self.journal.hand_back(asks, "awaiting_approval", self.progress.spent(turns=1))
        return False

    async def _run_call(self, call: Call) -> None:
        """Bring one call to its result, unless it has to wait for a yes."""
        spec = self.tools.specs.get(call.name)
        try:
            if spec is None:
                known = ", ".join(self.tools.specs) or "none"
                raise InvalidInput(f"there is no tool {call.name}; the tools are: {known}")
            arguments = self.tools.arguments(spec, call.arguments)
        except InvalidInput as error:
            self._result(call, OUTCOME_UNKNOWN if call.suspect else error.message)
            return
        verdict = self._judge(call, spec, arguments)
        if call.suspect and (verdict.what == "deny" or spec.safety == "unsafe"):
            self._result(call, OUTCOME_UNKNOWN, _action(spec, call, arguments, "unknown"))
        elif verdict.what == "deny":
            action = _action(spec, call, arguments, "denied")
            self._result(call, f"not done: {verdict.reason}", action)
        elif verdict.what == "allow" or call.approved:
            await self._invoke(call, spec, arguments)

    def _judge(self, call: Call, spec: ToolSpec, arguments: dict[str, Any]) -> Verdict:
        if not self.request.allow_tools:
            return Verdict("deny", "tools are off in this turn (allow_tools is false)")
        if call.approved is False:
            return Verdict("deny", "the user said no")
        if call.n > self.session.budgets.max_tool_calls:
            return Verdict("deny", "this turn has used up its tool calls (max_tool_calls)")
        if MARK in call.arguments:
            return Verdict("deny", NOT_KNOWN_ANY_MORE)
        if spec.cost and (budget := self.purse.can_pay(spec.cost)):
            return Verdict(
                "deny", f"it costs ${spec.cost:.2f}, which would pass this turn's money ({budget})"
            )
        call.cost_usd = spec.cost
        return judge(spec, arguments, self.session.policy)

    async def _invoke(self, call: Call, spec: ToolSpec, arguments: dict[str, Any]) -> None:
        context = ToolContext(
            self.session, self.continuation_id, call.id, self.journal.keep, self.journal.tell
        )
        only_once = _only_once(spec)
        if only_once:
            await self.journal.settle()
        self.journal.tell(f"Calling {spec.name}")
        await self._make(call, spec, arguments, context)
        if only_once:
            await self.journal.settle()

    async def _make(
        self,
        call: Call,
        spec: ToolSpec,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> None:
        """Make a call, or find out what became of it, and write its result."""
        result = None
        try:
            if call.suspect and spec.verify is not None:
                result = await guarded(spec.verify(arguments, context))
        except Exception:
            self._result(call, OUTCOME_UNKNOWN, _action(spec, call, arguments, "unknown"))
            return
        try:
            call.begun = True
            if result is None:
                result = await guarded(spec.invoke(arguments, context))
        except Exception as error:
            text, _ = await as_text(redact(f"failed: {type(error).__name__}: {error}"), context)
            self._result(call, text, _action(spec, call, arguments, "failed"))
            return
        self.tools.check_output(spec, result)
        text, artifact = await as_text(redact_result(result), context)
        self._result(call, text, _action(spec, call, arguments, "done"), artifact, spec.cost)

    def _cut_off(self, call: Call) -> None:
        """Answer a call that the time budget has cut off."""
        spec = self.tools.specs.get(call.name)
        if spec is None or not call.begun or not _only_once(spec):
            self._result(call, "stopped: the time budget of this turn is used up")
            return
        arguments = self.tools.arguments(spec, call.arguments)
        self._result(call, CUT_OFF, _action(spec, call, arguments, "unknown"))

    def _result(
        self,
        call: Call,
        content: str,
        action: Action | None = None,
        artifact: ArtifactRef | None = None,
        cost_usd: float = 0.0,
    ) -> None:
        detail: dict[str, Any] = {"call_id": call.id, "name": call.name, "content": content}
        if cost_usd:
            detail["cost_usd"] = cost_usd
        if action is not None:
            detail["action"] = asdict(action)
        if artifact is not None:
            detail["artifact"] = asdict(artifact)
        self._write([NewStep("tool_result", detail)])

    def _write(self, steps: list[NewStep]) -> None:
        for step in self.journal.write(steps):
            self.progress.add(step)


def _least(asked: int | None, budget: int) -> int:
    """A request may ask for less than the session's budget, not for more."""
    return budget if asked is None else min(asked, budget)


def _only_once(spec: ToolSpec) -> bool:
    """Whether a call of this tool must not be made twice."""
    return spec.action or spec.safety != "idempotent"


async def guarded(call: Any) -> Any:
    """Wait for what is not ours. If it ends like a task that was cancelled, and nobody did, it has failed."""
    try:
        return await call if isawaitable(call) else call
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise RuntimeError(f"ended by {type(error).__name__}") from error


async def _all_at_once(results: list[Coroutine[Any, Any, None]]) -> None:
    """Run them all; if one fails the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for result in results:
                group.create_task(result)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


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


def _action(
    spec: ToolSpec,
    call: Call,
    arguments: dict[str, Any],
    outcome: Literal["done", "failed", "denied", "unknown"],
) -> Action | None:
    if not spec.action:
        return None
    return Action(call.id, call.name, json.loads(json.dumps(arguments, default=str)), outcome)
