"""Runs the turns of this process: begins or claims them, cancels and awaits them, and renews their leases.

A turn runs as a task of its own, never inside the call that started it. So it continues if its caller goes
away.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from sash.engine.parts import Parts
from sash.engine.redaction import redact
from sash.engine.turn.continuation_result import ContinuationResult
from sash.engine.turn.recorder import Recorder
from sash.engine.turn.runner import TurnRunner, read_cut_off
from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    LeaseLost,
    ModelKeyRefused,
    ModelUnknown,
    SashError,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    ShuttingDown,
    StoreUnavailable,
    WriteRefused,
)
from sash.ports.session_rules import retry_on_change
from sash.ports.turns import BegunTurn, ClaimRequest, Turn, TurnEnd
from sash.values.continuations import FINAL, HOLDING, Continuation
from sash.values.requests import BusyPolicy
from sash.values.steps import Cancelled, Interrupted, StepBody, bill_steps

STOP_WAIT_S = 5.0
SESSION_ENDED = "the session was ended"
SHUTTING_DOWN = "Sash is shutting down: try again in a moment"
MAX_AUTO_RESUMES = 10
NEEDS_OPERATOR = frozenset({ModelKeyRefused.code, ModelUnknown.code})
SETTLED = FINAL | {"interrupted", "awaiting_approval"}

T = TypeVar("T")

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    """A turn that runs in this process. After `ended`, `result` is None if only the store knows it."""

    runner: TurnRunner
    turn: Turn
    task: asyncio.Task[None] | None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    cancel_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    result: ContinuationResult | None = None


class Worker:
    """Runs turns under leases, which it renews."""

    def __init__(
        self,
        parts: Parts,
        lease_s: float,
        on_turn: Callable[[ContinuationResult], None] | None = None,
        on_turn_change: Callable[[ContinuationResult], None] | None = None,
    ) -> None:
        self._parts = parts
        self._on_turn = on_turn
        self._on_turn_change = on_turn_change
        self._store = parts.store
        self._hub = parts.hub
        self._lease_s = lease_s
        self._id = parts.new_id()
        self._running: dict[str, _Running] = {}
        self._unwritten: dict[str, tuple[Turn, TurnEnd]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._beginning: set[asyncio.Future[None]] = set()
        self._detached: set[asyncio.Task[Any]] = set()
        self._recorder = Recorder(parts)
        self.open()

    def open(self) -> None:
        """Start to accept turns."""
        self._draining = self.closing = self.closed = False
        self._close_task: asyncio.Task[None] | None = None

    async def close(self, grace_s: float = 0.0) -> None:
        """Accept no more turns, wait at most `grace_s` for running ones, and mark the rest as interrupted.

        A second call waits for the end of the first one. A cancelled call goes on in the background.
        """
        self._draining = True
        if self._tasks and grace_s:
            await asyncio.wait(self._tasks, timeout=grace_s)
        if self._close_task is None:
            self._close_task = asyncio.create_task(self._close())
        await asyncio.shield(self._close_task)

    async def _close(self) -> None:
        self.closing = True
        # A turn that was claimed and does not run yet would not be marked.
        if unfinished := self._beginning | self._detached:
            await asyncio.wait(unfinished, timeout=STOP_WAIT_S)
        under_way = tuple(self._running.values())
        await _stop(self._tasks)
        for running in under_way:
            await running.runner.interrupt()
        for continuation_id in tuple(self._unwritten):
            with suppress(SashError):
                await self._write_end(continuation_id)
        self.closed = True

    async def detach(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in a task of its own and return its result. A cancelled caller does not stop the work."""
        task = asyncio.create_task(work)
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)
        return await asyncio.shield(task)

    async def begin(self, new: Continuation, busy: BusyPolicy) -> Continuation:
        """Begin a turn and run it. The turn is in the store when this returns."""
        self.check_open()
        accepted: asyncio.Future[Continuation] = asyncio.get_running_loop().create_future()
        begun = self._spawn(self._begin_and_run(new, busy, accepted))
        begun.add_done_callback(partial(_fail_begin, accepted))
        return await accepted

    async def take_over(
        self, continuation: Continuation, steps: tuple[StepBody, ...] = (), step_count: int | None = None
    ) -> Continuation:
        """Claim a waiting continuation, run it and return it. `steps` are written with the claim.

        Raise `NotAwaitingApproval` if the turn does not have `step_count` steps any more.
        """
        if continuation.id in self._running and not steps:
            return continuation
        turn = await self.claim(continuation, steps, step_count)
        await self.run(turn)
        return turn.continuation

    async def claim(
        self, continuation: Continuation, steps: tuple[StepBody, ...] = (), step_count: int | None = None
    ) -> Turn:
        """Claim a waiting continuation without running it. Raise `SessionBusy` if another turn runs."""
        self.check_open()
        claim = replace(self._claim_request(continuation.session_id), step_count=step_count)
        return await self._store.claim(continuation.owner, continuation.id, claim, steps=steps)

    async def record(self, new: Continuation, answer: str | None) -> Continuation:
        """Add a turn that the agent does not run, and return it."""
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
                self._report(ContinuationResult(recorded, steps))
            return recorded

    async def stop(self, owner: str, session_id: str | None = None) -> None:
        """Stop the running turns of an owner, or only those of one session."""
        turns = [r for r in self._running.values() if r.turn.continuation.owner == owner]
        await self._stop_deleted([r for r in turns if session_id in (None, r.turn.session.id)])

    async def _stop_deleted(self, turns: Sequence[_Running]) -> None:
        """Stop turns that were deleted, or that another process took over. Their money stays counted."""
        await _stop([running.task for running in turns])
        for running in turns:
            await running.runner.spend_unwritten()

    async def recover(self) -> list[Continuation]:
        """Mark the turns of dead processes as interrupted, start queued turns, and resume where allowed.

        Return the turns that were marked. A turn that cannot start is logged, and the others start.
        """
        with suppress(StoreUnavailable):
            await self.heartbeat()
        lost = await self._store.interrupt_lost()
        for continuation in await self._store.waiting(self._parts.max_open_turns):
            try:
                session = await self._store.get_session(continuation.owner, continuation.session_id)
                if session.status == "ended":  # The process died before it could cancel the turn.
                    await self.cancel(continuation.owner, continuation.id, SESSION_ENDED)
                    continue
                if continuation.status == "pending":
                    await self.serve_next(continuation.session_id)
                    continue
                # Nobody looks at a waiting turn that has fired, so it goes on by itself.
                resumes = session.policy.resume_interrupted or continuation.request.fired is not None
                if resumes and await self._can_resume(continuation):
                    await self.take_over(continuation)
            except (SessionBusy, ContinuationFinal, ContinuationNotFound, SessionNotFound, ShuttingDown):
                continue
            except Exception as error:
                _logger.error("turn %s cannot start or go on: %.300s", continuation.id, error)
        return lost

    async def _can_resume(self, continuation: Continuation) -> bool:
        """Return False if a resume cannot help: after many failures, or after a wrong key or model."""
        _, steps = await self._store.journal(continuation.owner, continuation.id)
        codes = [s.body.code for s in steps if isinstance(s.body, Interrupted) and s.body.code]
        return not codes or (codes[-1] not in NEEDS_OPERATOR and len(codes) < MAX_AUTO_RESUMES)

    async def _begin_and_run(
        self, new: Continuation, busy: BusyPolicy, accepted: asyncio.Future[Continuation]
    ) -> None:
        """Begin a turn in the task that runs it, so that it starts and runs even if the caller goes away."""
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
        """Cancel a turn. A second cancel waits for the first one, and raises `ContinuationFinal` then."""

        async def attempt() -> Continuation:
            if continuation_id in self._unwritten:
                await self._write_end(continuation_id)
            running = self._running.get(continuation_id)
            if running is None or running.turn.continuation.owner != owner:
                return await self._cancel(owner, continuation_id, reason, None)
            async with running.cancel_lock:
                return await self._cancel(owner, continuation_id, reason, running)

        return await retry_on_change(continuation_id, attempt)

    async def drop(self, owner: str, continuation_id: str, reason: str, step_count: int) -> Continuation:
        """Cancel a turn that waits for an approval, and whose `step_count` steps the caller has read.

        Raise `SessionChanged` if the turn has gone on since, and `ContinuationFinal` if it has ended.
        """
        return await self._cancel(owner, continuation_id, reason, None, step_count)

    async def _cancel(
        self,
        owner: str,
        continuation_id: str,
        reason: str,
        running: _Running | None,
        step_count: int | None = None,
    ) -> Continuation:
        reason = redact(reason)
        if running is None or running.runner.is_settled:
            end, steps_read = await read_cut_off(self._parts, owner, continuation_id)
            step_count = steps_read if step_count is None else step_count
            cancelled = await self._store.cancel(
                owner, continuation_id, reason, end=end, step_count=step_count
            )
            running = running or self._running.get(continuation_id)  # It may have been claimed meanwhile.
        else:
            end = await running.runner.cut_off()
            cancelled = await self._write_cancel(running, reason, end)
        self._hub.end_turn(cancelled.session_id, continuation_id)
        if running is not None:
            await _stop([running.task])
        self._report(ContinuationResult(replace(cancelled, stats=end.stats), ()))
        return cancelled

    async def _write_cancel(self, running: _Running, reason: str, end: TurnEnd) -> Continuation:
        """Cancel a turn of this process. If the store fails, stop the turn and keep its end for later."""
        runner, continuation = running.runner, running.turn.continuation
        runner.is_settled = True
        try:
            return await self._store.cancel(continuation.owner, continuation.id, reason, end=end)
        except StoreUnavailable:
            kept = replace(end, steps=(*end.steps, Cancelled(reason)))
            self._unwritten[continuation.id] = (running.turn, kept)
            await _stop([running.task])
            raise
        except (ContinuationFinal, ContinuationNotFound):
            runner.is_settled = False
            await self._stop_deleted([running])
            runner.is_settled = True  # A cancel that waits for this one asks the store.
            raise

    def _report(self, result: ContinuationResult) -> None:
        """Report an ended turn to `on_turn` and `on_turn_change`."""
        _call(self._on_turn, result)
        _call(self._on_turn_change, result)

    async def cancel_all(
        self, owner: str, session_id: str, reason: str, *, interrupted_too: bool = False
    ) -> None:
        """Cancel the turns of a session: first the queued ones, so that they do not start.

        A turn that was interrupted can be resumed, unless it is cancelled, too.
        """
        unfinished = await self._store.list_continuations(owner, session_id, open_only=True)
        for continuation in sorted(unfinished, key=lambda c: c.status in HOLDING):
            if interrupted_too or continuation.status != "interrupted":
                with suppress(ContinuationFinal, ContinuationNotFound):
                    await self.cancel(owner, continuation.id, reason)

    def check_open(self) -> None:
        """Raise `ShuttingDown` if no more turns are accepted."""
        if self._draining:
            raise ShuttingDown(SHUTTING_DOWN)

    def _claim_request(self, session_id: str) -> ClaimRequest:
        known, max_open = self._parts.windows.session(session_id), self._parts.max_open_turns
        return ClaimRequest(self._id, self._lease_s, known, max_open=max_open)

    async def run(self, turn: Turn) -> None:
        """Run a claimed turn, or mark it as interrupted if the worker is closing."""
        if self.closing:
            await TurnRunner(self._parts, turn).interrupt()
            return
        running = self._register(turn, None)
        running.task = self._spawn(self._execute(running))
        # A task that is cancelled before its first step runs no `finally`.
        running.task.add_done_callback(lambda _: self._unregister(running))

    def _register(self, turn: Turn, task: asyncio.Task[None] | None) -> _Running:
        running = _Running(TurnRunner(self._parts, turn), turn, task)
        self._running[turn.continuation.id] = running
        _call(self._on_turn_change, ContinuationResult(turn.continuation, tuple(turn.steps)))
        # A subscriber reads what other processes wrote before this turn before it gets the turn's text.
        self._hub.wake(turn.session.id)
        return running

    def _unregister(self, running: _Running, result: ContinuationResult | None = None) -> None:
        """Remove a turn that runs no more, and pass its result on. A second call has no effect."""
        if running.ended.is_set():
            return
        continuation = running.turn.continuation
        if self._running.get(continuation.id) is running:
            del self._running[continuation.id]
        running.result = result
        running.ended.set()
        self._hub.end_turn(continuation.session_id, continuation.id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _execute(self, running: _Running) -> None:
        """Run a turn to its end, then start the next one in the queue."""
        runner, turn, result = running.runner, running.turn, None
        continuation = turn.continuation
        try:
            await runner.run()
            if runner.ended:
                result = ContinuationResult(runner.ended, tuple(runner.journal.steps))
            elif runner.unwritten:
                self._unwritten[continuation.id] = (turn, runner.unwritten)
        finally:
            self._unregister(running, result)
        if result is not None:
            self._report(result)
        elif runner.journal.paused_as is not None:
            paused = replace(continuation, status=runner.journal.paused_as)
            _call(self._on_turn_change, ContinuationResult(paused, tuple(runner.journal.steps)))
        if runner.has_next:
            # A cancellation of this task must not hit the next turn between its claim and its start.
            await self.detach(self.serve_next(continuation.session_id))

    async def settled(self, owner: str, continuation_id: str) -> ContinuationResult:
        """Wait until a turn has ended, was interrupted or waits for an approval, and return its state.

        A turn of another process is polled. If the worker closes, return the current state, or raise
        `ShuttingDown` if the store is closed already.
        """
        running = self._running.get(continuation_id)
        if running is not None and running.turn.continuation.owner == owner:
            await running.ended.wait()
            if running.result is not None:
                return running.result
        if continuation_id in self._unwritten:
            await self.detach(self._write_end(continuation_id))
        session_id = (await self.result(owner, continuation_id)).continuation.session_id
        with self._hub.subscribe(session_id, reads_store_only=True) as subscriber:
            while True:
                subscriber.news.clear()
                is_last_look = self.closed
                # News wakes all callers that wait for turns of the session.
                await self._parts.pacing.wait(owner)
                result = await self.result(owner, continuation_id)
                if is_last_look or result.status in SETTLED:
                    return result
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_s / 10):
                        await subscriber.news.wait()

    async def result(self, owner: str, continuation_id: str) -> ContinuationResult:
        """Return the state of a turn. Raise `ShuttingDown` if the store was closed with the worker."""
        try:
            continuation, steps = await self._store.journal(owner, continuation_id)
        except StoreUnavailable as error:
            if self.closed:
                raise ShuttingDown(SHUTTING_DOWN) from error
            raise
        if continuation.status == "running" and self._hub.is_writing(
            continuation.session_id, continuation.id
        ):
            continuation = replace(continuation, status="streaming")
        return ContinuationResult(continuation, steps)

    async def serve_next(self, session_id: str) -> None:
        """Start the oldest queued turn of a session, if the worker still accepts turns."""
        if self._draining:
            return
        with suppress(SessionEnded):
            turn = await self._store.claim_next(session_id, self._claim_request(session_id))
            if turn is not None:
                await self.run(turn)

    async def _write_end(self, continuation_id: str) -> None:
        """Write the end of a turn that the store could not write before."""
        turn, end = self._unwritten[continuation_id]
        try:
            finished = await self._store.finish(turn.lease, end, known=turn.session)
            ended = end.apply_to_continuation(turn.continuation, finished.steps[-1].ts)
            self._report(ContinuationResult(ended, finished.steps))
        except LeaseLost:
            await self._store.spend(turn.continuation.owner, bill_steps(end.steps).cost_usd)
        except StoreUnavailable as error:
            if not isinstance(error, WriteRefused):
                raise
            _logger.error(
                "the end of turn %s is lost, because the store cannot write it: %s", continuation_id, error
            )
        self._unwritten.pop(continuation_id, None)
        self._hub.end_turn(turn.session.id, continuation_id)
        await self.serve_next(turn.session.id)

    @property
    def running_turns(self) -> int:
        return len(self._running)

    @property
    def unwritten_ends(self) -> int:
        """The number of ended turns that the store has not accepted yet."""
        return len(self._unwritten)

    async def wait_idle(self) -> None:
        """Wait until no turn runs in this process, and none is being started or ended."""
        while unfinished := self._tasks | self._detached:
            await asyncio.wait(unfinished)

    async def abandon(self) -> None:
        """Stop all turns and write nothing, as if the process had died."""
        await _stop(self._tasks)

    async def heartbeat(self) -> None:
        """Renew the leases of running turns, and write ends that the store could not write before."""
        running = dict(self._running)
        if running:
            held = await self._store.renew(self._id, tuple(running), lease_s=self._lease_s)
            lost = [running[gone] for gone in running.keys() - held]
            await self._stop_deleted(lost)
            for turn in lost:
                await self.serve_next(turn.turn.session.id)
        writes = [self._write_end(continuation_id) for continuation_id in tuple(self._unwritten)]
        for error in await asyncio.gather(*writes, return_exceptions=True):
            if error is not None:
                raise error


def _call(listener: Callable[[ContinuationResult], None] | None, result: ContinuationResult) -> None:
    """Call a listener of the application, if there is one. Its errors are logged."""
    if listener is None:
        return
    try:
        listener(result)
    except Exception as error:
        name = getattr(listener, "__name__", listener)
        _logger.warning("%s failed for turn %s: %s", name, result.continuation.id, error)


def _fail_begin(accepted: asyncio.Future[Continuation], task: asyncio.Task[None]) -> None:
    """Set an error for a caller whose turn did not begin."""
    if not accepted.done():
        accepted.set_exception(StoreUnavailable("the runtime was closed"))


async def _stop(turns: Iterable[asyncio.Task[None] | None]) -> None:
    """Cancel tasks and wait at most `STOP_WAIT_S` for their end."""
    tasks = [task for task in turns if task is not None]
    for task in tasks:
        task.cancel()
    _, stubborn = await asyncio.wait(tasks, timeout=STOP_WAIT_S) if tasks else (None, ())
    if stubborn:
        _logger.warning("%d turns did not stop: their tools ignore the cancellation", len(stubborn))
