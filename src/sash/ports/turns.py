"""The values that a worker and a store exchange about a turn: claim, lease, eviction and end."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from sash.memory.window import Reason
from sash.values.continuations import (
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationResponse,
    Status,
)
from sash.values.copies import copy_with
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.prompts import NO_PROMPTS, SentPrompts
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.step_codec import JsonBody
from sash.values.steps import Step

# The statuses in which a continuation waits after its worker released it.
WaitingStatus = Literal["awaiting_approval", "interrupted"]

LEASE_S = 30.0


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a continuation, until the lease expires or the epoch changes."""

    continuation_id: str
    session_id: str
    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The worker that wants a lease, and the lease's duration in seconds.

    `known` is the session that the worker has in its cache, together with the window. If the stored session
    has the same version, the store reads neither the session nor the window. `step_count` is the number of
    the turn's steps that the caller has read. If the turn has gone on since, the claim is refused.
    `max_open` is the number of turns that may run in the session at the same time.
    """

    worker: str
    lease_s: float = LEASE_S
    known: Session | None = None
    step_count: int | None = None
    max_open: int = 1

    def knows(self, version: int) -> bool:
        """Return True if the worker that claims has this version of the session in its cache."""
        return self.known is not None and self.known.version == version


@dataclass(frozen=True, slots=True)
class Turn:
    """A continuation to run or resume. `window` is None if `ClaimRequest.known` is current.

    `cursor` is the last cursor that the session had assigned when the turn was begun or claimed.
    """

    lease: Lease
    continuation: Continuation
    session: Session
    window: ConversationWindow | None
    steps: tuple[Step, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """The result of `begin`. `turn` is None if the continuation is queued or existed before."""

    continuation: Continuation
    turn: Turn | None
    created: bool


@dataclass(frozen=True, slots=True)
class Evicted:
    """A message that left the window, and the reason."""

    message_id: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Cut:
    """An eviction: the evicted messages, the new starts of turns, and the digest of everything evicted.

    `turn_starts` holds message ids, as in `ConversationWindow`.
    """

    evicted: tuple[Evicted, ...]
    turn_starts: tuple[str, ...]
    digest: str


class SessionTotals(NamedTuple):
    """The fields of a session that the end of every turn changes."""

    status: SessionStatus
    version: int
    stats: Stats
    is_one_question: bool

    @classmethod
    def of(cls, session: Session) -> "SessionTotals":
        return cls(session.status, session.version, session.stats, session.is_one_question)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn. The store writes all of it in one transaction."""

    status: Status
    steps: tuple[JsonBody, ...]
    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    messages: tuple[MessageEntry, ...] = ()
    cut: Cut | None = None
    stats: Stats = NO_STATS
    prompts: SentPrompts = NO_PROMPTS

    def apply_to_continuation(self, continuation: Continuation, now: datetime) -> Continuation:
        """Return a copy of the continuation as it is after this end."""
        return copy_with(
            continuation,
            status=self.status,
            updated_at=now,
            response=self.response,
            error=self.error,
            artifacts=self.artifacts,
            stats=self.choose_stats(continuation.stats),
        )

    def choose_stats(self, stored: Stats | None) -> Stats | None:
        """Return the stats of this end, or `stored` if this end has none."""
        return stored if self.stats is NO_STATS else self.stats

    def apply_to_totals(self, totals: SessionTotals) -> SessionTotals:
        """Return the totals of the session after this end. A session for one question ends with its turn."""
        ends = totals.status == "active" and totals.is_one_question
        return SessionTotals(
            "ended" if ends else totals.status,
            totals.version + 1,
            totals.stats + self.stats,
            totals.is_one_question,
        )

    def apply_to_session(self, session: Session, now: datetime) -> Session:
        """Return a copy of the session as it is after this end."""
        memory = session.memory
        if self.cut is not None:
            memory = replace(memory, digest=self.cut.digest, cut_at=now)
        status, version, stats, _ = self.apply_to_totals(SessionTotals.of(session))
        return copy_with(session, status=status, version=version, stats=stats, memory=memory, updated_at=now)


CANCELLED = TurnEnd("cancelled", ())


@dataclass(frozen=True, slots=True)
class EndWritten:
    """The last steps of an ended continuation. `next_waits` is True if the session has a pending turn."""

    steps: tuple[Step, ...]
    next_waits: bool
