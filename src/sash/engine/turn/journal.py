"""What one turn writes under its lease: its steps, its artifacts, its end. Secrets are taken out on the way.

Steps are written behind the turn: while they go to the disk the model is asked, and tools that may run twice
are run. One write is under way at a time, so that whenever the process dies the journal has the beginning of
the turn and no holes. Who must know that a step is on the disk waits with `settle`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from sash.engine.event_hub import EventHub
from sash.engine.redaction import redact, redact_json
from sash.ports.store import Artifact, EndWritten, Store, Turn, TurnEnd, WaitingStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Action, ArtifactRef, NewStep

# How many turns back an action may be looked for.
MAX_TURNS = 50


class Journal:
    """The journal of one turn."""

    def __init__(self, store: Store, turn: Turn, hub: EventHub, new_id: Callable[[], str]) -> None:
        self.steps = list(turn.steps)
        self._store = store
        self._turn = turn
        self._hub = hub
        self._new_id = new_id
        self._unwritten: list[NewStep] = []
        self._flushing: asyncio.Task[None] | None = None

    def write(self, steps: list[NewStep]) -> list[NewStep]:
        """Note steps to be written soon, and return them as they will be written."""
        said = [step.detail for step in steps]
        clean = redact_json(said)
        if clean is not said:
            steps = [NewStep(step.type, detail) for step, detail in zip(steps, clean, strict=True)]
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._begin_flush)
        self._unwritten += steps
        return steps

    async def settle(self) -> None:
        """Wait until all steps are on the disk."""
        while flushing := self._begin_flush():
            await asyncio.shield(flushing)

    async def check(self) -> None:
        """Say so if a write has failed, before the turn does more."""
        if self._flushing is not None and self._flushing.done():
            await self._flushing

    async def hand_back(self, steps: list[NewStep], give_back: WaitingStatus, stats: Stats) -> None:
        """Write the last steps, and what it took so far, before the turn waits for somebody to go on."""
        if self._flushing is not None:
            await self.settle()
        self.write(steps)
        await self._append(give_back, stats)

    async def whole(self, end: TurnEnd) -> TurnEnd:
        """Return the end of the turn with the steps that are unwritten yet, which are written with it."""
        if self._flushing is not None:
            await self.settle()
        steps, self._unwritten = (*self._unwritten, *end.steps), []
        return replace(end, steps=steps)

    async def finish(self, end: TurnEnd) -> EndWritten:
        """End the turn."""
        finished = await self._store.finish(self._turn.lease, end)
        self.steps += finished.steps
        return finished

    async def stop(self) -> None:
        """Wait for a write under way. If it fails, what comes behind it is not written."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        if self._flushing is not None:
            self._unwritten.clear()
            self._flushing = None

    async def keep(self, data: bytes, kind: str, name: str) -> ArtifactRef:
        """Keep a large result apart."""
        session = self._turn.session
        return await keep(self._store, self._new_id(), session.owner, session.id, data, kind, name)

    async def past_actions(self) -> AsyncIterator[tuple[str, Action]]:
        """Give the actions of the session, newest first, each with the key of its call."""
        session = self._turn.session
        continuations = await self._store.list_continuations(session.owner, session.id)
        for continuation in reversed(continuations[-MAX_TURNS:]):
            _, steps = await self._store.journal(session.owner, continuation.id)
            for step in reversed(steps):
                if step.type == "tool_result" and "action" in step.detail:
                    action = Action(**step.detail["action"])
                    yield f"{continuation.id}:{action.call_id}", action

    def tell(self, message: str) -> None:
        """Tell who listens what is being done; it is not kept."""
        self._hub.progress(self._turn.session.id, self._turn.continuation.id, message)

    def _begin_flush(self) -> asyncio.Task[None] | None:
        if self._unwritten and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return self._flushing

    async def _flush(self) -> None:
        while self._unwritten:
            await self._append()
        self._flushing = None

    async def _append(self, give_back: WaitingStatus | None = None, stats: Stats = NO_STATS) -> None:
        steps, self._unwritten = self._unwritten, []
        written = await self._store.append(self._turn.lease, steps, give_back=give_back, stats=stats)
        self.steps += written
        self._hub.wake(self._turn.session.id)


async def keep(
    store: Store, new_id: str, owner: str, session_id: str, data: bytes, kind: str, name: str
) -> ArtifactRef:
    """Keep an artifact of a session; text without its secrets."""
    is_text = kind.startswith(("text/", "application/json"))
    clean = redact(data.decode(errors="replace")).encode() if is_text else data
    ref = ArtifactRef(new_id, kind, len(clean), redact(name))
    await store.put_artifact(Artifact(ref, session_id, owner, clean))
    return ref
