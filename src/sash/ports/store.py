"""The store contract: what a backend keeps, and what it promises. One test suite holds all backends to it.

Promises, for every backend:

* A write is atomic and durable when its call returns; it is done whole or not at all.
* Every record has an owner. No call sees or changes what belongs to another owner: it is not found.
* A session has at most one continuation that is running or awaiting approval (`SessionBusy`), across
  processes. An owner has at most one active session of a name (`SessionExists`), across processes.
* A worker holds a continuation by a lease on the store's clock. `epoch` grows with every change of claim, and
  a write under an old epoch raises `LeaseLost` and changes nothing; so does a write to what was deleted.
* Steps of a session have cursors 1, 2, 3, … in the order in which they became visible, without a gap.
* A driver's failure is a `StoreUnavailable`; nothing is half written, and the store goes on when the cause
  is gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from sash.errors import (
    ContinuationFinal,
    InvalidInput,
    SessionBusy,
    SessionChanged,
    SessionEnded,
    SessionExists,
)
from sash.memory.window import Reason
from sash.values.continuations import (
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationResponse,
    Status,
)
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.step_codec import JsonBody
from sash.values.steps import Step, StepBody

# How a continuation can wait for somebody to go on with it.
WaitingStatus = Literal["awaiting_approval", "interrupted"]

T = TypeVar("T")

LEASE_S = 30.0
# One that would last longer was taken before the clock was set back.
LONGEST_LEASE = timedelta(hours=1)
MAX_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a continuation."""

    continuation_id: str
    session_id: str
    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Into which claim a turn goes, and for how long before they have to ask again.

    `known` is the session as this worker knows it with its window: if that is still so neither is read again.
    """

    worker: str
    lease_s: float = LEASE_S
    known: Session | None = None

    def knows(self, version: int) -> bool:
        """Whether this worker knows this version of the session."""
        return self.known is not None and self.known.version == version


@dataclass(frozen=True, slots=True)
class Turn:
    """What a worker needs to run a continuation, or to go on with it.

    `window` is None if the session is still as the worker said that it knows it.
    """

    lease: Lease
    continuation: Continuation
    session: Session
    window: ConversationWindow | None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """What became of a request: `turn` to be run, or None if it waits or was there before."""

    continuation: Continuation
    turn: Turn | None
    created: bool


@dataclass(frozen=True, slots=True)
class Evicted:
    """A message that left the window, and why."""

    message_id: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Cut:
    """What moves when the window is cut: what left it, where its turns begin now, the digest of what left."""

    evicted: tuple[Evicted, ...]
    turn_starts: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn, written in one transaction with all that it leaves behind."""

    status: Status
    steps: tuple[JsonBody, ...]
    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    messages: tuple[MessageEntry, ...] = ()
    cut: Cut | None = None
    stats: Stats = NO_STATS


@dataclass(frozen=True, slots=True)
class EndWritten:
    """The last steps of an ended continuation, and whether another one of its session waits."""

    steps: tuple[Step, ...]
    next_waits: bool


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a transcript: its place, its turn, and whether a model still sees it."""

    session_id: str
    position: int
    message: MessageEntry
    in_window: bool
    continuation_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step with the continuation it belongs to: what a subscriber of the session sees."""

    continuation_id: str
    step: Step


