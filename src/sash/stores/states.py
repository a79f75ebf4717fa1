"""The states that the rules read, and the changes that they return."""

from datetime import datetime
from typing import Generic, Literal, NamedTuple, TypeVar

from sash.ports.turns import SessionTotals, WaitingStatus
from sash.values.bounds import Natural
from sash.values.continuations import Continuation
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
from sash.values.stats import Stats
from sash.values.steps import Step

T = TypeVar("T")


class LeaseState(NamedTuple):
    """The stored lease of a continuation. Without a worker, no lease is held."""

    worker: str | None = None
    until: datetime | None = None
    epoch: int = 0

    def release(self) -> "LeaseState":
        """Return the state after a release. Its new epoch makes writes of the old worker fail."""
        return LeaseState(epoch=self.epoch + 1)


NO_LEASE = LeaseState()


class Holders(NamedTuple):
    """The turns of a session that run or await approval: the id of the oldest, and their number."""

    oldest_id: str | None
    number: int


class SessionState(NamedTuple):
    """A session before a new turn. `holder_id` is the oldest turn that runs or awaits approval, or None.

    `holder_count` counts these turns, and `pending_count` the queued ones. SQLite's statement `session_state`
    computes the three fields.
    """

    version: Natural
    message_count: Natural
    cursor: Natural
    holder_id: str | None
    holder_count: Natural
    pending_count: Natural

    @property
    def holders(self) -> "Holders":
        return Holders(self.holder_id, self.holder_count)


class TurnState(NamedTuple):
    """A continuation before a write. `cursor` is the last cursor that its session has assigned."""

    lease: LeaseState
    step_count: int
    cursor: int


class EndState(NamedTuple):
    """A continuation and its session before the end of the turn."""

    turn: TurnState
    message_count: int
    has_pending: bool
    totals: SessionTotals


class Release(NamedTuple):
    """A worker's release of a continuation: the status in which it waits, and its stats so far."""

    status: WaitingStatus
    stats: Stats


class OpenChange(NamedTuple):
    """The session that opens a name. `write` says how to store it; None means that it is stored already."""

    session: Session
    write: Literal["insert", "update"] | None


class BeginChange(NamedTuple):
    """The continuation that a request got. Without a lease it is queued, or `created` is False."""

    continuation: Continuation
    lease: LeaseState
    created: bool


class TurnChange(NamedTuple):
    """A continuation after a change, its new steps, and its new lease state."""

    continuation: Continuation
    steps: tuple[Step, ...]
    lease: LeaseState


class ReleasedFields(NamedTuple):
    """The fields of a continuation that a release changes, with their new values."""

    status: WaitingStatus
    updated_at: datetime
    stats: Stats


class AppendChange(NamedTuple):
    """The numbered steps, and the lease state after the write. `released` is None without a release."""

    steps: tuple[Step, ...]
    lease: LeaseState
    released: ReleasedFields | None


class EndChange(NamedTuple):
    """The changes at the end of a turn, except the continuation and the cut, which `TurnEnd` has."""

    steps: tuple[Step, ...]
    lease: LeaseState
    cursor: int
    message_count: int
    messages: tuple[tuple[int, MessageEntry], ...]
    totals: SessionTotals
    next_waits: bool

    @property
    def answer_position(self) -> int | None:
        """The position of the turn's last message, or None if it left no message."""
        return self.messages[-1][0] if self.messages else None


class CutChange(NamedTuple, Generic[T]):
    """The parts of a window that a cut keeps and evicts. `evicted_count` counts those of all cuts."""

    kept: dict[str, T]
    evicted: dict[str, T]
    evicted_count: int


class AmendChange(NamedTuple):
    """A turn, its answer and its session after an amendment."""

    session: Session
    continuation: Continuation
    answer: MessageEntry
    steps: tuple[Step, ...]
