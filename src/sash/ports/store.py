"""The store contract: the methods of a store and the values that they return.

A continuation is the execution of one turn. Every backend makes these promises, and one test suite checks
them for all backends:

* A write is atomic, and it is durable when its call returns.
* Every record has an owner. A call for another owner's record raises the matching "not found" error.
* A session has at most one continuation that is running or awaiting approval (`SessionBusy`). An owner has at
  most one active session of a name (`SessionExists`). Both hold across processes.
* A worker holds a continuation by a lease, which expires by the store's clock. `epoch` grows with every claim
  and release. A write with an old epoch, or to a deleted session, raises `LeaseLost` and changes nothing.
* Spent money stays counted: a deletion, an erasure or an import does not change the sum of `turn_stats`.
* The steps of a session have cursors 1, 2, 3, … without a gap, in the order in which they became visible.
* A failed driver raises `StoreUnavailable`. Nothing is half written. The store works when the cause is gone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from sash.memory.asked_words import AskedWord
from sash.memory.recall_ranking import Place, Spot, WordHits
from sash.ports.turns import (
    CANCELLED,
    LEASE_S,
    BegunTurn,
    ClaimRequest,
    Cut,
    EndWritten,
    Evicted,
    Lease,
    Turn,
    TurnEnd,
    WaitingStatus,
)
from sash.values.bounds import Natural
from sash.values.continuations import ArtifactRef, Continuation, Status, TurnCaller
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.owner_notes import OwnerNotes
from sash.values.prompts import NO_PROMPTS, SentPrompts
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Step, StepBody
from sash.values.waiting_turns import WaitingTurn
from sash.values.window_stats import WindowTotals

# `first_texts` looks at this many messages of a session.
FIRST_MESSAGES = 16


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a transcript, with its position (from 1) and its turn."""

    session_id: str
    position: Natural
    message: MessageEntry
    in_window: bool
    continuation_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step with the id of its continuation, as a subscriber of the session receives it."""

    continuation_id: str
    step: Step


@dataclass(frozen=True, slots=True)
class Vector:
    """The embedding of an evicted message, from the embedder with the name `model`."""

    __pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}  # noqa: RUF012

    position: Natural
    model: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Artifact:
    """A large result, kept outside the transcript."""

    __pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}  # noqa: RUF012

    ref: ArtifactRef
    session_id: str
    owner: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """How many sessions and continuations a sweep expired, and how many records it deleted."""

    sessions: int = 0
    continuations: int = 0
    steps: int = 0
    deleted_sessions: int = 0
    artifacts: int = 0

    def __add__(self, other: "SweepCounts") -> "SweepCounts":
        return SweepCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


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
    evicted_count: Natural = 0
    waiting_turns: tuple[WaitingTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Some records of a list. `next_cursor` is None on the last page."""

    items: tuple[Any, ...] = field(default_factory=tuple)
    next_cursor: str | None = None


