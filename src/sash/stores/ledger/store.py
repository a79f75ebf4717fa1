"""The async methods of the store contract, for a backend that keeps ledgers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

from sash.ports.store import (
    LEASE_S,
    Artifact,
    BegunTurn,
    Bundle,
    ClaimRequest,
    EndWritten,
    Evicted,
    Lease,
    Page,
    StoredMessage,
    StoredStep,
    SweepCounts,
    Turn,
    TurnEnd,
    Vector,
    WaitingStatus,
)
from sash.stores.ledger.ledgers import Ledgers
from sash.values.continuations import Continuation
from sash.values.messages import ConversationWindow
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Step, StepBody

T = TypeVar("T")


class LedgerStore(ABC):
    """A store whose sessions are ledgers. A subclass decides in which thread the jobs run."""

    @abstractmethod
    async def _run(self, job: Callable[[Ledgers], T]) -> T:
        """Run a job on the ledgers."""

    async def create_session(self, session: Session) -> None:
        await self._run(lambda ledgers: ledgers.create_session(session))

    async def open_session(self, session: Session, *, reopen: bool = False) -> Session:
        return await self._run(lambda ledgers: ledgers.open_session(session, reopen))

    async def get_session(self, owner: str, session_id: str) -> Session:
        return await self._run(lambda ledgers: ledgers.get_session(owner, session_id))

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        return await self._run(lambda ledgers: ledgers.list_sessions(owner, status, name, limit, cursor))

    async def find_session(self, owner: str, name: str) -> Session | None:
        return await self._run(lambda ledgers: ledgers.find_session(owner, name))

    async def count_active(self, owner: str) -> int:
        return await self._run(lambda ledgers: ledgers.count_active(owner))

    async def save_session(self, session: Session) -> Session:
        return await self._run(lambda ledgers: ledgers.save_session(session))

    async def delete_session(self, owner: str, session_id: str) -> None:
        await self._run(lambda ledgers: ledgers.delete_session(owner, session_id))

    async def erase(self, owner: str) -> int:
        return await self._run(lambda ledgers: ledgers.erase(owner))

    async def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        return await self._run(lambda ledgers: ledgers.begin(new, claim, enqueue))

    async def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        return await self._run(lambda ledgers: ledgers.claim(owner, continuation_id, claim, steps))

    async def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        return await self._run(lambda ledgers: ledgers.claim_next(session_id, claim))

    async def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        release_as: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
    ) -> tuple[Step, ...]:
        return await self._run(lambda ledgers: ledgers.append(lease, steps, release_as, stats))

    async def finish(self, lease: Lease, end: TurnEnd) -> EndWritten:
        return await self._run(lambda ledgers: ledgers.finish(lease, end))

    async def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        return await self._run(lambda ledgers: ledgers.record(new, end, session))

    async def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        return await self._run(lambda ledgers: ledgers.amend(owner, continuation_id, text, token_count))

    async def cancel(
        self, owner: str, continuation_id: str, reason: str, *, stats: Stats = NO_STATS
    ) -> Continuation:
        def job(ledgers: Ledgers) -> Continuation:
            ledgers.cancel(owner, continuation_id, reason, stats)
            return ledgers.get_continuation(owner, continuation_id)

        return await self._run(job)

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        return await self._run(lambda ledgers: ledgers.renew(worker, continuation_ids, lease_s))

    async def interrupt_lost(self) -> list[Continuation]:
        return await self._run(lambda ledgers: ledgers.interrupt_lost())

    async def waiting(self) -> list[Continuation]:
        return await self._run(lambda ledgers: ledgers.waiting())

    async def last_id(self) -> str | None:
        return await self._run(lambda ledgers: ledgers.last_id())

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return await self._run(lambda ledgers: ledgers.get_continuation(owner, continuation_id))

    async def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        return await self._run(lambda ledgers: ledgers.list_continuations(owner, session_id, open_only))

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        return await self._run(lambda ledgers: ledgers.journal(owner, continuation_id))

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        return await self._run(lambda ledgers: ledgers.events(owner, session_id, after, limit))

    async def last_cursor(self, owner: str, session_id: str) -> int:
        return await self._run(lambda ledgers: ledgers.last_cursor(owner, session_id))

    async def window(self, owner: str, session_id: str) -> ConversationWindow:
        return await self._run(lambda ledgers: ledgers.window(owner, session_id))

    async def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        return await self._run(lambda ledgers: ledgers.window_turns(owner, session_id))

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        return await self._run(lambda ledgers: ledgers.evicted(owner, session_id))

    async def messages(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        return await self._run(lambda ledgers: ledgers.messages(owner, session_id, after, limit))

    async def recall(
        self,
        owner: str,
        session_id: str,
        prefixes: Sequence[str],
        *,
        limit: int = 50,
        skip_tools: bool = False,
    ) -> list[StoredMessage]:
        return await self._run(lambda ledgers: ledgers.recall(owner, session_id, prefixes, limit, skip_tools))

    async def add_vectors(self, owner: str, session_id: str, vectors: Sequence[Vector], *, keep: int) -> None:
        await self._run(lambda ledgers: ledgers.add_vectors(owner, session_id, vectors, keep))

    async def vectors(self, owner: str, session_id: str) -> list[Vector]:
        return await self._run(lambda ledgers: ledgers.vectors(owner, session_id))

    async def turn_stats(self, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
        return await self._run(lambda ledgers: ledgers.turn_stats(owner, since))

    async def search(
        self, owner: str, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        return await self._run(lambda ledgers: ledgers.search(owner, query, session_id, limit))

    async def put_artifact(self, artifact: Artifact) -> None:
        await self._run(lambda ledgers: ledgers.put_artifact(artifact))

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        return await self._run(lambda ledgers: ledgers.get_artifact(owner, artifact_id))

    async def export_session(self, owner: str, session_id: str) -> Bundle:
        return await self._run(lambda ledgers: ledgers.export_session(owner, session_id))

    async def import_session(self, bundle: Bundle) -> Session:
        return await self._run(lambda ledgers: ledgers.import_session(bundle))

    async def sweep(self, *, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        return await self._run(lambda ledgers: ledgers.sweep(idle_before, ended_before))
