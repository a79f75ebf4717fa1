"""Turns that the agent did not run: added to a session as a whole, and amended later."""

import asyncio
from dataclasses import replace
from weakref import WeakValueDictionary

from sash.engine.parts import Parts
from sash.engine.turn.runner import add_messages, cache_window
from sash.engine.window_cache import CachedWindow
from sash.ports.session_rules import retry_on_change
from sash.ports.turns import TurnEnd
from sash.values.continuations import Continuation, ContinuationResponse
from sash.values.messages import RECORDED_TAG
from sash.values.sessions import Session
from sash.values.stats import Stats
from sash.values.steps import Recorded, Step

RECORDED_STATS = Stats(turns=1, local_turns=1, steps=1)


class Recorder:
    """Records turns."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def record(self, new: Continuation, answer: str | None) -> tuple[Continuation, tuple[Step, ...]]:
        """Add a turn with its answer, or without one, and return it. A session gets one turn at a time.

        If a turn with the same idempotency key exists, return that turn without its steps.
        """
        lock = self._locks.setdefault(new.session_id, asyncio.Lock())
        async with lock:
            return await retry_on_change(new.session_id, lambda: self._record(new, answer))

    async def _record(self, new: Continuation, answer: str | None) -> tuple[Continuation, tuple[Step, ...]]:
        """Write a turn. Raise `SessionChanged` if the session has changed since it was read."""
        parts = self._parts
        session, window = await self._read(new)
        question = parts.renderer.render_question(new)
        # A missing answer gets its place now, because no message can be inserted later.
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer or ""}]
        change = await add_messages(parts, session, window, new, messages, RECORDED_TAG)
        end = TurnEnd(
            "completed",
            (Recorded(answer),),
            None if answer is None else ContinuationResponse(answer),
            messages=change.messages,
            cut=change.cut,
            stats=replace(RECORDED_STATS, evicted_messages=len(change.evicted)),
        )
        recorded, steps = await parts.store.record(new, end, session)
        if recorded.id == new.id:
            cache_window(parts, end.apply_to_session(session, recorded.updated_at), window, change)
            parts.hub.wake(session.id)
        return recorded, steps

    async def _read(self, new: Continuation) -> tuple[Session, CachedWindow]:
        """Return the session of a turn and its window, from the cache or the store."""
        if cached := self._parts.windows.pop(new.session_id):
            return cached
        session = await self._parts.store.get_session(new.owner, new.session_id)
        return session, await self._parts.read_window(session)


async def amend(parts: Parts, owner: str, continuation_id: str, answer: str) -> Continuation:
    """Set or replace the answer of a turn."""
    shown = parts.renderer.fill_empty({"role": "assistant", "content": answer})
    tokens = await parts.long_work.run(owner, len(answer), parts.counter.count_message, shown["content"])
    amended = await parts.store.amend(owner, continuation_id, answer, tokens)
    parts.hub.wake(amended.session_id)
    return amended
