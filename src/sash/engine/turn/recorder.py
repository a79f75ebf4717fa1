"""Turns that somebody else has answered, or will: added to a session whole, and amended later."""

import asyncio
from weakref import WeakValueDictionary

from sash.engine.turn.closing import close_turn, settle
from sash.engine.turn.engine import Engine
from sash.engine.window_cache import CachedWindow
from sash.errors import SessionChanged
from sash.ports.store import MAX_CHANGES, TurnEnd, after_turn, keeps_changing
from sash.values.sessions import Session
from sash.values.stats import Stats
from sash.values.steps import Continuation, ContinuationResponse, NewStep, Step

RECORDED_TAG = frozenset({"recorded"})
# No model was asked, and nobody has waited.
RECORDED = Stats(turns=1, local_turns=1, steps=1)


class Recorder:
    """Writes turns that need no run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._one_at_a_time: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def record(self, new: Continuation, answer: str | None) -> tuple[Continuation, tuple[Step, ...]]:
        """Add a turn with its answer, or with none yet; those of one session come one after the other.

        What was added before under the same idempotency key is returned without steps.
        """
        turn = self._one_at_a_time.setdefault(new.session_id, asyncio.Lock())
        async with turn:
            for n in range(MAX_CHANGES):
                try:
                    return await self._record(new, answer)
                except SessionChanged:
                    await asyncio.sleep(0.001 * n)
        raise keeps_changing(new.session_id)

    async def amend(self, owner: str, continuation_id: str, answer: str) -> Continuation:
        """Give a turn its answer, or another one."""
        engine = self._engine
        shown = engine.shown({"role": "assistant", "content": answer})
        tokens = engine.counter.count_message(shown["content"])
        amended = await engine.store.amend(owner, continuation_id, answer, tokens)
        engine.hub.wake(amended.session_id)
        return amended

    async def _record(self, new: Continuation, answer: str | None) -> tuple[Continuation, tuple[Step, ...]]:
        """Write a turn, unless the session has changed since it was read."""
        engine = self._engine
        session, known = await self._read(new)
        asked = engine.asked(new.request.content, new.created_at)
        # An answer that is still to come has its place already, as nothing comes between two messages later.
        said = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer or ""}]
        closing = close_turn(engine, session, known, new, said, RECORDED_TAG)
        end = TurnEnd(
            "completed",
            (NewStep("summary", {"status": "completed", "final_message": answer, "recorded": True}),),
            None if answer is None else ContinuationResponse(answer),
            messages=closing.messages,
            cut=closing.cut,
            stats=RECORDED,
        )
        recorded, steps = await engine.store.record(new, end, session)
        if recorded.id == new.id:
            settle(engine, after_turn(session, end, recorded.updated_at), known, closing)
            engine.hub.wake(session.id)
        return recorded, steps

    async def _read(self, new: Continuation) -> tuple[Session, CachedWindow]:
        """Return the session and its window as this process knows them, or as the store does."""
        found = self._engine.windows.pop(new.session_id)
        if found is not None:
            return found
        session = await self._engine.store.get_session(new.owner, new.session_id)
        return session, await self._engine.read_window(session)
