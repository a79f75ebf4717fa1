"""What is done when a window was cut, off the turn's path: vectors of what was evicted, a summary of it.

Both are a help and no more: if one fails, what there is stays as it is, and the next cut tries again.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from sash.engine.recall import turns_of
from sash.engine.redaction import redact
from sash.engine.turn.engine import Engine
from sash.engine.turn.progress import billed
from sash.engine.turn.tool_calls import guarded
from sash.ports.embedder import Embedder, pack_vector
from sash.ports.model import ModelRequest, Usage, collect
from sash.ports.store import StoredMessage, Vector, change_session
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
from sash.values.stats import Stats

MAX_VECTORS = 1000
# Of an older transcript no more is embedded than is kept.
MESSAGES_PER_VECTOR = 4
BATCH = 64
PAGE = 500
MAX_CHARS = 4000
SUMMARY_TOKENS = 500
TIMEOUT_S = 60.0

SUMMARISE = (
    "Summarise the earlier part of a conversation for the assistant that will go on with it. Keep names, "
    "numbers, error codes, paths, decisions and open questions word for word. Write at most 300 words, and "
    "nothing else."
)

_logger = logging.getLogger(__name__)


class Maintenance:
    """Looks after sessions whose windows were cut."""

    def __init__(self, engine: Engine, *, summaries: bool, embedder: Embedder | None) -> None:
        self._engine = engine
        self._store = engine.store
        self._summaries = summaries
        self._embedder = embedder
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_at_a_time: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def after_cut(self, session: Session, evicted: Sequence[MessageEntry]) -> None:
        """Begin what is to be done after a cut."""
        if self._embedder is not None:
            self._spawn("vectors", session, self._embed(self._embedder, session))
        if self._summaries:
            self._spawn("summary", session, self._summarise(session, evicted))

    async def close(self) -> None:
        """Stop, and leave undone what is not done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until nothing is left to do."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, what: str, session: Session, work: Coroutine[Any, Any, None]) -> None:
        """Do something, behind what is already being done of the kind in the session."""
        turn = self._one_at_a_time.setdefault((what, session.id), asyncio.Lock())

        async def carefully() -> None:
            try:
                async with turn, asyncio.timeout(TIMEOUT_S):
                    await guarded(work)
            except Exception as error:
                _logger.warning("no %s was made: %s", what, redact(str(error) or type(error).__name__))

        task = asyncio.create_task(carefully())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _embed(self, embedder: Embedder, session: Session) -> None:
        """Embed the evicted turns that have no vector yet."""
        known = await self._store.vectors(session.owner, session.id)
        window = await self._store.window(session.owner, session.id)
        oldest = max(0, window.evicted_count - MESSAGES_PER_VECTOR * MAX_VECTORS)
        after = max((v.position for v in known if v.model == embedder.name), default=oldest)
        while found := await self._store.messages(session.owner, session.id, after=after, limit=PAGE):
            turns = turns_of([m for m in found if not m.in_window])
            if len(found) == PAGE and len(turns) > 1:
                turns.pop()  # the rest of it comes with the next page
            whole = [turn for turn in turns if turn[0].message.role == "user" and _text(turn)]
            for n in range(0, len(whole), BATCH):
                await self._embed_batch(embedder, session, whole[n : n + BATCH])
            if len(found) < PAGE or not turns:
                return
            after = turns[-1][-1].position

    async def _embed_batch(
        self, embedder: Embedder, session: Session, turns: list[list[StoredMessage]]
    ) -> None:
        made = await embedder.embed([_text(turn) for turn in turns])
        vectors = [
            Vector(turn[0].position, embedder.name, pack_vector(vector))
            for turn, vector in zip(turns, made, strict=True)
        ]
        await self._store.add_vectors(session.owner, session.id, vectors, keep=MAX_VECTORS)

    async def _summarise(self, stale: Session, evicted: Sequence[MessageEntry]) -> None:
        """Let the model sum up the summary, the digest and what was evicted; it takes the place of both."""
        engine = self._engine
        session = await self._store.get_session(stale.owner, stale.id)
        messages = _ask_for_summary(session, evicted)
        config = replace(session.model, max_output_tokens=SUMMARY_TOKENS)
        counted, cap = engine.contexts.count_said(messages), session.budgets.max_cost_per_day_usd
        cost = engine.catalog.price(Usage(counted, SUMMARY_TOKENS), engine.name(config)) or 0.0
        if cap is not None and await engine.money.spent_today(session.owner) + cost > cap:
            return
        answer = await collect(engine.model.stream(ModelRequest(messages, [], config)), lambda text: None)
        spent = billed([engine.money.bill(engine.name(config), answer, counted)])
        engine.money.spend_beside(session.owner, spent.cost_usd)
        whole = answer.stop_reason != "length"
        await self._save(session, redact(answer.content.strip()) if whole else "", spent)

    async def _save(self, session: Session, summary: str, spent: Stats) -> None:
        """Keep a summary, if the digest that it covers is still there; lines that were added since stay."""
        covered = session.memory.digest

        def change(latest: Session) -> Session:
            memory = latest.memory
            if summary and memory.summary == session.memory.summary and memory.digest.startswith(covered):
                memory = replace(memory, summary=summary, digest=memory.digest[len(covered) :].lstrip("\n"))
            return replace(latest, memory=memory, stats=latest.stats + spent)

        await change_session(self._store, session.owner, session.id, change)


def _ask_for_summary(session: Session, evicted: Sequence[MessageEntry]) -> list[dict[str, Any]]:
    memory = session.memory
    said = "\n".join(f"{m.name or m.role}: {m.text[:MAX_CHARS]}" for m in evicted if m.text)
    parts = (
        ("The summary so far", memory.summary),
        ("Notes on what came since", memory.digest),
        ("What was said last", said),
    )
    text = "\n\n".join(f"{title}:\n{part}" for title, part in parts if part)
    return [{"role": "system", "content": SUMMARISE}, {"role": "user", "content": text}]


def _text(turn: Sequence[StoredMessage]) -> str:
    """Return what was said in a turn, for an embedder; tool results would drown it."""
    said = [m.message.text for m in turn if m.message.role in ("user", "assistant") and m.message.text]
    return "\n".join(said)[:MAX_CHARS]
