"""The tool calls of one turn: checked against the policy, made at most once, each ended with a result.

A call that must not run twice is on the disk before it starts, and its result is on the disk before anything
else happens. A call whose result is in the journal is never repeated.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

from sash.engine.budget import TurnBudget
from sash.engine.ceiling import LimitsInForce
from sash.engine.foreign_code import run_foreign
from sash.engine.nested_turns import calling
from sash.engine.parts import Parts
from sash.engine.policy import Verdict, find_entry, judge
from sash.engine.redaction import MARK, redact
from sash.engine.turn.activities import describe_activity
from sash.engine.turn.caller import find_place
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import OpenCall, Progress
from sash.engine.turn_tools import TurnTools
from sash.errors import HomeUnavailable, InvalidInput, OutcomeUnknown, SashError
from sash.ports.tools import (
    DENIED_BY_USER,
    HELD_BACK,
    RATE_LIMIT,
    ActionOutcome,
    ServiceUse,
    ToolContext,
    ToolRegistry,
    ToolSpec,
    as_text,
)
from sash.ports.turns import Turn
from sash.values.continuations import Action, ArtifactRef, Outcome
from sash.values.steps import ApprovalRequested, ToolResult

OUTCOME_UNKNOWN = (
    "outcome unknown: the process died while this call was under way, and it is not safe to repeat it. "
    "Tell the user, and check the state before doing anything about it."
)
TIME_USED_UP = (
    "outcome unknown: the time budget of this turn ran out while this call was under way. Tell the user, and "
    "check the state before doing anything about it."
)
CUT_OFF = "outcome unknown: the turn was stopped while this call was under way."
CUT_OFF_DONE = "done: the turn was stopped while this call was under way, and the house shows its effect."
SECRET_LOST = f"an argument reads {MARK}, because secrets are not kept: ask the user for it"

_logger = logging.getLogger(__name__)


class ToolCalls:
    """Runs the open tool calls of one turn."""

    def __init__(
        self,
        parts: Parts,
        turn: Turn,
        turn_tools: TurnTools,
        limits: LimitsInForce,
        progress: Progress,
        journal: Journal,
        budget: TurnBudget,
    ) -> None:
        self._parts = parts
        self._turn_tools = turn_tools
        self._rate_limiter = parts.rate_limiter
        self._operator = parts.operator.policy
        self._limits = limits
        self._session = turn.session
        self._continuation = turn.continuation
        self._progress = progress
        self._journal = journal
        self._budget = budget

    @property
    def _tools(self) -> ToolRegistry:
        return self._turn_tools.registry

    async def run(self) -> bool:
        """Run the open calls; return False if some of them wait for an approval.

        Calls that read run in parallel. Actions run one after the other, in the order of the plan.
        """
        calls = tuple(self._progress.open_calls.values())
        if len(calls) == 1:
            await self._run_call(calls[0])
        else:
            actions = [call for call in calls if self._is_action(call)]
            reads = [self._run_call(call) for call in calls if call not in actions]
            actions = await self._hold_back(actions)
            await _run_parallel([*reads, self._run_in_order(actions)])
        unanswered = self._progress.open_calls.values()
        if not unanswered:
            return True
        requests = [c.approval for c in unanswered if c.approval and not c.is_approval_written]
        await self._journal.hand_back(requests, "awaiting_approval", self._progress.stats(turns=1))
        return False

    def stop(self) -> None:
        """Write results for the calls that are still open when the time budget is used up."""
        self.cut_off(TIME_USED_UP)
        for call in tuple(self._progress.open_calls.values()):
            self._write_result(call, "stopped: the time budget of this turn is used up")

    def cut_off(self, text: str = CUT_OFF) -> None:
        """Write results for the calls under way that must not run twice. Their outcome may be unknown."""
        self._journal.write(*list_cut_off(self._tools, self._progress, text))

    def list_begun_actions(self) -> tuple[Action, ...]:
        """Return the actions under way whose states before are known."""
        results = list_cut_off(self._tools, self._progress)
        return tuple(result.action for result in results if result.action and result.action.before)

    def _is_action(self, call: OpenCall) -> bool:
        spec = self._tools.specs.get(call.name)
        return spec is not None and spec.action

    async def _hold_back(self, calls: list[OpenCall]) -> list[OpenCall]:
        """Return the actions to run: if the policy denies a part of a sentence, only that part, to refuse it.

        So several commands are all done, or none. A model plans its calls one by one, and reads each result.
        """
        if len(calls) < 2 or self._progress.has_model_call or self._progress.actions:
            return calls
        denied = [call for call in calls if await self._is_denied(call)]
        if not denied:
            return calls
        for call in calls:
            if call not in denied:
                spec = self._tools.specs[call.name]
                action = _make_action(spec, call, json.loads(call.arguments), "denied", ActionOutcome(None))
                self._write_result(call, f"not done: {HELD_BACK}", action)
        return denied

    async def _is_denied(self, call: OpenCall) -> bool:
        """Return True if the policy denies an action, whatever the user says."""
        spec = self._tools.specs[call.name]
        context = self._make_context(call, [])
        try:
            arguments = self._tools.arguments(spec, call.arguments)
            uses = tuple(await run_foreign(spec.uses(arguments, context))) if spec.uses else ()
        except Exception:
            return False  # The call itself reports the problem.
        return judge(uses or (ServiceUse(spec.name),), self._session.policy, self._operator).what == "deny"

    async def _run_in_order(self, calls: list[OpenCall]) -> None:
        for call in calls:
            await self._run_call(call)
            if call.id in self._progress.open_calls:
                return  # This call waits for an approval, and so do the calls after it.

    async def _run_call(self, call: OpenCall) -> None:
        """End one call with a result, or prepare its approval request."""
        spec = self._tools.specs.get(call.name)
        if spec is not None and spec.is_local and self._progress.has_model_call:
            spec = None  # Intents plan their calls before the first model call.
        try:
            if spec is None:
                known = ", ".join(s.name for s in self._tools.specs.values() if not s.is_local) or "none"
                raise InvalidInput(f"there is no tool {call.name}; the tools are: {known}")
            arguments = self._tools.arguments(spec, call.arguments)
        except InvalidInput as error:
            if call.is_suspect:
                self._write_unknown(call, spec)
            else:
                self._write_result(call, error.message)
            return
        artifacts: list[ArtifactRef] = []
        checked = _CheckedCall(call, spec, arguments, self._make_context(call, artifacts), artifacts)
        verdict = await self._judge(checked)
        if call.is_suspect and (verdict.what not in ("allow", "confirm") or spec.safety == "unsafe"):
            self._write_unknown(call, spec, arguments)
        elif verdict.what in ("deny", "fail"):
            self._refuse(checked, verdict)
        elif verdict.what == "preview":
            await self._preview(checked)
        elif verdict.what == "allow" or call.approved:
            await self._invoke(checked)
        elif not await self._answer_already_so(checked):
            await self._request_approval(checked, verdict.reason)

    def _refuse(self, checked: "_CheckedCall", verdict: Verdict) -> None:
        """End a call that was not made, because it is denied or its services could not be found out."""
        call, spec = checked.call, checked.spec
        if verdict.what == "fail":
            self._write_result(call, f"failed: {verdict.reason}", checked.action("failed"))
            return
        if spec.action:
            # A person who says no is nothing to look into. What the policy denies may be a wrong setting.
            level = logging.INFO if call.approved is False else logging.WARNING
            _logger.log(level, "session %s: %s was not done: %s", self._session.id, spec.name, verdict.reason)
        self._write_result(call, f"not done: {verdict.reason}", checked.action("denied"))

    def _write_unknown(
        self, call: OpenCall, spec: ToolSpec | None, arguments: dict[str, Any] | None = None
    ) -> None:
        """End a call that may have been made before a crash, with the states that were seen before it."""
        action = _make_action(spec, call, arguments or {}, "unknown", _observe(call)) if spec else None
        self._write_result(call, OUTCOME_UNKNOWN, action, cost_usd=call.cost_usd)

    async def _answer_already_so(self, checked: "_CheckedCall") -> bool:
        """End a call that would change nothing, and return True. Nothing is done, so it is no action."""
        already_so = checked.spec.already_so
        if already_so is None or checked.call.is_suspect:
            return False
        try:
            result = await run_foreign(already_so(checked.arguments, checked.context))
        except Exception as error:
            reason = redact(_describe(error))
            _logger.warning("it is unknown whether %s would change anything: %s", checked.spec.name, reason)
            return False
        if result is None:
            return False
        text = await as_text(await self._clean_result(result), checked.context)
        self._write_result(checked.call, text)
        return True

    async def _request_approval(self, checked: "_CheckedCall", reason: str) -> None:
        """Prepare the approval request of a call. If its effect cannot be described, the call fails."""
        call = checked.call
        try:
            would = await self._describe_effect(checked)
        except Exception as error:
            text = redact(
                f"failed: no approval was requested, because the preview failed: {_describe(error)}"
            )
            if call.is_suspect:
                _logger.warning("session %s: %s %s", self._session.id, call.name, text)
                self._write_unknown(call, checked.spec, checked.arguments)
            else:
                self._write_result(call, text, checked.action("failed"))
        else:
            _, language = self._find_place()
            call.approval = ApprovalRequested(
                call.id, call.name, reason, would, language or self._find_home_language()
            )

    def _find_place(self) -> tuple[str | None, str | None]:
        """Return the area of the user, and the given language, or else the one that was understood."""
        area, language = find_place(self._session, self._continuation.request)
        return area, language or self._progress.language

    def _find_home_language(self) -> str | None:
        """Return the language of the home, or None while it is not connected."""
        with suppress(HomeUnavailable):
            return self._parts.home.index.language if self._parts.home is not None else None
        return None

    async def _is_as_approved(self, checked: "_CheckedCall") -> bool:
        """Return True if the effect of the call is still the approved effect.

        After a crash an older approval is not compared: the call may have changed the home already. If the
        preview fails, the effect is unknown, so it is not the approved one.
        """
        approval = checked.call.approval
        if approval is None:
            return True
        try:
            return bool(approval.would == await self._describe_effect(checked))
        except Exception as error:
            _logger.warning("the preview of %s failed: %s", checked.spec.name, redact(_describe(error)))
            return False

    def _make_context(self, call: OpenCall, artifacts: list[ArtifactRef]) -> ToolContext:
        async def keep(data: bytes, media_type: str, name: str) -> ArtifactRef:
            artifacts.append(await self._journal.keep(data, media_type, name))
            return artifacts[-1]

        def on_cut_off(observe: Callable[[], ActionOutcome]) -> None:
            call.observe = observe

        area, language = self._find_place()
        return ToolContext(
            self._session,
            self._continuation.id,
            call.id,
            keep,
            self._journal.report_progress,
            self._journal.past_actions,
            call.planned_at if call.is_suspect else None,
            on_cut_off,
            self._continuation.request.caller,
            area,
            language,
        )

    async def _judge(self, checked: "_CheckedCall") -> Verdict:
        """Decide whether a call may run, according to the request, the budgets and the policy."""
        call, spec = checked.call, checked.spec
        if not self._continuation.request.allow_tools:
            return Verdict("deny", "tools are off in this turn (allow_tools is false)")
        if call.approved is False:
            return Verdict("deny", DENIED_BY_USER)
        if call.n > self._limits.budgets.max_tool_calls:
            return Verdict("deny", "this turn has used up its tool calls (max_tool_calls)")
        if MARK in call.arguments:
            return Verdict("deny", SECRET_LOST)
        if spec.cost and (budget := await self._budget.find_exceeded(spec.cost)):
            return Verdict(
                "deny", f"it costs ${spec.cost:.2f}, which is more than the budget allows ({budget})"
            )
        call.cost_usd = spec.cost
        return await self._judge_action(checked) if spec.action else Verdict("allow")

    async def _judge_action(self, checked: "_CheckedCall") -> Verdict:
        call, spec = checked.call, checked.spec
        uses: Iterable[ServiceUse] = ()
        try:
            if spec.uses:
                uses = tuple(await run_foreign(spec.uses(checked.arguments, checked.context)))
        except Exception as error:
            return Verdict("fail", redact(_describe(error)))
        uses = uses or (ServiceUse(spec.name),)
        verdict = judge(uses, self._session.policy, self._operator)
        runs = verdict.what == "allow" or (verdict.what == "confirm" and call.approved)
        limit = self._limits.policy.max_actions_per_minute
        if runs and not await self._is_as_approved(checked):
            return Verdict(
                "deny",
                "the house has changed since the approval, so the effect would be another one: ask again",
            )
        if runs and not call.is_suspect and not self._rate_limiter.take(self._session.owner, limit):
            return Verdict(
                "deny",
                f"there were {limit} actions within the last minute, and no more are "
                f"allowed ({RATE_LIMIT}): wait, and ask the user whether this is really wanted",
            )
        if runs:
            call.allowed_by = find_entry(uses, self._session.policy)
        return verdict

    async def _invoke(self, checked: "_CheckedCall") -> None:
        """Run a call.

        A call that must not run twice is on the disk before it starts, and its result is on the disk when
        this returns.
        """
        runs_once = _runs_once(checked.spec)
        if runs_once:
            await self._journal.flush()
            if checked.call.planned_at is not None:
                # The call was on the disk before. A cancel may have come between the claim and this moment.
                await self._journal.check_lease()
        self._journal.report_progress(describe_activity(checked.spec.name))
        await self._make(checked)
        if runs_once:
            await self._journal.flush()

    async def _make(self, checked: "_CheckedCall") -> None:
        call, spec, context, result = checked.call, checked.spec, checked.context, None
        try:
            if call.is_suspect and spec.verify is not None:
                result = await run_foreign(spec.verify(checked.arguments, context))
        except Exception as error:
            reason = redact(_describe(error))
            _logger.warning("it is unknown whether %s was done before a crash: %s", spec.name, reason)
            self._write_unknown(call, spec, checked.arguments)
            return
        try:
            call.is_begun = True
            if result is None:
                with calling(self._session.id):
                    result = await run_foreign(spec.invoke(checked.arguments, context))
        except Exception as error:
            text = await as_text(redact(f"failed: {_describe(error)}"), context)
            is_unknown = isinstance(error, OutcomeUnknown)
            action = checked.action("unknown", _observe(call)) if is_unknown else checked.action("failed")
            cost_usd = spec.cost if is_unknown else 0.0
            self._write_result(call, text, action, checked.artifacts, cost_usd)
            return
        outcome_of = result if isinstance(result, ActionOutcome) else ActionOutcome(result)
        if call.is_suspect and not outcome_of.before:
            outcome_of = replace(outcome_of, before=_observe(call).before)
        self._tools.check_output(spec, outcome_of.result)
        text = await as_text(await self._clean_result(outcome_of.result), context)
        self._write_result(call, text, checked.action("done", outcome_of), checked.artifacts, spec.cost)

    async def _preview(self, checked: "_CheckedCall") -> None:
        """End a call of a dry run with a description of its effect."""
        try:
            would = await self._describe_effect(checked)
        except Exception as error:
            would = redact(_describe(error))
        shown = {"dry_run": True, "note": "nothing was done: the session is in a dry run", "would": would}
        text = await as_text(await self._clean_result(shown), checked.context)
        self._write_result(checked.call, text, checked.action("dry_run"))

    async def _describe_effect(self, checked: "_CheckedCall") -> Any:
        """Return the effect of a call as JSON values. Raise the error of the tool's preview."""
        preview = checked.spec.preview
        return await self._clean_result(
            await run_foreign(preview(checked.arguments, checked.context)) if preview else checked.arguments
        )

    async def _clean_result(self, result: Any) -> Any:
        return await self._parts.clean_result(self._session.owner, result)

    def _write_result(
        self,
        call: OpenCall,
        content: str,
        action: Action | None = None,
        artifacts: list[ArtifactRef] | None = None,
        cost_usd: float = 0.0,
    ) -> None:
        self._journal.write(ToolResult(call.id, call.name, content, cost_usd, action, tuple(artifacts or ())))


