"""Waiting for a turn while reporting its progress to the client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing

from sash.app.access import Caller
from sash.app.approval_question import write_question
from sash.app.service import AgentService
from sash.engine.turn.activities import describe_activity, describe_end
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import SashError
from sash.values.events import Event, FinalEvent, PartialEvent, ProgressEvent, StepEvent
from sash.values.steps import (
    AnswerSentBack,
    ApprovalRequested,
    Interrupted,
    Recalled,
    Step,
    StepBody,
    ToolCall,
    ToolResult,
)

MAX_MESSAGE_CHARS = 120
WRITING = "The agent is writing its answer"

Report = Callable[[str], Awaitable[None]]


async def wait_for_turn(
    service: AgentService,
    caller: Caller,
    continuation_id: str,
    *,
    timeout_s: float,
    report: Report | None = None,
    with_text: bool = False,
) -> ContinuationResult:
    """Return a turn when it ends or needs a person, or after `timeout_s`. `report` gets progress messages.

    With `with_text` they include the text of the answer, as the model writes it.
    """
    if report is None:
        return await service.await_continuation(caller, continuation_id, timeout_s=timeout_s)
    reporter = _ProgressReporter(report, with_text)
    _, events = await service.turn_events(caller, continuation_id)
    following = asyncio.create_task(reporter.follow(events))
    try:
        turn = await service.await_continuation(caller, continuation_id, timeout_s=timeout_s)
        await reporter.stop()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await reporter.report_steps(turn.steps)
    return turn


class _ProgressReporter:
    """Reports the progress messages and the steps of a turn, each in its order and once.

    A step may have the same sentence as a progress message that follows it.
    """

    def __init__(self, report: Report, with_text: bool) -> None:
        self._report = report
        self._with_text = with_text
        self._cursor = 0
        self._of_steps: list[str] = []
        self._has_text = False
        self._is_reporting = asyncio.Lock()

    async def follow(self, events: AsyncIterator[Event]) -> None:
        """Report events as they happen, until cancelled."""
        try:
            async with aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    async with self._is_reporting:
                        await self._report_event(event)
        except SashError:
            pass  # The call that waits for the turn gets the same error.

    async def stop(self) -> None:
        """Wait until the current report is sent, and report no more events."""
        await self._is_reporting.acquire()

    async def report_steps(self, steps: Iterable[Step]) -> None:
        """Report the steps that were not reported as events."""
        for step in steps:
            await self._report_step(step)

    async def _report_event(self, event: Event) -> None:
        match event:
            case ProgressEvent(message=message):
                if message in self._of_steps:
                    self._of_steps.remove(message)
                else:
                    await self._send(message)
            case PartialEvent(text=text):
                if self._with_text:
                    await self._report(text)
                elif not self._has_text:
                    self._has_text = True
                    await self._send(WRITING)
            case StepEvent(step=step) | FinalEvent(step=step):
                await self._report_step(step)

    async def _report_step(self, step: Step) -> None:
        if step.cursor > self._cursor:
            self._cursor = step.cursor
            if message := describe_step(step.body):
                self._of_steps.append(message)
                await self._send(message)

    async def _send(self, message: str) -> None:
        await self._report(message[:MAX_MESSAGE_CHARS])


def describe_step(body: StepBody) -> str:
    """Return a sentence about a step, or an empty text if the user need not know."""
    match body:
        case ToolCall(name=name):
            return describe_activity(name)
        case ToolResult(name=name):
            return describe_end(name)
        case Recalled():
            return "Recalled earlier messages"
        case ApprovalRequested():
            return f"The turn needs an approval: {write_question([body])}"
        case Interrupted():
            return "The turn was interrupted"
        case AnswerSentBack():
            return "The agent is checking its answer again"
    return ""
