"""One turn's execution: the loop between the ports, and the end that it leaves in the store."""

import logging
import traceback
from collections import deque
from datetime import datetime
from typing import Any

from sash.agent.asking import Asking
from sash.agent.calls import Calls
from sash.agent.engine import Engine
from sash.agent.journal import Journal
from sash.agent.loop import Loop, Outcome
from sash.agent.progress import Progress
from sash.agent.redaction import redact
from sash.agent.windows import KnownWindow
from sash.digest import DIGEST_TOKENS, digest
from sash.errors import ContentFiltered, ContextTooLong, LeaseLost, ModelError, SashError
from sash.state import MessageEntry, built_in_tags, turns
from sash.stats import Stats, bucket
from sash.steps import Continuation, ContinuationError, ContinuationResponse, NewStep
from sash.store import Cut, Evicted, Finish, Turn, after_turn, ended
from sash.window import Eviction, Window

LOCAL_TAG = frozenset({"local_intent"})

_logger = logging.getLogger(__name__)


class Execution:
    """Runs one turn to its end. `unwritten` is an end that the store could not take."""

    _known: KnownWindow

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self._engine = engine
        self._turn = turn
        self._started_at = engine.clock.now()
        asked = turn.continuation
        self.progress = Progress.of(engine.asked(asked.request.content, asked.created_at), turn.steps)
        self.journal = Journal(engine.store, turn, engine.hub, engine.new_id)
        self._asking = Asking(engine, turn, self.progress, self.journal)
        self.unwritten: Finish | None = None
        self.ended: Continuation | None = None
        self.next_waits = False

    async def run(self) -> None:
        """Run the turn; whatever happens is in the store afterwards, unless the store cannot be written."""
        turn, engine = self._turn, self._engine
        session, request, purse = turn.session, turn.continuation.request, self._asking.purse
        calls = Calls(
            session,
            request,
            turn.continuation.id,
            self.progress,
            engine.tools,
            purse,
            self.journal,
            engine.pace,
        )
        loop = Loop(session, request, self.progress, engine.tools, self._asking, purse, self.journal, calls)
        engine.money.running[turn.continuation.id] = (turn.continuation.owner, self.progress)
        try:
            try:
                self._known = self._asking.known = (
                    engine.windows.take(turn, engine.render) or await self._read_window()
                )
                outcome = await loop.run()
                if outcome.what == "answered":
                    await self._complete(outcome)
                else:
                    engine.windows.remember(session, self._known)
            except SashError as error:
                await self._give_up(error)
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
            engine.money.running.pop(turn.continuation.id, None)
            await self.journal.stop()

    def cancelled(self) -> Stats:
        """Return what the turn has taken if it is cancelled now, with the call that is under way."""
        return self._stats(cancelled_turns=1) + self._asking.purse.lost()

    async def _read_window(self) -> KnownWindow:
        """Read the window that this process knew when it took the turn, and has forgotten since."""
        session = self._turn.session
        window = await self._engine.store.window(session.owner, session.id)
        return KnownWindow(Window.restore(window), self._engine.render)

    async def _complete(self, outcome: Outcome) -> None:
        """End the turn with its messages, what they push out of the window, and what is left of that."""
        progress, text = self.progress, redact(outcome.answer.content)
        said = [*progress.transcript(), {"role": "assistant", "content": text}]
        tag = LOCAL_TAG if outcome.answer.local else frozenset()
        messages = tuple(self._entry(message, tag) for message in said)
        evicted = [
            gone
            for message, rendered in zip(messages, said, strict=True)
            for gone in self._known.add(message, rendered)
        ]
        detail = {
            "status": "completed",
            "final_message": text,
            "stopped_by": outcome.stopped_by,
            "usage": outcome.usage,
        }
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
            stats=self._stats(local_turns=int(not progress.asked_a_model)),
        )
        at = await self._finish(end)
        if progress.told and self._known.told:
            self._known.told.changed_tokens += self._engine.counter.count_text(progress.told)
        session = after_turn(self._turn.session, end, at)
        self._engine.windows.remember(session, self._known)
        if evicted:
            self._known.tell_anew()
            self._engine.after_cut(session, [gone.message for gone in evicted])

    async def _give_up(self, error: SashError) -> None:
        """End a turn with an error; one that has made calls can go on when its model answers again."""
        later = isinstance(error, ModelError) and not isinstance(error, ContentFiltered | ContextTooLong)
        if not later or not self.progress.tool_calls or self.progress.open_calls:
            await self._fail(error.code, error.message)
            return
        message = redact(error.message)
        _logger.warning("turn %s is interrupted: %s", self._turn.continuation.id, message)
        event: dict[str, Any] = {"event": "interrupted", "code": error.code, "message": message}
        if lost := self._asking.purse.written_off:
            event["lost"] = lost
        step = NewStep("observed_event", event)
        await self.journal.hand_back([step], "interrupted", self._stats(errors={error.code: 1}))
        self.next_waits = True

    async def _fail(self, code: str, message: str) -> None:
        """End the turn with an error; the window stays as it was."""
        clean = redact(message)
        end = Finish(
            "failed",
            (NewStep("error", {"status": "failed", "code": code, "message": clean}),),
            error=ContinuationError(code, clean),
            stats=self._stats(failed_turns=1, errors={code: 1}),
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

    def _stats(self, **outcome: Any) -> Stats:
        """Return what the turn has taken so far, and how it came out."""
        progress, time = self.progress, self._engine.clock.now() - self._started_at
        milliseconds = time.total_seconds() * 1000
        return progress.spent(
            turns=1,
            steps=progress.plans + 1,
            duration_ms=round(milliseconds),
            durations={bucket(milliseconds): 1},
            **outcome,
        )

    def _entry(self, said: dict[str, Any], tag: frozenset[str]) -> MessageEntry:
        """Return a message of a finished turn as the transcript keeps it, counted without what Sash told."""
        engine, now, turn = self._engine, self._engine.clock.now(), self._turn.continuation
        role, calls, name = said["role"], said.get("tool_calls", ()), said.get("name")
        shown = engine.asked(turn.request.content, turn.created_at) if role == "user" else said["content"]
        return MessageEntry(
            role,
            turn.request.content if role == "user" else said["content"],
            timestamp=turn.created_at if role == "user" else now,
            token_count=engine.counter.count_message(shown, calls, name),
            tags=built_in_tags(role, bool(calls)) | tag if tag else built_in_tags(role, bool(calls)),
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
        """Add lines for what was evicted to the session's digest.

        When it is full the older half goes: to drop a few lines each time would move the head of the prompt
        more than the cut does.
        """
        count_text = self._engine.counter.count_text
        new = digest(turns(evicted), count_text)
        lines = deque((*self._turn.session.memory.digest.splitlines(), *new.splitlines()))
        total = sum(count_text(line) + 1 for line in lines)
        if total > DIGEST_TOKENS:
            while total > DIGEST_TOKENS / 2 and len(lines) > 1:
                total -= count_text(lines.popleft()) + 1
        return "\n".join(lines)
