"""Turns the events of a turn into deltas of Home Assistant's chat log."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from homeassistant.components.conversation import AssistantContentDeltaDict
from homeassistant.components.conversation.chat_log import ToolResultContentDeltaDict
from homeassistant.helpers import llm

from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.values.continuations import Continuation
from sash.values.events import Event, PartialEvent, StepEvent
from sash.values.steps import Plan, ToolResult

type Delta = AssistantContentDeltaDict | ToolResultContentDeltaDict


class AnswerStream:
    """The answer to one message, as it is written.

    After the last delta, `result` is the state of the turn. It is None if the early answer was given, and
    then the turn goes on.
    """

    def __init__(
        self,
        runtime: Runtime,
        turn: Continuation,
        *,
        early_wait_s: float | None,
        write_early_answer: Callable[[str], str],
        write_question: Callable[[ContinuationResult], str],
    ) -> None:
        """`write_early_answer` gets the status of the turn, `write_question` a turn that asks something."""
        self._runtime = runtime
        self._turn = turn
        self._early_wait_s = early_wait_s
        self._write_early_answer = write_early_answer
        self._write_question = write_question
        # A turn that waited for an approval has steps that an earlier stream has shown.
        self._started_at = turn.updated_at
        # What was said since the last tool call, and at all.
        self._message = ""
        self._has_spoken = False
        self.result: ContinuationResult | None = None

    async def read(self) -> AsyncGenerator[Delta]:
        """Yield the deltas. Text that grounding may still correct is held back until the turn ends."""
        yield {"role": "assistant"}
        loop = asyncio.get_running_loop()
        deadline = None if self._early_wait_s is None else loop.time() + self._early_wait_s
        async with aclosing(self._follow()) as deltas:
            while True:
                try:
                    async with asyncio.timeout_at(None if self._has_spoken else deadline):
                        delta = await anext(deltas, None)
                except TimeoutError:
                    turn = await self._read_state()
                    if not _is_settled(turn):
                        yield {"content": self._write_early_answer(turn.status)}
                        return
                    break
                if delta is None:
                    break
                yield delta
        turn = await self._read_state()
        self.result = turn
        if text := self._find_rest(turn):
            yield {"content": text}

    async def _follow(self) -> AsyncGenerator[Delta]:
        _, events = await self._runtime.open_turn_events(self._turn.id, owner=self._turn.owner)
        async with aclosing(events):
            async for event in events:
                for delta in self._show(event):
                    yield delta

    def _show(self, event: Event) -> list[Delta]:
        match event:
            case PartialEvent(text=text, is_provisional=False):
                self._message += text
                self._has_spoken = True
                return [{"content": text}]
            case StepEvent() if event.step.ts < self._started_at:
                return []
            case StepEvent() if isinstance(event.step.body, Plan):
                return [{"tool_calls": [_make_tool_input(call) for call in event.step.body.tool_calls]}]
            case StepEvent() if isinstance(event.step.body, ToolResult):
                self._message = ""
                return [_make_tool_result(event.step.body), {"role": "assistant"}]
        return []

    def _find_rest(self, turn: ContinuationResult) -> str:
        """Return the text that was not streamed: the held back answer, or a question for an approval."""
        if turn.waiting_calls:
            return self._write_question(turn)
        if turn.response is None:
            return ""
        return turn.response.final_message.removeprefix(self._message)

    async def _read_state(self) -> ContinuationResult:
        return await self._runtime.await_continuation(self._turn.id, owner=self._turn.owner, timeout_s=0)


def _is_settled(turn: ContinuationResult) -> bool:
    return turn.continuation.is_final or turn.status in ("awaiting_approval", "interrupted")


def _make_tool_input(call: dict[str, Any]) -> llm.ToolInput:
    """Return a call that Sash makes itself, so that Home Assistant shows it and does not make it again."""
    function = call["function"]
    return llm.ToolInput(function["name"], _parse_object(function["arguments"]), call["id"], external=True)


def _make_tool_result(step: ToolResult) -> Delta:
    return {
        "role": "tool_result",
        "tool_call_id": step.call_id,
        "tool_name": step.name,
        "result": llm.ToolResult(_parse_object(step.content)),
    }


def _parse_object(text: str) -> dict[str, Any]:
    """Return JSON text as an object. Other text is the only value of the object."""
    try:
        value = json.loads(text)
    except ValueError, RecursionError:
        value = text
    return value if isinstance(value, dict) else {"result": value}
