"""The tool calls of one turn: judged by the policy, made at most once, and each brought to a result.

It waits for the disk before and after a call that must not be made twice: it is known before it is made, and
its result before anything else. A call whose result is in the journal is never repeated.
"""

import asyncio
import json
import logging
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field
from inspect import isawaitable
from typing import Any, Literal

from sash.engine.budget import TurnBudget
from sash.engine.policy import ActionRateLimiter, Verdict, judge
from sash.engine.redaction import MARK, redact, redact_result
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import Call, Progress
from sash.errors import InvalidInput, OutcomeUnknown, SashError
from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext, ToolRegistry, ToolSpec, as_text
from sash.values.sessions import Session
from sash.values.steps import Action, ArtifactRef, ContinuationRequest, NewStep

OUTCOME_UNKNOWN = (
    "outcome unknown: the process died while this call was under way, and it is not safe to repeat it. "
    "Tell the user, and check the state before doing anything about it."
)
CUT_OFF = (
    "outcome unknown: the time budget of this turn ran out while this call was under way. Tell the user, and "
    "check the state before doing anything about it."
)
NOT_KNOWN_ANY_MORE = f"an argument reads {MARK}, because secrets are not kept: ask the user for it"

Outcome = Literal["done", "failed", "denied", "unknown", "dry_run"]

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ToolCalls:
    """The calls of one turn's plans."""

    session: Session
    request: ContinuationRequest
    continuation_id: str
    progress: Progress
    tools: ToolRegistry
    purse: TurnBudget
    journal: Journal
    pace: ActionRateLimiter

    async def run(self) -> bool:
        """Run the open calls, False if some of them wait for a person's yes.

        All at once, but for actions: those are made one after the other, as they were asked for.
        """
        calls = tuple(self.progress.open_calls.values())
        if len(calls) == 1:
            await self._run_call(calls[0])
        else:
            acting = [call for call in calls if self._is_action(call)]
            reading = [self._run_call(call) for call in calls if call not in acting]
            await _all_at_once([*reading, self._run_in_order(acting)])
        if not self.progress.open_calls:
            return True
        asks = [
            NewStep(
                "observed_event", {"event": "approval_requested", "call_id": c.id, "name": c.name} | c.asks
            )
            for c in self.progress.open_calls.values()
            if c.asks and not c.asked
        ]
        await self.journal.hand_back(asks, "awaiting_approval", self.progress.spent(turns=1))
        return False

    def _is_action(self, call: Call) -> bool:
        spec = self.tools.specs.get(call.name)
        return spec is not None and spec.action

    async def _run_in_order(self, calls: list[Call]) -> None:
        for call in calls:
            await self._run_call(call)
            if call.id in self.progress.open_calls:
                return  # it waits for a yes, and what was to come after it waits, too

    def cut_off(self) -> None:
        """Answer the calls that the time budget has cut off."""
        for call in tuple(self.progress.open_calls.values()):
            spec = self.tools.specs.get(call.name)
            if spec is None or not call.begun or not _only_once(spec):
                self._result(call, "stopped: the time budget of this turn is used up")
                continue
            ready = _Ready(call, spec, self.tools.arguments(spec, call.arguments), self._context(call, []))
            self._result(call, CUT_OFF, ready.action("unknown"))

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
        kept: list[ArtifactRef] = []
        ready = _Ready(call, spec, arguments, self._context(call, kept), kept)
        verdict = await self._judge(ready)
        if call.suspect and (verdict.what in ("deny", "fail") or spec.safety == "unsafe"):
            self._result(call, OUTCOME_UNKNOWN, ready.action("unknown"))
        elif verdict.what == "fail":
            self._result(call, f"failed: {verdict.reason}", ready.action("failed"))
        elif verdict.what == "deny":
            if spec.action:
                _logger.warning("session %s: %s was not done: %s", self.session.id, spec.name, verdict.reason)
            self._result(call, f"not done: {verdict.reason}", ready.action("denied"))
        elif verdict.what == "preview":
            await self._preview(ready)
        elif call.approved and not await self._is_what_was_approved(ready):
            reason = "it would not be what was said yes to any more, because the house has changed: ask again"
            self._result(call, f"not done: {reason}", ready.action("denied"))
        elif verdict.what == "allow" or call.approved:
            await self._invoke(ready)
        else:
            call.asks = {"reason": verdict.reason, "would": await self._would(ready)}

    async def _is_what_was_approved(self, ready: "_Ready") -> bool:
        """Whether a call would still do what a person has said yes to; one under way may have done it."""
        return ready.call.suspect or ready.call.asks.get("would") == await self._would(ready)

    def _context(self, call: Call, kept: list[ArtifactRef]) -> ToolContext:
        async def keep(data: bytes, kind: str, name: str) -> ArtifactRef:
            kept.append(await self.journal.keep(data, kind, name))
            return kept[-1]

        return ToolContext(
            self.session,
            self.continuation_id,
            call.id,
            keep,
            self.journal.tell,
            self.journal.past_actions,
            call.planned_at if call.suspect else None,
        )

    async def _judge(self, ready: "_Ready") -> Verdict:
        call, spec = ready.call, ready.spec
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
        if not spec.action:
            return Verdict("allow")
        policy = self.session.policy
        try:
            uses = (
                await guarded(spec.uses(ready.arguments, ready.context))
                if spec.uses
                else (ServiceUse(spec.name),)
            )
        except Exception as error:
            return Verdict("fail", redact(_said(error)))
        verdict = judge(uses, policy)
        makes_it = verdict.what == "allow" or (verdict.what == "confirm" and call.approved)
        if makes_it and not call.suspect and not self.pace.take(self.session.owner, policy):
            return Verdict(
                "deny",
                f"there were {policy.max_actions_per_minute} actions within the last minute, and no more are "
                "allowed (max_actions_per_minute): wait, and ask the user whether this is really wanted",
            )
        return verdict

    async def _invoke(self, ready: "_Ready") -> None:
        """Make a call, or find out what became of it; the disk knows of it first, if it matters."""
        only_once = _only_once(ready.spec)
        if only_once:
            await self.journal.settle()
        self.journal.tell(f"Calling {ready.spec.name}")
        await self._make(ready)
        if only_once:
            await self.journal.settle()

    async def _make(self, ready: "_Ready") -> None:
        call, spec, context, result = ready.call, ready.spec, ready.context, None
        try:
            if call.suspect and spec.verify is not None:
                result = await guarded(spec.verify(ready.arguments, context))
        except Exception:
            self._result(call, OUTCOME_UNKNOWN, ready.action("unknown"))
            return
        try:
            call.begun = True
            if result is None:
                result = await guarded(spec.invoke(ready.arguments, context))
        except Exception as error:
            text = await as_text(redact(f"failed: {_said(error)}"), context)
            outcome: Outcome = "unknown" if isinstance(error, OutcomeUnknown) else "failed"
            self._result(call, text, ready.action(outcome), ready.kept)
            return
        acted = result if isinstance(result, ActionOutcome) else ActionOutcome(result)
        self.tools.check_output(spec, acted.result)
        text = await as_text(redact_result(acted.result), context)
        self._result(call, text, ready.action("done", acted), ready.kept, spec.cost)

    async def _preview(self, ready: "_Ready") -> None:
        """Say what a call would do, and do nothing."""
        would = await self._would(ready)
        shown = {"dry_run": True, "note": "nothing was done: the session is in a dry run", "would": would}
        text = await as_text(redact_result(shown), ready.context)
        self._result(ready.call, text, ready.action("dry_run"))

    async def _would(self, ready: "_Ready") -> Any:
        """Return what a call would do, for who has to say yes to it."""
        preview = ready.spec.preview
        try:
            return redact_result(
                await guarded(preview(ready.arguments, ready.context)) if preview else ready.arguments
            )
        except Exception as error:
            return redact(_said(error))

    def _result(
        self,
        call: Call,
        content: str,
        action: Action | None = None,
        artifacts: list[ArtifactRef] | None = None,
        cost_usd: float = 0.0,
    ) -> None:
        detail: dict[str, Any] = {"call_id": call.id, "name": call.name, "content": content}
        if cost_usd:
            detail["cost_usd"] = cost_usd
        if action is not None:
            detail["action"] = asdict(action)
        if artifacts:
            detail["artifacts"] = [asdict(artifact) for artifact in artifacts]
        for step in self.journal.write([NewStep("tool_result", detail)]):
            self.progress.add(step)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call whose tool is known and whose arguments are right; `kept` are the artifacts that it leaves."""

    call: Call
    spec: ToolSpec
    arguments: dict[str, Any]
    context: ToolContext
    kept: list[ArtifactRef] = field(default_factory=list)

    def action(self, outcome: Outcome, acted: ActionOutcome | None = None) -> Action | None:
        """Return what is to be told of it, if it changes something."""
        if not self.spec.action:
            return None
        call, acted = self.call, acted or ActionOutcome(None)
        plain = json.loads(json.dumps(self.arguments, default=str))
        return Action(
            call.id, call.name, plain, outcome, acted.verified, acted.before, acted.after, acted.undoes
        )


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


def _only_once(spec: ToolSpec) -> bool:
    """Whether a call of this tool must not be made twice."""
    return spec.action or spec.safety != "idempotent"


def _said(error: Exception) -> str:
    return error.message if isinstance(error, SashError) else f"{type(error).__name__}: {error}"


async def _all_at_once(results: list[Coroutine[Any, Any, None]]) -> None:
    """Run them all; if one fails the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for result in results:
                group.create_task(result)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
