"""One turn's execution: the loop between the ports, and the end that it leaves in the store."""

import logging
import traceback
from datetime import datetime
from typing import Any

from sash.engine.redaction import redact
from sash.engine.turn.asking import Asking
from sash.engine.turn.closing import close_turn, settle
from sash.engine.turn.engine import Engine
from sash.engine.turn.journal import Journal
from sash.engine.turn.loop import Loop, Outcome
from sash.engine.turn.progress import Progress
from sash.engine.turn.tool_calls import ToolCalls
from sash.engine.window_cache import CachedWindow
from sash.errors import ContentFiltered, ContextTooLong, LeaseLost, ModelError, SashError
from sash.ports.store import INTERRUPTED_STEPS, Turn, TurnEnd, after_turn, ended
from sash.values.stats import Stats, bucket
from sash.values.steps import Continuation, ContinuationError, ContinuationResponse, NewStep

LOCAL_TAG = frozenset({"local_intent"})

_logger = logging.getLogger(__name__)


class TurnRunner:
    """Runs one turn to its end. `unwritten` is an end that the store could not take.

    `next_waits` says that another one of the session may be waiting for its turn.
    """

    _known: CachedWindow

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self._engine = engine
        self._turn = turn
        self._started_at = engine.clock.now()
        asked = turn.continuation
        self.progress = Progress.of(engine.asked(asked.request.content, asked.created_at), turn.steps)
        self.journal = Journal(engine.store, turn, engine.hub, engine.new_id)
        self._asking = Asking(engine, turn, self.progress, self.journal)
        self.unwritten: TurnEnd | None = None
        self.ended: Continuation | None = None
        self.next_waits = False

    async def run(self) -> None:
        """Run the turn; whatever happens is in the store afterwards, unless the store cannot be written."""
        turn, engine = self._turn, self._engine
        session, request, purse = turn.session, turn.continuation.request, self._asking.purse
        calls = ToolCalls(
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
                # What this process knew when it took the turn may be forgotten since.
                known = engine.windows.take(turn, engine.render) or await engine.read_window(session)
                self._known = self._asking.known = known
                outcome = await loop.run()
                if outcome.what == "answered":
                    await self._complete(outcome)
                else:
                    engine.windows.remember(session, self._known)
            except SashError as error:
                if self.unwritten is not None and not error.data.get("refused"):
                    raise
                await self._give_up(error)
            except Exception as error:
                trace = redact("".join(traceback.format_exception(error)))
                _logger.error("turn %s failed: %s", turn.continuation.id, trace)
                await self._fail("internal_error", f"{type(error).__name__}: {error}")
        except LeaseLost:
            self.unwritten, self.next_waits = None, True
            _logger.info("turn %s was taken over or ended elsewhere", turn.continuation.id)
        except SashError as error:
            _logger.error("turn %s could not be written: %s", turn.continuation.id, error)
        finally:
            engine.money.running.pop(turn.continuation.id, None)
            await self.journal.stop()

    def cancelled(self) -> Stats:
        """Return what the turn has taken if it is cancelled now, with the call that is under way."""
        return self._stats(cancelled_turns=1) + self._asking.purse.lost()

    async def put_down(self) -> None:
        """Leave a turn that was stopped in the journal as interrupted, or with the end it had come to."""
        if self.ended is not None:
            return
        try:
            if self.unwritten is not None:
                await self.journal.finish(self.unwritten)
            else:
                await self.journal.hand_back(list(INTERRUPTED_STEPS), "interrupted", self._stats())
        except LeaseLost:
            return  # it is over, or waits for a yes, or somebody has cancelled it
        except SashError as error:
            _logger.error("turn %s could not be marked: %s", self._turn.continuation.id, error)

    async def _complete(self, outcome: Outcome) -> None:
        """End the turn with its messages, and what they push out of the window."""
        engine, turn, progress = self._engine, self._turn, self.progress
        text = redact(outcome.answer.content)
        said = [*progress.transcript(), {"role": "assistant", "content": text}]
        tag = LOCAL_TAG if outcome.answer.local else frozenset()
        closing = close_turn(engine, turn.session, self._known, turn.continuation, said, tag)
        detail = {
            "status": "completed",
            "final_message": text,
            "stopped_by": outcome.stopped_by,
            "usage": outcome.usage,
        }
        end = TurnEnd(
            "completed",
            (NewStep("summary", detail),),
            ContinuationResponse(
                text,
                reasoning_summary=redact(outcome.answer.reasoning) or None,
                actions=tuple(progress.actions),
                stopped_by=outcome.stopped_by,
            ),
            artifacts=tuple(progress.artifacts),
            messages=closing.messages,
            cut=closing.cut,
            stats=self._stats(local_turns=int(not progress.asked_a_model)),
        )
        at = await self._finish(end)
        if progress.told and self._known.told:
            self._known.told.changed_tokens += engine.counter.count_text(progress.told)
        settle(engine, after_turn(turn.session, end, at), self._known, closing)

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
        end = TurnEnd(
            "failed",
            (NewStep("error", {"status": "failed", "code": code, "message": clean}),),
            error=ContinuationError(code, clean),
            stats=self._stats(failed_turns=1, errors={code: 1}),
        )
        await self.journal.stop()
        await self._finish(end)

    async def _finish(self, end: TurnEnd) -> datetime:
        """Write the end of the turn; one that the store cannot take now is written later, as it is."""
        self.unwritten = await self.journal.whole(end)
        finished = await self.journal.finish(self.unwritten)
        self.unwritten = None
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