@dataclass(frozen=True, slots=True)
class _CheckedCall:
    """A call with a known tool and valid arguments. `artifacts` collects the artifacts that it creates."""

    call: OpenCall
    spec: ToolSpec
    arguments: dict[str, Any]
    context: ToolContext
    artifacts: list[ArtifactRef] = field(default_factory=list)

    def action(self, outcome: Outcome, result: ActionOutcome | None = None) -> Action | None:
        """Return the action for the turn's response, or None if the tool only reads."""
        return _make_action(self.spec, self.call, self.arguments, outcome, result or ActionOutcome(None))


def list_cut_off(tools: ToolRegistry, progress: Progress, text: str = CUT_OFF) -> list[ToolResult]:
    """Return results for the calls under way that are paid or must not run twice, when their turn is stopped.

    A call that a crash cut off counts as under way. The outcome is unknown, and `text` says so, unless the
    tool can observe the effect. A paid call that this process has started is paid for.
    """
    results = []
    for call in progress.open_calls.values():
        spec = tools.specs.get(call.name)
        is_listed = spec is not None and (_runs_once(spec) or (call.is_begun and call.cost_usd > 0))
        if spec is not None and is_listed and (call.is_begun or call.is_suspect):
            known = _observe(call)
            try:
                arguments = tools.arguments(spec, call.arguments)
            except InvalidInput:
                arguments = {}
            outcome: Outcome = "done" if known.verified else "unknown"
            action = _make_action(spec, call, arguments, outcome, known)
            content = CUT_OFF_DONE if known.verified else text
            cost_usd = call.cost_usd if call.is_begun else 0.0
            results.append(ToolResult(call.id, call.name, content, cost_usd, action))
    return results