@dataclass(frozen=True, slots=True)
class Vector:
    """What a model of embeddings made of the evicted turn that begins at a position."""

    __pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}  # noqa: RUF012

    position: int
    model: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Artifact:
    """A large result and what it is."""

    __pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}  # noqa: RUF012

    ref: ArtifactRef
    session_id: str
    owner: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """What a sweep ended."""

    sessions: int = 0
    continuations: int = 0
    steps: int = 0

    def __add__(self, other: "SweepCounts") -> "SweepCounts":
        return SweepCounts(
            self.sessions + other.sessions,
            self.continuations + other.continuations,
            self.steps + other.steps,
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A whole session, for export and import."""

    session: Session
    continuations: tuple[Continuation, ...] = ()
    steps: tuple[StoredStep, ...] = ()
    messages: tuple[StoredMessage, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    turn_starts: tuple[str, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    evicted_count: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, and the cursor that brings the next ones."""

    items: tuple[Any, ...] = field(default_factory=tuple)
    next_cursor: str | None = None


class Store(Protocol):
    """Where sessions live. See the module's docstring for what every method promises."""

    async def open(self) -> None:
        """Get ready, if it is not; migrate what an older version wrote."""

    async def close(self) -> None:
        """Write what is still to be written, and let go."""

    async def create_session(self, session: Session) -> None: ...

    async def get_session(self, owner: str, session_id: str) -> Session: ...

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """List sessions, newest first: all, or those of a status or a name."""

    async def find_session(self, owner: str, name: str) -> Session | None:
        """Return the active session of a name, or if there is none the newest one that had it."""

    async def count_active(self, owner: str) -> int:
        """Return how many active sessions an owner has."""

    async def save_session(self, session: Session) -> Session:
        """Write a changed session, unless somebody else did since it was read (`SessionChanged`)."""

    async def delete_session(self, owner: str, session_id: str) -> None:
        """Delete a session to its last byte; a late write does not bring it back."""

    async def erase(self, owner: str) -> int:
        """Delete everything of an owner, and return how many sessions that were."""

    async def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        """Open a continuation, or return the one that has the same idempotency key.

        If another one holds the session: `SessionBusy`, or with `enqueue` it waits as `pending`.
        """

    async def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        """Take over a continuation that waits: pending, interrupted or awaiting approval."""

    async def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        """Take over the oldest pending continuation of a session that nobody holds."""

    async def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        give_back: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
    ) -> tuple[Step, ...]:
        """Write steps; with `give_back` also give the lease back, for the continuation to wait so.

        `stats` is what it took until then, which its end says anew.
        """

    async def finish(self, lease: Lease, end: TurnEnd) -> EndWritten:
        """End a continuation, with the messages it adds to the transcript and what they evict.

        A session with `is_one_question` ends with it, as by `cancel`.
        """

    async def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        """Write a turn that is over as it begins, unless the session has changed (`SessionChanged`).

        `session` is as it was when the end was made of it. If another turn holds the session: `SessionBusy`.
        The turn that has the same idempotency key is returned instead, without steps.
        """

    async def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        """Replace the answer of a completed turn: in its response, in the transcript and in the window.

        It is a step of the turn and a change of the session. Vectors of the turn are dropped.
        """

    async def cancel(
        self, owner: str, continuation_id: str, reason: str, *, stats: Stats = NO_STATS
    ) -> Continuation:
        """End a continuation; its holder loses the lease. `ContinuationFinal` if it is over already."""

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        """Extend the worker's leases on these continuations, and return those that it still holds."""

    async def interrupt_lost(self) -> list[Continuation]:
        """Mark continuations whose worker is gone as interrupted, and return them."""

    async def waiting(self) -> list[Continuation]:
        """Return what nobody works on: pending or interrupted, in sessions that nobody holds."""

    async def last_id(self) -> str | None:
        """Return the greatest id of a session or continuation, for a clock that was set back."""

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation: ...

    async def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        """List a session's continuations, oldest first; with `open_only` those that are not over."""

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        """Return a continuation with its steps."""

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        """Return a session's steps behind a cursor."""

    async def last_cursor(self, owner: str, session_id: str) -> int:
        """Return the greatest cursor that a session has given, even if its step was swept."""

    async def window(self, owner: str, session_id: str) -> ConversationWindow: ...

    async def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        """Return the continuations that have messages in the window, in the order of these."""

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        """Return what the last cut took out of the window."""

    async def messages(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        """Return the transcript behind a position."""

    async def recall(
        self, owner: str, session_id: str, beginnings: Sequence[str], *, limit: int = 50, said: bool = False
    ) -> list[StoredMessage]:
        """Find evicted messages by words that begin so: for each beginning the newest, by position.

        `said` leaves out what tools have returned.
        """

    async def add_vectors(self, owner: str, session_id: str, vectors: Sequence[Vector], *, keep: int) -> None:
        """Keep vectors; of a session's vectors only the `keep` with the highest positions stay."""

    async def vectors(self, owner: str, session_id: str) -> list[Vector]:
        """Return a session's vectors by position. They are no part of an export: they can be made again."""

    async def turn_stats(self, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
        """Return when the owner's turns since then have ended, and what each took."""

    async def search(
        self, owner: str, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        """Find messages that hold the words of `query`, best first."""

    async def put_artifact(self, artifact: Artifact) -> None: ...

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact: ...

    async def export_session(self, owner: str, session_id: str) -> Bundle: ...

    async def import_session(self, bundle: Bundle) -> Session:
        """Write a whole session and return it; its id must be free, a name that is taken is dropped."""

    async def sweep(self, *, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        """Expire idle sessions and forgotten continuations, and drop the steps of those long ended."""


async def change_session(
    store: Store, owner: str, session_id: str, change: Callable[[Session], Session]
) -> Session:
    """Read a session, change it and save it. If `change` returns the same object, nothing is saved.

    A concurrent change is not lost: the session is read again and `change` is applied again.
    """

    async def attempt() -> Session:
        session = await store.get_session(owner, session_id)
        changed = change(session)
        return session if changed is session else await store.save_session(changed)

    return await retry_on_change(session_id, attempt)


async def retry_on_change(session_id: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat an attempt while it raises `SessionChanged`; after `MAX_CHANGES` attempts, raise it."""
    for n in range(MAX_CHANGES):
        try:
            return await attempt()
        except SessionChanged:
            await asyncio.sleep(0.001 * n)
    raise SessionChanged(
        f"session {session_id} is changed by others all the time: try again", session_id=session_id
    )


def page_of_sessions(
    sessions: Iterable[Session], status: SessionStatus | None, limit: int, cursor: str | None
) -> Page:
    """Cut a page out of an owner's sessions: newest first, behind the session that `cursor` names."""
    matching = sorted(
        (s for s in sessions if status in (None, s.status) and (cursor is None or s.id < cursor)),
        key=lambda session: session.id,
        reverse=True,
    )
    chosen = tuple(matching[:limit])
    return Page(chosen, chosen[-1].id if len(matching) > limit else None)


def check_version(stored: Session, changed: Session) -> None:
    """Refuse a change of a session that somebody else has changed meanwhile."""
    if stored.version != changed.version:
        raise SessionChanged(
            f"session {changed.id} was changed meanwhile: read it again and repeat the change",
            session_id=changed.id,
        )


def name_taken(session: Session) -> SessionExists:
    """Say that another active session has the name."""
    return SessionExists(
        f"an active session is named {session.name!r} already: go on with that one, or end it first",
    )


def parts_exist(session_id: str) -> SessionExists:
    """Say that an import has ids that belong to somebody."""
    return SessionExists(
        f"parts of session {session_id} exist already in another session: fork that one instead",
        session_id=session_id,
    )


def check_begin(session: Session) -> None:
    """Refuse a turn in a session that is over."""
    if session.status != "active":
        raise SessionEnded(
            f"session {session.id} is {session.status}: start a new one, or fork it",
            session_id=session.id,
        )


def busy(session_id: str, continuation_id: str) -> SessionBusy:
    """Say who holds the session."""
    return SessionBusy(
        f"session {session_id} is busy with {continuation_id}: await or cancel it, or send with "
        "busy='enqueue' or busy='interrupt'",
        session_id=session_id,
        continuation_id=continuation_id,
    )


def already_final(continuation: Continuation) -> ContinuationFinal:
    """Say that it is over."""
    return ContinuationFinal(
        f"continuation {continuation.id} is {continuation.status}: retry it to run the turn again",
        continuation_id=continuation.id,
    )


def amended(
    continuation: Continuation, answer: MessageEntry | None, text: str, token_count: int
) -> tuple[Continuation, MessageEntry]:
    """Return a turn and its answer as an amendment leaves them; refuse it where there is no answer."""
    if continuation.status != "completed":
        message = (
            f"continuation {continuation.id} is {continuation.status}: only the answer of a completed turn "
            "can be amended"
        )
        if continuation.is_final:
            raise ContinuationFinal(message, continuation_id=continuation.id)
        raise InvalidInput(message)
    if answer is None or answer.role != "assistant" or answer.tool_calls:
        raise InvalidInput(f"continuation {continuation.id} has left no answer that could be amended")
    response = replace(continuation.response or ContinuationResponse(""), final_message=text)
    return replace(continuation, response=response), replace(answer, content=text, token_count=token_count)


def after_turn(session: Session, end: TurnEnd, now: datetime) -> Session:
    """Return the session as the end of a turn leaves it; what others changed meanwhile stays."""
    memory = session.memory
    if end.cut is not None:
        memory = replace(memory, digest=end.cut.digest, cut_at=now)
    is_over = session.status == "active" and session.is_one_question
    return replace(
        session,
        status="ended" if is_over else session.status,
        memory=memory,
        stats=session.stats + end.stats,
        updated_at=now,
        version=session.version + 1,
    )


def ended(continuation: Continuation, end: TurnEnd, at: datetime) -> Continuation:
    """Return the continuation as its end leaves it."""
    return replace(
        continuation,
        status=end.status,
        updated_at=at,
        response=end.response,
        error=end.error,
        artifacts=end.artifacts,
        stats=continuation.stats if end.stats is NO_STATS else end.stats,
    )


def number_steps(steps: Sequence[StepBody], n: int, cursor: int, now: datetime) -> tuple[Step, ...]:
    """Give steps their numbers and places behind those that are there."""
    return tuple(Step(n + k, now, body, cursor + k) for k, body in enumerate(steps, 1))


def is_over(lease_until: datetime, now: datetime) -> bool:
    """Whether a lease has run out."""
    return not now < lease_until <= now + LONGEST_LEASE


def lease_end(now: datetime, lease_s: float) -> datetime:
    """When a lease that is taken now runs out."""
    return now + timedelta(seconds=lease_s)
