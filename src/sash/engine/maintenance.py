"""Work outside of any turn: vectors and summaries of evicted messages, and facts in the user's messages.

All of it is optional. If it fails, the session stays as it is. The next eviction tries again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from sash.engine.budget import Spending
from sash.engine.ceiling import find_limits
from sash.engine.fact_extraction import FACT_TOKENS, FactExtractor, ask_for_facts
from sash.engine.foreign_code import run_foreign
from sash.engine.message_vectors import MessageVectors
from sash.engine.redaction import redact
from sash.errors import AnswerCutOff, ModelError
from sash.ports.embedder import Embedder
from sash.ports.model import Answer, Model, ModelRequest, Usage, collect
from sash.ports.session_rules import change_session
from sash.ports.store import Store
from sash.values.continuations import Continuation
from sash.values.messages import MessageEntry
from sash.values.sessions import OperatorLimits, Session
from sash.values.stats import Stats, sum_bills

MAX_CHARS = 4000
# A summary gets this part of the tokens, because a digest of later turns stands beside it.
PART_FOR_SUMMARY = 4
TIMEOUT_S = 60.0

SUMMARISE = (
    "Summarise the earlier part of a conversation for the assistant that will go on with it. Keep names, "
    "numbers, error codes, paths, decisions and open questions word for word. Write at most 300 words, and "
    "nothing else."
)

# What a log line says of each kind of job that fails.
_FAILURES = {
    "vectors": "embedding old messages of session %s failed, the next eviction tries again: %s; "
    "run `sash doctor`",
    "summary": "summarising session %s failed, the next eviction tries again: %s",
    "facts": "looking for facts in a message of session %s failed: %s",
}

_logger = logging.getLogger(__name__)


class _Written(NamedTuple):
    """A text of the model, empty if it was cut off, and what it cost."""

    text: str
    spent: Stats


class Maintenance:
    """Embeds and summarises evicted messages, and notes facts.

    A summary needs `summaries`, a vector an embedder, and a fact a `fact_extractor`.
    """

    def __init__(
        self,
        store: Store,
        model: Model,
        spending: Spending,
        *,
        embedder: Embedder | None,
        summaries: bool,
        summary_tokens: int,
        operator: OperatorLimits,
        fact_extractor: FactExtractor | None,
        on_session: Callable[[Session], None],
    ) -> None:
        """`on_session` is called with every session that got a summary or the cost of a model call."""
        self._store = store
        self._model = model
        self._spending = spending
        self._summaries = summaries
        self._summary_tokens = summary_tokens // PART_FOR_SUMMARY
        self._operator = operator
        self._vectors = None if embedder is None else MessageVectors(store, spending, operator, embedder)
        self._fact_extractor = fact_extractor
        self._on_session = on_session
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def after_cut(self, session: Session, evicted: Sequence[MessageEntry]) -> None:
        """Start to embed evicted messages, and to summarise `evicted`, in the background.

        After a reset `evicted` is empty, because a summary must not have turns from before it.
        """
        if self._vectors is not None:
            self._spawn("vectors", session, partial(self._vectors.make, session))
        if self._summaries and evicted:
            self._spawn("summary", session, partial(self._summarise, session, evicted))

    def after_turn(self, session: Session, turn: Continuation) -> None:
        """Start to look for lasting facts in the user's message of a turn, in the background."""
        if self._fact_extractor is not None:
            self._spawn("facts", session, partial(self._extract_facts, self._fact_extractor, turn))

    async def close(self) -> None:
        """Cancel the running jobs and wait for their end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until no job is running."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, what: str, session: Session, work: Callable[[], Awaitable[None]]) -> None:
        """Run a job in the background. Jobs of the same kind and session run one after the other."""
        lock = self._locks.setdefault((what, session.id), asyncio.Lock())

        async def run() -> None:
            try:
                async with lock, asyncio.timeout(TIMEOUT_S):
                    await run_foreign(work())
            except Exception as error:
                _logger.warning(_FAILURES[what], session.id, redact(str(error) or type(error).__name__))

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reserve(self, session: Session, usd: float) -> AbstractAsyncContextManager[bool]:
        """Reserve dollars. The block gets False if the session's budget of the day does not allow them."""
        budgets = find_limits(session, self._operator).budgets
        return self._spending.reserve(session.owner, usd, budgets.max_cost_per_day_usd)

    async def _summarise(self, stale: Session, evicted: Sequence[MessageEntry]) -> None:
        """Replace the summary and the digest by a new summary of both and of the evicted messages."""
        session = await self._store.get_session(stale.owner, stale.id)
        written = await self._write(session, _ask_for_summary(session, evicted), self._summary_tokens)
        if written is not None:
            await self._save(session, redact(written.text), written.spent)

    async def _extract_facts(self, extractor: FactExtractor, turn: Continuation) -> None:
        """Note the lasting facts of a turn's message for the owner. The session pays for the call."""
        session, message = await self._store.get_session(turn.owner, turn.session_id), turn.request.message
        known = await extractor.list_known(session)
        written = await self._write(session, ask_for_facts(message[:MAX_CHARS], known), FACT_TOKENS)
        if written is None:
            return

        def pay(latest: Session) -> Session:
            return replace(latest, stats=latest.stats + written.spent)

        self._on_session(await change_session(self._store, session.owner, session.id, pay))
        await extractor.add(turn, written.text, known)

    async def _write(
        self, session: Session, messages: list[dict[str, Any]], max_tokens: int
    ) -> _Written | None:
        """Ask the model for a text outside of a turn, and pay for it.

        Return None if the price is unknown or the day's money does not suffice.
        """
        config = replace(find_limits(session, self._operator).model, max_output_tokens=max_tokens)
        if self._spending.has_unknown_cost(config):
            return None
        names = (config.name or self._model.name, *self._model.names[1:])
        counted = sum(self._spending.counter.count_message(m["content"]) for m in messages)
        usage, price = Usage(counted, max_tokens), self._spending.catalog.price
        async with self._reserve(session, max(price(usage, name) or 0.0 for name in names)) as is_allowed:
            if not is_allowed:
                return None
            answer = await self._ask_model(session.owner, ModelRequest(messages, [], config), counted)
            spent = sum_bills([self._spending.bill(names[0], answer, counted)])
            await self._store.spend(session.owner, spent.cost_usd)
        is_complete = answer.stop_reason != "length"
        return _Written(answer.content.strip() if is_complete else "", spent)

    async def _ask_model(self, owner: str, request: ModelRequest, counted: int) -> Answer:
        """Return the answer. A call that is stopped or cut off is paid for, as it is in a turn."""
        written: deque[str] = deque(maxlen=1)
        try:
            return await collect(self._model.stream(request), written.append)
        except BaseException as error:
            if written or isinstance(error, AnswerCutOff) or not isinstance(error, ModelError):
                name, answer = request.config.name or self._model.name, Answer("".join(written))
                await self._store.spend(owner, self._spending.bill(name, answer, counted).cost_usd or 0.0)
            raise

    async def _save(self, session: Session, summary: str, spent: Stats) -> None:
        """Save a summary if the digest that it covers is unchanged; newer lines of the digest stay."""
        covered = session.memory.digest

        def change(latest: Session) -> Session:
            memory = latest.memory
            is_same = (memory.summary, memory.reset_at) == (session.memory.summary, session.memory.reset_at)
            if summary and is_same and memory.digest.startswith(covered):
                memory = replace(memory, summary=summary, digest=memory.digest[len(covered) :].lstrip("\n"))
            return replace(latest, memory=memory, stats=latest.stats + spent)

        self._on_session(await change_session(self._store, session.owner, session.id, change))


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