@runtime_checkable
class Store(Protocol):
    """The methods of every backend. The module's docstring says what all of them promise."""

    async def open(self) -> None:
        """Open the store, unless it is open. Migrate data of an older version."""

    async def close(self) -> None:
        """Finish pending writes and release all resources."""

    async def export_key(self) -> bytes:
        """Return 32 random bytes, which the store keeps from its creation on. They sign exports."""

    async def check_write(self) -> None:
        """Write something without meaning to the disk. Raise `StoreUnavailable` if that fails."""

    async def create_session(self, session: Session) -> None: ...

    async def open_session(self, session: Session, *, reopen: bool = False) -> Session:
        """Return the owner's active session with the name of `session`, or create `session` and return it.

        With `reopen`, an expired session of that name becomes active again instead. A created session counts
        the turns of the session before it (`turns_before`). All of this is one atomic write, also across
        processes. A session without a name is created.
        """

    async def get_session(self, owner: str, session_id: str) -> Session: ...

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        with_questions: bool = False,
    ) -> Page:
        """List an owner's sessions, newest first, optionally of one status or one name.

        Ended sessions for one question (`is_one_question`) are listed only `with_questions`.
        """

    async def find_session(self, owner: str, name: str) -> Session | None:
        """Return the active session with this name, else the newest session that had it, else None."""

    async def count_active(self, owner: str) -> int:
        """Return the number of an owner's active sessions."""

    async def save_session(self, session: Session, *, cut: Cut | None = None) -> Session:
        """Write a changed session. Raise `SessionChanged` if it has changed since the caller read it.

        With `cut`, evict messages from its window, too. Then raise `SessionBusy` if a turn holds the session.
        """

    async def delete_session(self, owner: str, session_id: str) -> None:
        """Delete a session and every record of it. A write that arrives later does not restore it."""

    async def list_inactive(self, owner: str, before: datetime) -> list[str]:
        """Return the ids of the ended and expired sessions that have not changed since `before`."""

    async def delete_inactive(self, owner: str, before: datetime) -> int:
        """Delete the sessions that `list_inactive` returns, and return their number."""

    async def erase(self, owner: str) -> int:
        """Delete all data of an owner except the spent dollars, and return the number of sessions."""

    async def owner_notes(self, owner: str) -> OwnerNotes:
        """Return the notes of an owner. They are empty if nothing was saved."""

    async def save_owner_notes(self, notes: OwnerNotes, *, asked_in: str | None = None) -> OwnerNotes:
        """Write changed notes and return them. Raise `NotesChanged` if the caller read an older version.

        With `asked_in`, raise `SessionNotFound` if the owner has no session of this id. So a turn writes no
        notes after its owner was erased.
        """

    async def add_waiting_turn(self, turn: WaitingTurn) -> WaitingTurn:
        """Add a waiting turn to its session and return it.

        If the session has one with the same `asked_in`, return that one and change nothing. Raise
        `SessionEnded` if the session is not active, and `TooManyWaitingTurns` if it has the maximum. Waiting
        turns are deleted with their session, and when it is ended. A session that has some does not expire.
        """

    async def change_waiting_turn(self, turn: WaitingTurn) -> None:
        """Replace a waiting turn. Raise `WaitingTurnNotFound` if it has fired or was cancelled."""

    async def cancel_waiting_turn(self, owner: str, turn_id: str) -> WaitingTurn:
        """Delete a waiting turn and return it. Raise `WaitingTurnNotFound` if it has fired or is gone."""

    async def waiting_turns(
        self, owner: str | None = None, *, session_id: str | None = None
    ) -> list[WaitingTurn]:
        """Return the waiting turns of all owners, of one owner, or of one session of an owner, oldest first.

        Damaged ones are left out.
        """

    async def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        """Create a continuation, or return the existing one with the same idempotency key.

        If `claim.max_open` others hold the session, raise `SessionBusy`, or queue it (`enqueue`). Raise
        `TooManyTurns` if the queue of the session or of its owner is full.

        A continuation that a waiting turn becomes (`ContinuationRequest.fires`) removes it in the same write.
        Raise `WaitingTurnNotFound` if it is gone and no continuation has its key: it was cancelled. So a
        waiting turn becomes exactly one continuation, whenever a process dies and however many try.
        """

    async def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        """Claim a continuation that is pending, interrupted or awaiting approval, and append `steps`.

        Raise `SessionEnded` if its session was ended, and `NotAwaitingApproval` if the turn has gone on since
        the caller read it.
        """

    async def claim_next(self, session_id: str, claim: ClaimRequest) -> Turn | None:
        """Claim the oldest pending continuation.

        Return None without one, or if the session is held. Raise `SessionEnded` if the session was ended.
        """

    async def append(
        self,
        lease: Lease,
        steps: Sequence[StepBody],
        *,
        release_as: WaitingStatus | None = None,
        stats: Stats = NO_STATS,
        prompts: SentPrompts = NO_PROMPTS,
    ) -> tuple[Step, ...]:
        """Append steps. With `release_as`, also release the lease and set this status.

        `stats` are the continuation's stats so far. Only a release stores them, and `finish` replaces them.
        `prompts` are stored with the steps, so they need one step at least.
        """

    async def prompts(self, owner: str, continuation_id: str) -> SentPrompts:
        """Return the model calls of a turn, with all parts that they use.

        A sweep drops them with the steps. It keeps the parts that other turns still need. An export omits
        them.
        """

    async def find_messages(
        self, owner: str, session_id: str, message_ids: Collection[str]
    ) -> list[StoredMessage]:
        """Return the messages of the transcript with these ids, in order. Unknown ids are ignored."""

    async def finish(
        self,
        lease: Lease,
        end: TurnEnd,
        *,
        known: Session | None = None,
        based_on: Session | None = None,
    ) -> EndWritten:
        """End a continuation, add its messages to the transcript, and cut the window.

        `finish` and `cancel` also end a session for one question (`is_one_question`). A store need not decode
        its own session if the version of `known`, the worker's session, is current. `based_on` is the session
        from which the worker computed `end`, if other turns of it may run: raise `SessionChanged` if it has
        changed since.
        """

    async def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        """Write a turn that begins and ends at once.

        `session` is the session from which the caller computed `end`. Raise `SessionChanged` if it has
        changed since, `SessionBusy` if another turn holds it. If a continuation with the same idempotency
        key exists, return that one without steps.
        """

    async def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        """Replace the answer of a completed turn in its response, the transcript and the window.

        The amendment is a step of the turn. The session gets a new version, and the message loses its vector.
        """

    async def set_caller(self, owner: str, continuation_id: str, caller: TurnCaller) -> Continuation:
        """Replace the caller in the request of a continuation, whatever its status, and return it.

        The time of its last change stays as it is, and so do its lease and its session.
        """

    async def cancel(
        self,
        owner: str,
        continuation_id: str,
        reason: str,
        *,
        end: TurnEnd = CANCELLED,
        step_count: int | None = None,
    ) -> Continuation:
        """End a continuation. Its worker loses the lease. Raise `ContinuationFinal` if it has ended.

        `end` is the end of the turn without the last step, which has the reason. `step_count` is the number
        of steps that `end` was computed from. Raise `SessionChanged` if the turn has more steps by now.
        """

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        """Renew the worker's leases on these continuations. Return the ids that the worker still holds."""

    async def interrupt_lost(self) -> list[Continuation]:
        """Set running continuations without a valid lease to "interrupted", and return them."""

    async def waiting(self, max_open: int = 1) -> list[Continuation]:
        """Return pending and interrupted continuations whose session fewer than `max_open` others hold."""

    async def last_id(self) -> str | None:
        """Return the greatest id of all sessions and continuations, or None. New ids must be greater."""

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation: ...

    async def list_continuations(
        self, owner: str, session_id: str, *, open_only: bool = False
    ) -> list[Continuation]:
        """List a session's continuations, oldest first. With `open_only`, omit those with a final status."""

    async def recent_continuations(
        self,
        owner: str,
        *,
        session_id: str | None = None,
        before: str | None = None,
        statuses: Collection[Status] = (),
        limit: int = 50,
    ) -> list[Continuation]:
        """Return the newest continuations of an owner or of one session, newest first, at most `limit`.

        With `before`, return only those with a lower id, and with `statuses`, only those with one of them.
        Damaged ones are left out and do not count: fewer than `limit` means that no others exist.
        """

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        """Return a continuation with its steps, in the order in which they were written."""

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        """Return the steps of a session with a cursor greater than `after`, in order."""

    async def last_cursor(self, owner: str, session_id: str) -> int:
        """Return the greatest cursor that the session has assigned, even if a sweep dropped its step."""

    async def window(self, owner: str, session_id: str) -> ConversationWindow: ...

    async def window_totals(self, owner: str) -> WindowTotals:
        """Return the sums of the windows of all active sessions of the owner."""

    async def window_turns(self, owner: str, session_id: str) -> list[Continuation]:
        """Return the continuations of the messages in the session's window, in the order of the messages."""

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        """Return the ids of the messages that the last eviction removed from the window, with the reasons."""

    async def messages(
        self,
        owner: str,
        session_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        tags: Collection[str] = (),
    ) -> list[StoredMessage]:
        """Return the messages of the transcript with a position greater than `after`, in order.

        With `before`, return the last `limit` of those with a lower position. It reads no others. With
        `tags`, return only messages that have one of them.
        """

    async def first_texts(
        self, owner: str, session_ids: Collection[str], *, max_chars: int
    ) -> dict[str, str]:
        """Return the beginning of the first user message of each session, by session id.

        It is among the first `FIRST_MESSAGES` messages. Sessions without one are left out, and so are those
        of other owners, and messages that have no text or cannot be read.
        """

    async def tag_message(
        self, owner: str, session_id: str, message_id: str, tags: frozenset[str]
    ) -> tuple[Session, StoredMessage]:
        """Replace the tags of a message, except reserved ones, and return its session and the message.

        The session gets a new version. Raise `MessageNotFound` if the session has no such message.
        """

    async def find_words(self, owner: str, session_id: str, words: Sequence[AskedWord]) -> WordHits[int]:
        """Find the evicted messages with some words, without the results of tools.

        If no message has a word, words that are written alike stand for it: compounds, and those with typing
        mistakes. All messages are counted, and those with the rarest words are returned. A turn waits for
        this, so a store that needs more than a few seconds raises `InvalidInput`.
        """

    async def search_words(
        self, owner: str, words: Sequence[AskedWord], *, session_id: str | None = None, count: int
    ) -> WordHits[Spot]:
        """Find words as `find_words` does, also in the window: in one session or in all of the owner's.

        At most `count` messages are returned. An unknown session has none.
        """

    async def read_places(
        self, owner: str, session_id: str, positions: Collection[int], *, with_window: bool = False
    ) -> list[Place]:
        """Return what a ranking needs of the messages at some positions, without results of tools.

        Those in the window are left out, unless the caller wants them.
        """

    async def messages_at(
        self, owner: str, session_id: str, positions: Collection[int]
    ) -> list[StoredMessage]:
        """Return the messages at some positions, in order. Positions without a message are left out."""

    async def add_vectors(
        self,
        owner: str,
        session_id: str,
        vectors: Sequence[Vector],
        *,
        keep: int,
        replace_all: bool = False,
    ) -> None:
        """Store vectors. Only the session's `keep` vectors with the highest positions remain.

        With `replace_all`, the session's other vectors are deleted.
        """

    async def vectors(
        self, owner: str, session_id: str, *, model: str | None = None, limit: int | None = None
    ) -> list[Vector]:
        """Return a session's vectors by position. An export omits them: they can be computed again.

        With `model`, return only those of this embedder, and with `limit`, only those with the highest
        positions. The store reads no others.
        """

    async def turn_stats(self, owner: str | None, since: datetime) -> list[tuple[datetime, Stats]]:
        """Return the end and the stats of each turn of the owner that ended at `since` or later.

        Costs without a turn follow, by quarter of an hour: of deleted turns and of `spend`. None returns
        those of all owners, because a household shares one budget.
        """

    async def spend(self, owner: str, usd: float) -> None:
        """Add dollars that the owner spends now, and that no turn in the store has."""

    async def put_artifact(self, artifact: Artifact) -> None: ...

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact: ...

    async def export_session(self, owner: str, session_id: str) -> Bundle: ...

    async def import_session(self, bundle: Bundle) -> Session:
        """Write a whole session, with costs of 0. Its id must be free. A name that is taken is dropped."""

    async def sweep(
        self, *, idle_before: datetime, ended_before: datetime, delete_before: datetime | None = None
    ) -> SweepCounts:
        """Expire sessions that have not changed since `idle_before`, and drop older costs without a turn.

        Expire waiting continuations that have not changed since `ended_before`, and drop the steps of those
        that ended before it. Delete older artifacts that no turn, step or message refers to. Delete inactive
        sessions that have not changed since `delete_before`, those for one question since `ended_before`.
        """