def _make_action(
    spec: ToolSpec, call: OpenCall, arguments: dict[str, Any], outcome: Outcome, known: ActionOutcome
) -> Action | None:
    """Return the action for the turn's response, or None if the tool only reads."""
    if not spec.action:
        return None
    arguments, before, after = _copy_as_json([arguments, known.before, known.after])
    return Action(
        call.id,
        call.name,
        arguments,
        outcome,
        known.verified,
        before,
        after,
        known.undoes,
        call.allowed_by,
        call.approved,
    )


def _observe(call: OpenCall) -> ActionOutcome:
    """Return what is known about a call that was cut off."""
    try:
        return call.observe() if call.observe is not None else ActionOutcome(None)
    except Exception as error:
        _logger.warning("the effect of %s could not be observed: %s", call.name, redact(_describe(error)))
        return ActionOutcome(None)


def _copy_as_json(value: Any) -> Any:
    """Return a copy with JSON values only. The tool may change its own values later."""
    return json.loads(json.dumps(value, default=_as_json))


def _as_json(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _runs_once(spec: ToolSpec) -> bool:
    """Return True if a call of this tool must not run twice."""
    return spec.action or spec.safety != "idempotent"


def _describe(error: Exception) -> str:
    return error.message if isinstance(error, SashError) else f"{type(error).__name__}: {error}"


async def _run_parallel(calls: list[Coroutine[Any, Any, None]]) -> None:
    """Run calls in parallel; if one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
