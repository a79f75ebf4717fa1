"""One turn's execution: the loop between the ports, and the end that it leaves in the store."""

import logging
import traceback
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sash.agent.context import build, prompt
from sash.agent.journal import Journal
from sash.agent.loop import Loop, Outcome, guarded
from sash.agent.progress import Progress
from sash.agent.redaction import redact
from sash.agent.windows import KnownWindow, KnownWindows
from sash.clock import Clock
from sash.digest import DIGEST_TOKENS, digest
from sash.errors import LeaseLost, SashError
from sash.events import Hub
from sash.ids import Ulids
from sash.models.base import Answer, Model, ModelRequest, collect
from sash.sessions import SessionStats
from sash.state import MessageEntry, built_in_tags, turns
from sash.steps import Continuation, ContinuationError, ContinuationResponse, NewStep
from sash.store import Cut, Evicted, Finish, Store, Turn, after_turn, ended
from sash.tokens import TokenCounter
from sash.tools import ToolRegistry
from sash.window import Eviction, Window

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Engine:
    """What all executions of a runtime share."""

    store: Store
    model: Model
    tools: ToolRegistry
    hub: Hub
    clock: Clock
    counter: TokenCounter
    ulids: Ulids
    windows: KnownWindows

    def new_id(self) -> str:
        return self.ulids.new(self.clock.now())


class Execution:
    """Runs one turn to its end. `unwritten` is an end that the store could not take."""

    _known: KnownWindow

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self._engine = engine
        self._turn = turn
        self.journal = Journal(engine.store, turn, engine.hub, engine.new_id)
        self._head: list[dict[str, Any]] = []
        self.unwritten: Finish | None = None
        self.ended: Continuation | None = None
        self.next_waits = False

    async def run(self) -> None:
        """Run the turn; whatever happens is in the store afterwards, unless the store cannot be written."""
        turn = self._turn
        loop = Loop(
            turn.session,
            turn.continuation.request,
            turn.continuation.id,
            turn.steps,
            self._engine.tools,
            self._ask,
            self.journal,
        )
        try:
            try:
                self._known = self._engine.windows.take(turn) or await self._read_window()
                outcome = await loop.run()
                if outcome.what == "answered":
                    await self._complete(outcome)
            except SashError as error:
                await self._fail(error.code, error.message)
            except Exception as error:
                trace = redact("".join(traceback.format_exception(error)))
                _logger.error("turn %s failed: %s", turn.continuation.id, trace)
                await self._fail("internal_error", f"{type(error).__name__}: {error}")
        except LeaseLost:
            self.unwritten = None
            _logger.info("turn %s was taken over or ended elsewhere", turn.continuation.id)
        except SashError as error:
            _logger.error("turn %s could not be written: %s", turn.continuation.id, error)
        finally:
            await self.journal.stop()

    async def _read_window(self) -> KnownWindow:
        """Read the window that this process knew when it took the turn, and has forgotten since."""
        session = self._turn.session
        return KnownWindow(Window.restore(await self._engine.store.window(session.owner, session.id)))

    async def _ask(self, progress: Progress, allow_tools: bool) -> Answer:
        engine, session, continuation = self._engine, self._turn.session, self._turn.continuation
        await self.journal.check()
        if not self._head:
            window = tuple(self._known.rendered.values())
            self._head = prompt(build(session.memory, window, continuation.request.planner_hints))
        request = ModelRequest(
            [*self._head, *progress.transcript()],
            engine.tools.schemas if allow_tools else [],
            session.model,
        )

        def on_text(text: str) -> None:
            engine.hub.write(session.id, continuation.id, progress.model_calls, text)

        try:
            answer: Answer = await guarded(collect(engine.model.stream(request), on_text))
            return answer
        finally:
            engine.hub.written(session.id, continuation.id)

    async def _complete(self, outcome: Outcome) -> None:
        """End the turn with its messages, what they push out of the window, and what is left of that."""
        progress, text = outcome.progress, redact(outcome.answer.content)
        said = [*progress.transcript(), {"role": "assistant", "content": text}]
        messages = tuple(map(self._entry, said))
        evicted = [
            gone
            for message, rendered in zip(messages, said, strict=True)
            for gone in self._known.add(message, rendered)
        ]
        detail = {"status": "completed", "final_message": text, "stopped_by": outcome.stopped_by}
        end = Finish(
            "completed",
            (NewStep("summary", detail),),
            ContinuationResponse(
                text,
                reasoning_summary=redact(outcome.answer.reasoning) or None,
                actions=tuple(progress.actions),
                stopped_by=outcome.stopped_by,
            ),
            artifacts=tuple(progress.artifacts),
            messages=messages,
            cut=self._cut(evicted) if evicted else None,
            stats=SessionStats(
                turns=1,
                steps=progress.model_calls + 1,
                tool_calls=progress.tool_calls,
                input_tokens=progress.input_tokens,
                output_tokens=progress.output_tokens,
            ),
        )
        at = await self._finish(end)
        self._engine.windows.remember(after_turn(self._turn.session, end, at), self._known)

    async def _fail(self, code: str, message: str) -> None:
        """End the turn with an error; the window stays as it was."""
        clean = redact(message)
        end = Finish(
            "failed",
            (NewStep("error", {"status": "failed", "code": code, "message": clean}),),
            error=ContinuationError(code, clean),
            stats=SessionStats(turns=1, failed_turns=1),
        )
        await self.journal.stop()
        self.unwritten = end
        await self._finish(end)
        self.unwritten = None

    async def _finish(self, end: Finish) -> datetime:
        finished = await self.journal.finish(end)
        at = finished.steps[-1].ts
        self.ended = ended(self._turn.continuation, end, at)
        self.next_waits = finished.next_waits
        return at

    def _entry(self, said: dict[str, Any]) -> MessageEntry:
        """Return a message of a finished turn as the transcript keeps it."""
        engine, now = self._engine, self._engine.clock.now()
        role, calls, name = said["role"], said.get("tool_calls", ()), said.get("name")
        return MessageEntry(
            role,
            said["content"],
            timestamp=now,
            token_count=engine.counter.count_message(said["content"], calls, name),
            tags=built_in_tags(role, bool(calls)),
            id=engine.ulids.new(now),
            tool_calls=tuple(calls),
            tool_call_id=said.get("tool_call_id"),
            name=name,
        )

    def _cut(self, evictions: list[Eviction]) -> Cut:
        gone = tuple(Evicted(eviction.message.id, eviction.reason) for eviction in evictions)
        digest = self._digest([eviction.message for eviction in evictions])
        return Cut(gone, tuple(self._known.window.turn_starts()), digest)

    def _digest(self, evicted: list[MessageEntry]) -> str:
        """Add lines for what was evicted to the session's digest; the oldest lines go."""
        count_text = self._engine.counter.count_text
        new = digest(turns(evicted), count_text)
        lines = deque((*self._turn.session.memory.digest.splitlines(), *new.splitlines()))
        total = sum(count_text(line) + 1 for line in lines)
        while total > DIGEST_TOKENS:
            total -= count_text(lines.popleft()) + 1
        return "\n".join(lines)
