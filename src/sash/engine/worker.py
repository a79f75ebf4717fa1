"""The turns that this process works on: begun or taken over, run, cancelled, waited for, and kept alive.

A turn runs as a task of its own, never inside the call that started it: a caller who goes away cancels
nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from sash.engine.parts import Parts
from sash.engine.redaction import redact
from sash.engine.turn.progress import Progress
from sash.engine.turn.recorder import Recorder
from sash.engine.turn.runner import TurnRunner
from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    LeaseLost,
    ModelKeyRefused,
    ModelUnknown,
    SashError,
    SessionBusy,
    SessionNotFound,
    ShuttingDown,
    StoreUnavailable,
    WriteRefused,
)
from sash.ports.store import BegunTurn, ClaimRequest, Turn, TurnEnd
from sash.values.continuations import FINAL, HOLDING, Continuation, ContinuationResponse
from sash.values.stats import Stats
from sash.values.steps import Interrupted, Step, StepBody

BusyPolicy = Literal["reject", "enqueue", "interrupt"]

STOP_WAIT_S = 5.0
MAX_RESUMES = 10
HOPELESS = frozenset({ModelKeyRefused.code, ModelUnknown.code})
SETTLED = FINAL | {"interrupted", "awaiting_approval"}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContinuationResult:
    """Where a continuation stands: what `await_continuation` returns."""

    continuation: Continuation
    steps: tuple[Step, ...]

    @property
    def status(self) -> str:
        return self.continuation.status

    @property
    def response(self) -> ContinuationResponse | None:
        return self.continuation.response


@dataclass(slots=True)
class _Running:
    """A turn under way in this process; `ended` says how it came out, or None if only the store knows."""

    runner: TurnRunner
    turn: Turn
    task: asyncio.Task[None] | None
    ended: asyncio.Future[ContinuationResult | None]


class Worker:
    """Works on turns, under leases that it renews."""

    def __init__(
        self, parts: Parts, lease_s: float, on_turn: Callable[[ContinuationResult], None] | None = None
    ) -> None:
        self._parts = parts
        self._on_turn = on_turn
        self._store = parts.store
        self._hub = parts.hub
        self._lease_s = lease_s
        self._id = parts.new_id()
        self._running: dict[str, _Running] = {}
        self._unwritten: dict[str, tuple[Turn, TurnEnd]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._beginning: set[asyncio.Future[None]] = set()
        self._recorder = Recorder(parts)
        self.open()

    def open(self) -> None:
        """Be ready for turns."""
        self._draining = self.closing = self.closed = False

    async def close(self, grace_s: float = 0.0) -> None:
        """Begin no more turns, and stop those that take longer than `grace_s`.

        They are left in the journal as interrupted, for the next process to go on with.
        """
        if self.closing:
            return
        self._draining = True
        if self._tasks and grace_s:
            await asyncio.wait(self._tasks, timeout=grace_s)
        self.closing = True
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=STOP_WAIT_S)
        under_way = tuple(self._running.values())
        await _stop(self._tasks)
        for running in under_way:
            await running.runner.interrupt()
        for continuation_id in tuple(self._unwritten):
            with suppress(SashError):
                await self._write_end(continuation_id)
        self.closed = True

    async def begin(self, new: Continuation, busy: BusyPolicy) -> Continuation:
        """Begin a turn and run it; it is safe in the store when this returns."""
        self.check_open()
        accepted: asyncio.Future[Continuation] = asyncio.get_running_loop().create_future()
        begun = self._spawn(self._begin_and_run(new, busy, accepted))
        begun.add_done_callback(partial(_give_up, accepted))
        return await accepted

    async def take_over(self, continuation: Continuation, steps: tuple[StepBody, ...] = ()) -> Continuation:
        """Go on with a continuation that waits."""
        if continuation.id in self._running and not steps:
            return continuation
        self.check_open()
        claim = self._claim_request(continuation.session_id)
        turn = await self._store.claim(continuation.owner, continuation.id, claim, steps=steps)
        self._hub.wake(turn.session.id)
        await self.run(turn)
        return turn.continuation

    async def record(self, new: Continuation, answer: str | None) -> Continuation:
        """Add a turn that somebody else has answered, or will."""
        self.check_open()
        while True:
            try:
                recorded, steps = await self._recorder.record(new, answer)
            except SessionBusy as error:
                if error.continuation_id not in self._unwritten:
                    raise
                await self._write_end(error.continuation_id)
                continue
            if recorded.id == new.id:
                self._tell(ContinuationResult(recorded, steps))
            return recorded

    async def amend(self, owner: str, continuation_id: str, answer: str) -> Continuation:
        """Give a turn its answer, or another one."""
        return await self._recorder.amend(owner, continuation_id, answer)

    async def stop(self, owner: str, session_id: str | None = None) -> None:
        """Stop the turns of an owner, all or those of one session."""
        turns = [r for r in self._running.values() if r.turn.continuation.owner == owner]
        await _stop({r.task for r in turns if session_id in (None, r.turn.session.id)})

    async def recover(self) -> list[Continuation]:
        """Mark what a dead process left behind as interrupted; serve queues, and resume what is to be."""
        await self.heartbeat()
        lost = await self._store.interrupt_lost()
        for continuation in await self._store.waiting():
            with suppress(SessionBusy, ContinuationFinal, ContinuationNotFound, SessionNotFound):
                if continuation.status == "pending":
                    await self.serve_next(continuation.session_id)
                    continue
                session = await self._store.get_session(continuation.owner, continuation.session_id)
                if session.policy.resume_interrupted and await self._may_get_better(continuation):
                    await self.take_over(continuation)
        return lost

    async def _may_get_better(self, continuation: Continuation) -> bool:
        """Whether to resume a turn: not for ever, and not if only a person can mend what is wrong."""
        _, steps = await self._store.journal(continuation.owner, continuation.id)
        codes = [s.body.code for s in steps if isinstance(s.body, Interrupted) and s.body.code]
        return not codes or (codes[-1] not in HOPELESS and len(codes) < MAX_RESUMES)

    async def _begin_and_run(
        self, new: Continuation, busy: BusyPolicy, accepted: asyncio.Future[Continuation]
    ) -> None:
        """Begin a turn in the task that runs it, so that a caller who goes away stops neither."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._beginning.add(committed)
        try:
            begun = await self._begin(new, busy)
        except Exception as error:
            if not accepted.done():
                accepted.set_exception(error)
            return
        finally:
            self._beginning.discard(committed)
            committed.set_result(None)
        running = self._register(begun.turn, asyncio.current_task()) if begun.turn else None
        if not accepted.done():
            accepted.set_result(begun.continuation)
        if running is not None:
            await self._execute(running)

    async def _begin(self, new: Continuation, busy: BusyPolicy) -> BegunTurn:
        while True:
            try:
                return await self._store.begin(
                    new, self._claim_request(new.session_id), enqueue=busy == "enqueue"
                )
            except SessionBusy as error:
                if error.continuation_id in self._unwritten:
                    await self._write_end(error.continuation_id)
                    continue
                if busy != "interrupt":
                    raise
                await self.cancel_all(new.owner, new.session_id, "interrupted by a new message")

    async def cancel(self, owner: str, continuation_id: str, reason: str) -> Continuation:
        running = self._running.get(continuation_id)
        stats = running.runner.cancelled_stats() if running else await self._spent(owner, continuation_id)
        cancelled = await self._store.cancel(owner, continuation_id, redact(reason), stats=stats)
        self._end(continuation_id, cancelled.session_id)
        if running is not None:
            await _stop([running.task])
        self._tell(ContinuationResult(replace(cancelled, stats=stats), ()))
        return cancelled

    def _tell(self, result: ContinuationResult) -> None:
        """Tell who counts turns of one that is over; what goes wrong there stops nothing here."""
        if self._on_turn is None:
            return
        try:
            self._on_turn(result)
        except Exception as error:
            _logger.warning("turn %s was not counted: %s", result.continuation.id, error)

    async def _spent(self, owner: str, continuation_id: str) -> Stats:
        """Return what a turn that nobody works on here has taken, by its journal."""
        continuation, steps = await self._store.journal(owner, continuation_id)
        progress = Progress.from_steps(continuation.request.message, steps)
        return progress.stats(turns=1, cancelled_turns=1)

    async def cancel_all(self, owner: str, session_id: str, reason: str) -> None:
        """Cancel what waits in a session, so that it does not begin, and then what runs."""
        unfinished = await self._store.list_continuations(owner, session_id, open_only=True)
        for continuation in sorted(unfinished, key=lambda c: c.status in HOLDING):
            if continuation.status != "interrupted":
                with suppress(ContinuationFinal, ContinuationNotFound):
                    await self.cancel(owner, continuation.id, reason)

    def check_open(self) -> None:
        """Refuse a turn that would not be run any more."""
        if self._draining:
            raise ShuttingDown("Sash is shutting down: try again in a moment")

    def _claim_request(self, session_id: str) -> ClaimRequest:
        return ClaimRequest(self._id, self._lease_s, self._parts.windows.session(session_id))

    async def run(self, turn: Turn) -> None:
        """Run a turn that was claimed, or put it down again if it is too late for that."""
        if self.closing:
            await TurnRunner(self._parts, turn).interrupt()
            return
        running = self._register(turn, None)
        running.task = self._spawn(self._execute(running))

    def _register(self, turn: Turn, task: asyncio.Task[None] | None) -> _Running:
        ended = asyncio.get_running_loop().create_future()
        running = _Running(TurnRunner(self._parts, turn), turn, task, ended)
        self._running[turn.continuation.id] = running
        return running

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _execute(self, running: _Running) -> None:
        """Run a turn to its end, and then the next one that waits."""
        runner, turn, result = running.runner, running.turn, None
        continuation = turn.continuation
        try:
            await runner.run()
            if runner.ended:
                result = ContinuationResult(runner.ended, tuple(runner.journal.steps))
            elif runner.unwritten:
                self._unwritten[continuation.id] = (turn, runner.unwritten)
        finally:
            if self._running.get(continuation.id) is running:
                del self._running[continuation.id]
            running.ended.set_result(result)
            self._end(continuation.id, continuation.session_id)
        if result is not None:
            self._tell(result)
        if runner.has_next:
            await self.serve_next(continuation.session_id)

    async def settled(self, owner: str, continuation_id: str) -> ContinuationResult:
        """Wait for the end of a turn: of this process by its task, of another by news and by asking again.

        When this process runs no more turns it is returned as it stands.
        """
        running = self._running.get(continuation_id)
        if running is not None and running.turn.continuation.owner == owner:
            ended = await asyncio.shield(running.ended)
            if ended is not None:
                return ended
        if continuation_id in self._unwritten:
            await self._write_end(continuation_id)
        session_id = (await self._store.get_continuation(owner, continuation_id)).session_id
        with self._hub.subscribe(session_id) as subscriber:
            while True:
                subscriber.news.clear()
                is_last_look = self.closed
                result = await self.result(owner, continuation_id)
                if is_last_look or result.status in SETTLED:
                    return result
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_s / 10):
                        await subscriber.news.wait()

    async def result(self, owner: str, continuation_id: str) -> ContinuationResult:
        continuation, steps = await self._store.journal(owner, continuation_id)
        if continuation.status == "running" and self._hub.is_writing(
            continuation.session_id, continuation.id
        ):
            continuation = replace(continuation, status="streaming")
        return ContinuationResult(continuation, steps)

    def _end(self, continuation_id: str, session_id: str) -> None:
        self._hub.end_text(session_id, continuation_id)
        self._hub.wake(session_id)

    async def serve_next(self, session_id: str) -> None:
        """Run the oldest turn that waits in a session, if any, and if turns are still begun here."""
        if self._draining:
            return
        turn = await self._store.claim_next(session_id, self._claim_request(session_id))
        if turn is not None:
            await self.run(turn)

    async def _write_end(self, continuation_id: str) -> None:
        """Try again to write the end of a turn that the store could not take."""
        turn, end = self._unwritten[continuation_id]
        try:
            finished = await self._store.finish(turn.lease, end)
            ended = end.apply_to_continuation(turn.continuation, finished.steps[-1].ts)
            self._tell(ContinuationResult(ended, finished.steps))
        except LeaseLost:
            pass
        except StoreUnavailable as error:
            if not isinstance(error, WriteRefused):
                raise
            _logger.error("the end of turn %s is refused for good: %s", continuation_id, error)
        self._unwritten.pop(continuation_id, None)
        self._end(continuation_id, turn.session.id)
        await self.serve_next(turn.session.id)

    async def heartbeat(self) -> None:
        running = dict(self._running)
        if running:
            held = await self._store.renew(self._id, tuple(running), lease_s=self._lease_s)
            lost = [running[gone] for gone in running.keys() - held]
            await _stop([turn.task for turn in lost])
            for turn in lost:
                await self.serve_next(turn.turn.session.id)
        for continuation_id in tuple(self._unwritten):
            await self._write_end(continuation_id)


def _give_up(accepted: asyncio.Future[Continuation], task: asyncio.Task[None]) -> None:
    """Tell a caller whose turn was never begun."""
    if not accepted.done():
        accepted.set_exception(StoreUnavailable("the runtime was closed"))


async def _stop(turns: Iterable[asyncio.Task[None] | None]) -> None:
    """Cancel turns, and wait until they are over, but not for ever."""
    tasks = [task for task in turns if task is not None]
    for task in tasks:
        task.cancel()
    _, stubborn = await asyncio.wait(tasks, timeout=STOP_WAIT_S) if tasks else (None, ())
    if stubborn:
        _logger.warning("%d tools do not let themselves be cancelled", len(stubborn))
