"""The journal of one turn: its steps, its artifacts and its end, without secrets.

All writes need the turn's lease. Steps are written in the background: the model, and tools that may run
twice, do not wait for the disk. One write runs at a time, so a crash leaves the beginning of the turn in the
journal, without gaps. `flush` waits until all steps are on the disk.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from sash.engine.event_hub import PartialText, Place
from sash.engine.parts import Parts
from sash.engine.past_actions import list_past_actions
from sash.engine.redaction import redact, redact_step
from sash.engine.turn.progress import Progress
from sash.errors import LeaseLost
from sash.ports.store import Artifact
from sash.ports.turns import EndWritten, Turn, TurnEnd, WaitingStatus
from sash.values.continuations import Action, ArtifactRef
from sash.values.prompts import NO_PROMPTS
from sash.values.sessions import Session
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Step, StepBody


class Journal:
    """Writes the steps of one turn to the store and applies them to the turn's progress.

    Events that are not stored get their place after the last step that was written or queued. `prompts` are
    model calls that the next write stores. `paused_as` is the status of a turn that was handed back.
    """

    def __init__(self, parts: Parts, turn: Turn, progress: Progress) -> None:
        self.steps = list(turn.steps)
        self._parts = parts
        self._store = parts.store
        self._hub = parts.hub
        self._turn = turn
        self._progress = progress
        self._unwritten: list[tuple[StepBody, Place]] = []
        self._place = Place(turn.steps[-1].n if turn.steps else 0, turn.cursor)
        self._ending: list[Place] = []
        self._flushing: asyncio.Task[None] | None = None
        self._is_closed = False
        self.prompts = NO_PROMPTS
        self.paused_as: WaitingStatus | None = None

    @property
    def step_count(self) -> int:
        """The number of the turn's steps, also of those that are not written yet."""
        return self._place.n

    def write(self, *steps: StepBody) -> None:
        """Remove the secrets of steps, apply the steps to the progress, and write them in the background."""
        self._write_clean(_redact_steps(steps))

    async def write_long(self, size: int, *steps: StepBody) -> None:
        """Do the same as `write` for steps whose texts together may be long: `size` characters."""
        owner = self._turn.session.owner
        self._write_clean(await self._parts.long_work.run(owner, size, _redact_steps, steps))

    def _write_clean(self, steps: Sequence[StepBody]) -> None:
        self._queue(steps)
        for step in steps:
            self._progress.apply(step)

    async def close(self) -> list[StepBody]:
        """Accept no more steps, wait for the running write, and return the steps that are not written.

        Later writes raise `LeaseLost`, so the turn stops.
        """
        self._is_closed = True
        if self._flushing is not None:
            await asyncio.gather(asyncio.shield(self._flushing), return_exceptions=True)
        unwritten, self._unwritten = self._unwritten, []
        return [step for step, _ in unwritten]

    async def flush(self) -> None:
        """Wait until all steps are on the disk. Raise `LeaseLost` if the turn was cancelled meanwhile."""
        while flushing := self._start_flush():
            await asyncio.shield(flushing)
        self._check_open()

    async def check(self) -> None:
        """Raise the error of an earlier background write, so that the turn does not continue."""
        if self._flushing is not None and self._flushing.done():
            await self._flushing

    async def check_lease(self) -> None:
        """Raise `LeaseLost` if the turn was cancelled, deleted or taken over."""
        await self._store.append(self._turn.lease, ())
        self._check_open()

    async def hand_back(self, steps: Sequence[StepBody], status: WaitingStatus, stats: Stats) -> None:
        """Write the remaining steps and release the lease. The continuation then waits with this status."""
        if self._flushing is not None:
            await self.flush()
        self._queue(_redact_steps(steps))
        await self._append(status, stats)
        self.paused_as = status

    async def take_unwritten(self) -> list[StepBody]:
        """Remove and return the unwritten steps. The caller writes them with the end of the turn."""
        if self._flushing is not None:
            await self.flush()
        unwritten, self._unwritten = self._unwritten, []
        self._ending = [place for _, place in unwritten]
        return [step for step, _ in unwritten]

    async def finish(self, end: TurnEnd, based_on: Session | None = None) -> EndWritten:
        """Write the end of the turn to the store, and return the steps that the store wrote.

        Raise `SessionChanged` if the session has changed since the caller read `based_on`.
        """
        self._check_open()
        end = replace(end, prompts=self.prompts) if self.prompts else end
        known = based_on or self._turn.session
        written = await self._store.finish(self._turn.lease, end, known=known, based_on=based_on)
        self.prompts = NO_PROMPTS
        self._add_written(written.steps, self._ending)
        return written

    async def stop(self) -> None:
        """Wait for the running write. If it fails, drop the steps that wait to be written."""
        if self._flushing is not None:
            # A second cancellation of the turn must not cancel the write.
            await asyncio.wait({self._flushing})
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
            self._unwritten.clear()
            self._flushing = None

    async def keep(self, data: bytes, media_type: str, name: str) -> ArtifactRef:
        """Store a large result as an artifact, and return the reference to it."""
        session = self._turn.session
        return await keep_artifact(self._parts, session.owner, session.id, data, media_type, name)

    def past_actions(self) -> AsyncIterator[tuple[str, Action]]:
        """Yield the actions of the session, newest first, each with the key of its tool call."""
        return list_past_actions(self._store, self._turn.session.owner, self._turn.session.id)

    def report_progress(self, message: str) -> None:
        """Send a progress message to subscribers. It is not stored."""
        self._hub.progress(self._turn.session.id, self._turn.continuation.id, message, self._place)

    def begin_text(self, *, is_provisional: bool) -> PartialText:
        """Return the text of a new model call, for `EventHub.write`."""
        return PartialText(self._turn.session.id, self._turn.continuation.id, self._place, is_provisional)

    def _queue(self, steps: Sequence[StepBody]) -> None:
        self._check_open()
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._start_flush)
        for step in steps:
            self._place = Place(self._place.n + 1)
            self._unwritten.append((step, self._place))

    def _check_open(self) -> None:
        if self._is_closed:
            raise LeaseLost(self._turn.continuation.id)

    def _start_flush(self) -> asyncio.Task[None] | None:
        if self._unwritten and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return self._flushing

    async def _flush(self) -> None:
        while self._unwritten:
            await self._append()
        self._flushing = None

    async def _append(self, status: WaitingStatus | None = None, stats: Stats = NO_STATS) -> None:
        unwritten, self._unwritten = self._unwritten, []
        steps = [step for step, _ in unwritten]
        prompts = self.prompts if steps else NO_PROMPTS
        self.prompts = NO_PROMPTS if steps else self.prompts
        written = await self._store.append(
            self._turn.lease, steps, release_as=status, stats=stats, prompts=prompts
        )
        self._add_written(written, [place for _, place in unwritten])

    def _add_written(self, steps: Sequence[Step], places: Sequence[Place]) -> None:
        """Add steps that the store has written, and wake the subscribers. The first ones have `places`."""
        self.steps += steps
        for step, place in zip(steps, places, strict=False):
            place.cursor = step.cursor
        self._hub.wake(self._turn.session.id)


async def keep_artifact(
    parts: Parts, owner: str, session_id: str, data: bytes, media_type: str, name: str
) -> ArtifactRef:
    """Store an artifact of a session, and return the reference to it. Text is stored without its secrets."""
    is_text = media_type.startswith(("text/", "application/json"))
    clean = await parts.long_work.run(owner, len(data), _redact_bytes, data) if is_text else data
    ref = ArtifactRef(parts.new_id(), media_type, len(clean), redact(name))
    await parts.store.put_artifact(Artifact(ref, session_id, owner, clean))
    return ref


def _redact_steps(steps: Sequence[StepBody]) -> list[StepBody]:
    return [redact_step(step) for step in steps]


def _redact_bytes(data: bytes) -> bytes:
    return redact(data.decode(errors="replace")).encode()
