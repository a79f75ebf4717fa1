"""The rules of the store contract, once for all backends: pure functions without I/O.

A backend reads a state, calls the rule, and writes the change that the rule returns, all in one transaction.
If a call is not allowed, the rule raises the contract's error, before the backend has written anything.

A query may leave out rows that a rule would reject, but the rule decides. If a statement has to repeat a
rule, the rule's docstring names the statement.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NoReturn, TypeVar

from sash.errors import (
    ArtifactNotFound,
    ContinuationFinal,
    ContinuationNotFound,
    InvalidInput,
    LeaseLost,
    MessageNotFound,
    NotAwaitingApproval,
    SessionBusy,
    SessionChanged,
    SessionExists,
    SessionNotFound,
)
from sash.ports.session_rules import check_active, check_queue
from sash.ports.turns import ClaimRequest, Cut, Lease, SessionTotals, TurnEnd, WaitingStatus
from sash.stores.states import (
    NO_LEASE,
    AmendChange,
    AppendChange,
    BeginChange,
    CutChange,
    EndChange,
    EndState,
    Holders,
    LeaseState,
    OpenChange,
    Release,
    ReleasedFields,
    SessionState,
    TurnChange,
    TurnState,
)
from sash.values.continuations import FINAL, Continuation, ContinuationResponse, Status
from sash.values.messages import RESERVED_TAGS, ConversationWindow, MessageEntry, refuse_reserved
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import Stats
from sash.values.steps import (
    Amended,
    Cancelled,
    Expired,
    Interrupted,
    Step,
    StepBody,
    bill_steps,
    list_actions,
)

T = TypeVar("T")

# A lease that expires later than this was taken before the clock was set back.
MAX_LEASE = timedelta(hours=1)


# Sessions and names


def get_reserved_name(session: Session) -> str | None:
    """Return the name that no other active session may have, or None if the session is not active."""
    return session.name if session.status == "active" else None


def choose_named(sessions: Iterable[Session]) -> Session | None:
    """Return the session that has a name, of all sessions with this name: the active one, else the newest.

    Return None if there is no session. SQLite's statement `session_of_name` repeats this rule, because an
    index answers it without a scan.
    """
    return max(sessions, key=lambda session: (session.status == "active", session.id), default=None)


def is_name_taken(session: Session, named: Session | None) -> bool:
    """Return True if `session` reserves its name, but `named` is another active session with that name."""
    if get_reserved_name(session) is None or named is None:
        return False
    return named.status == "active" and named.id != session.id


def check_name(session: Session, named: Session | None) -> None:
    """Raise `SessionExists` if `named` is another active session with the name of `session`."""
    if is_name_taken(session, named):
        raise SessionExists(
            f"an active session already has the name {session.name!r}: continue that session, or end it first"
        )


def open_session(session: Session, named: Session | None, reopen: bool) -> OpenChange:
    """Return the session that opens a name, given `named`, the session that has the name now.

    An active `named` is returned. An expired `named` becomes active again if `reopen` is set. Otherwise
    `session` is returned, and it counts the turns of the sessions before it.
    """
    if named is None:
        return OpenChange(session, "insert")
    if named.status == "active":
        return OpenChange(named, None)
    if named.status == "expired" and reopen:
        return OpenChange(replace(named, status="active"), "update")
    return OpenChange(replace(session, turns_before=named.total_turns), "insert")


def prepare_import(session: Session, named: Session | None) -> Session:
    """Return the session as an import stores it: without its name, if another session has the name."""
    return replace(session, name=None) if is_name_taken(session, named) else session


def save_session(stored: Session, changed: Session, named: Session | None, now: datetime) -> Session:
    """Return the changed session with a new version. Raise `SessionChanged` or `SessionExists`."""
    check_version(stored.version, changed)
    check_name(changed, named)
    return touch_session(changed, now)


def touch_session(session: Session, now: datetime) -> Session:
    """Return the session with the next version, changed at `now`."""
    return replace(session, version=session.version + 1, updated_at=now)


def check_version(stored_version: int, session: Session) -> None:
    """Raise `SessionChanged` if the stored session has changed since the caller read `session`."""
    if stored_version != session.version:
        raise SessionChanged(
            f"session {session.id} has changed since it was read: read it again and repeat the change",
            session_id=session.id,
        )


def check_free(session_id: str, holders: Holders, max_open: int = 1) -> None:
    """Raise `SessionBusy` if `max_open` continuations hold the session."""
    if holders.oldest_id is not None and holders.number >= max_open:
        raise SessionBusy(
            f"session {session_id} is busy with {holders.oldest_id}: await or cancel it, or send with "
            "busy='enqueue' or busy='interrupt'",
            session_id=session_id,
            continuation_id=holders.oldest_id,
        )


def make_window(
    session: Session, messages: Iterable[MessageEntry], turn_starts: tuple[str, ...], evicted_count: int
) -> ConversationWindow:
    """Return a window with these messages and the session's limits."""
    return ConversationWindow(
        session.id,
        tuple(messages),
        max_tokens=session.window.max_tokens,
        max_turns=session.window.max_turns,
        evict_to=session.window.evict_to,
        preserve_system=session.window.preserve_system,
        evicted_count=evicted_count,
        turn_starts=turn_starts,
    )


# Turns


def begin(
    session: Session,
    state: SessionState,
    existing: Continuation | None,
    new: Continuation,
    claim: ClaimRequest,
    *,
    enqueue: bool,
    owner_pending_count: int,
    now: datetime,
) -> BeginChange:
    """Return the change that begins a turn, or `existing`, which has the same idempotency key.

    Without `enqueue`, raise `SessionBusy` if `claim.max_open` continuations hold the session. With `enqueue`,
    the caller counts the pending turns of all sessions of the owner (`owner_pending_count`).
    """
    if existing is not None:
        return BeginChange(existing, NO_LEASE, created=False)
    check_active(session)
    if not enqueue:
        check_free(session.id, state.holders, claim.max_open)
    if state.holder_count >= claim.max_open or state.pending_count:
        check_queue(session.id, state.pending_count, owner_pending_count)
        return BeginChange(_with_status(new, "pending"), NO_LEASE, created=True)
    return BeginChange(_with_status(new, "running"), grant_lease(NO_LEASE, claim, now), created=True)


def claim(
    session: Session,
    continuation: Continuation,
    turn: TurnState,
    holders: Holders,
    claim: ClaimRequest,
    steps: Sequence[StepBody],
    now: datetime,
) -> TurnChange:
    """Return the change that claims a waiting continuation.

    Raise `SessionBusy` if this one runs, or if others hold the session; `ContinuationFinal` if it has ended,
    `SessionEnded` if the session was ended, and `NotAwaitingApproval` if the caller has not read all steps.
    """
    check_open(continuation)
    if session.status == "ended":
        check_active(session)
    if continuation.status == "running":
        check_free(continuation.session_id, Holders(continuation.id, 1))
    if continuation.status != "awaiting_approval":  # It holds the session already.
        check_free(continuation.session_id, holders, claim.max_open)
    if claim.step_count not in (None, turn.step_count):
        raise NotAwaitingApproval(
            f"continuation {continuation.id} has gone on since you read it: read it again"
        )
    running = replace(continuation, status="running", updated_at=now)
    return TurnChange(running, number_steps(turn, steps, now), grant_lease(turn.lease, claim, now))


def is_claimable(status: Status, holder_count: int, max_open: int = 1) -> bool:
    """Return True if a continuation waits for a worker, and fewer than `max_open` others hold its session.

    Its session may have ended. Then the continuation is to be cancelled.
    """
    return holder_count < max_open and status in ("pending", "interrupted")


def plan_release(release_as: WaitingStatus | None, stats: Stats) -> Release | None:
    """Return the release that an append asks for, or None. Stats are stored only on release."""
    return None if release_as is None else Release(release_as, stats)


def append(
    lease: Lease, turn: TurnState | None, steps: Sequence[StepBody], release: Release | None, now: datetime
) -> AppendChange:
    """Number new steps, and return them with the state of the lease after the write.

    With `release`, the worker gives the lease back. Raise `LeaseLost` if the worker does not hold it.
    """
    held = check_lease(lease, turn)
    numbered = number_steps(held, steps, now)
    if release is None:
        return AppendChange(numbered, held.lease, None)
    return AppendChange(numbered, held.lease.release(), ReleasedFields(release.status, now, release.stats))


def finish(
    lease: Lease, state: EndState | None, end: TurnEnd, now: datetime, based_on: Session | None = None
) -> EndChange:
    """Return the change for a worker that ends its turn. Raise `LeaseLost` if the worker lost the lease.

    Raise `SessionChanged` if the session has changed since the worker read `based_on`.
    """
    if state is None:
        raise_lease_lost(lease)
    check_lease(lease, state.turn)
    if based_on is not None:
        check_version(state.totals.version, based_on)
    return end_turn(state, end, now)


def end_turn(state: EndState, end: TurnEnd, now: datetime) -> EndChange:
    """Return the change that ends a turn, without a check of the lease."""
    steps = number_steps(state.turn, end.steps, now)
    return EndChange(
        steps,
        state.turn.lease.release(),
        state.turn.cursor + len(steps),
        state.message_count + len(end.messages),
        tuple(enumerate(end.messages, state.message_count + 1)),
        end.apply_to_totals(state.totals),
        state.has_pending,
    )


def cut_window(window: Mapping[str, T], evicted_count: int, cut: Cut) -> CutChange[T]:
    """Apply a cut to a window, given by the ids of its messages. Ids that the window lacks are ignored."""
    gone = {evicted.message_id for evicted in cut.evicted}
    kept = {key: value for key, value in window.items() if key not in gone}
    evicted = {key: value for key, value in window.items() if key in gone}
    return CutChange(kept, evicted, evicted_count + len(cut.evicted))


def record(
    session: Session,
    state: SessionState,
    existing: Continuation | None,
    new: Continuation,
    end: TurnEnd,
    now: datetime,
) -> tuple[Continuation, EndChange | None]:
    """Return a turn that has ended, and its change. If `existing` has the same key, return it and None."""
    if existing is not None:
        return existing, None
    check_version(state.version, session)
    check_active(session)
    check_free(session.id, state.holders)
    turn = TurnState(NO_LEASE, 0, state.cursor)
    before = EndState(turn, state.message_count, state.pending_count > 0, SessionTotals.of(session))
    return end.apply_to_continuation(new, now), end_turn(before, end, now)


def amend(
    session: Session,
    continuation: Continuation,
    turn: TurnState,
    answer: MessageEntry | None,
    text: str,
    token_count: int,
    now: datetime,
) -> AmendChange:
    """Return the change that amends the answer of a completed turn. `answer` is the turn's last message.

    Raise `ContinuationFinal` or `InvalidInput` if the turn has no such answer.
    """
    if continuation.status != "completed":
        message = (
            f"continuation {continuation.id} is {continuation.status}: only the answer of a completed turn "
            "can be amended"
        )
        if continuation.is_final:
            raise ContinuationFinal(message, continuation_id=continuation.id)
        raise InvalidInput(message)
    if answer is None or answer.role != "assistant" or answer.tool_calls:
        raise InvalidInput(f"continuation {continuation.id} has no answer that can be amended")
    response = replace(
        continuation.response or ContinuationResponse(""), final_message=text, citations=(), follow_ups=()
    )
    return AmendChange(
        touch_session(session, now),
        replace(continuation, response=response),
        replace(answer, content=text, token_count=token_count),
        number_steps(turn, (Amended(text),), now),
    )


def tag_message(
    session: Session, message: MessageEntry, tags: frozenset[str], now: datetime
) -> tuple[Session, MessageEntry]:
    """Return the session with a new version, and the message with these tags and its reserved ones.

    Raise `InvalidInput` for a reserved tag that the message does not have.
    """
    own = message.tags & RESERVED_TAGS
    refuse_reserved(tags - own)
    return touch_session(session, now), replace(message, tags=tags | own)


def cancel(
    continuation: Continuation, turn: TurnState, reason: str, end: TurnEnd, step_count: int | None
) -> TurnEnd:
    """Return the end of a cancelled turn with its last step.

    Raise `ContinuationFinal` if it has ended, and `SessionChanged` if it does not have `step_count` steps.
    """
    check_open(continuation)
    if step_count not in (None, turn.step_count):
        raise SessionChanged(
            f"continuation {continuation.id} has gone on since it was read: read it again",
            session_id=continuation.session_id,
        )
    return replace(end, steps=(*end.steps, Cancelled(reason)))


def interrupt(
    continuation: Continuation, turn: TurnState, journal: Iterable[Step], now: datetime
) -> TurnChange:
    """Return the change that interrupts a running continuation. It gets the cost of its `journal`."""
    spent = bill_steps((step.body for step in journal), turns=1)
    stats = spent if spent.cost_usd else continuation.stats
    interrupted = replace(continuation, status="interrupted", updated_at=now, stats=stats)
    return TurnChange(interrupted, number_steps(turn, (Interrupted(),), now), turn.lease.release())


def expire(continuation: Continuation, turn: TurnState, journal: Iterable[Step], now: datetime) -> TurnChange:
    """Return the change that ends a continuation which waited too long. The session does not change.

    The actions of its `journal` stay in its response, so that they can be undone when the steps are gone.
    """
    actions = list_actions(step.body for step in journal)
    response = ContinuationResponse("It has expired.", actions=actions) if actions else None
    end = TurnEnd("expired", (Expired(),), response)
    expired = end.apply_to_continuation(continuation, now)
    return TurnChange(expired, number_steps(turn, end.steps, now), turn.lease.release())


def check_open(continuation: Continuation) -> None:
    """Raise `ContinuationFinal` if the continuation has ended."""
    if continuation.is_final:
        raise ContinuationFinal(
            f"continuation {continuation.id} is {continuation.status}: retry it to run the turn again",
            continuation_id=continuation.id,
        )


def number_steps(turn: TurnState, steps: Sequence[StepBody], now: datetime) -> tuple[Step, ...]:
    """Return steps with the next numbers of the turn, the next cursors of the session, and the time `now`."""
    n, cursor = turn.step_count, turn.cursor
    return tuple(Step(n + k, now, body, cursor + k) for k, body in enumerate(steps, 1))


def _with_status(continuation: Continuation, status: Status) -> Continuation:
    return continuation if continuation.status == status else replace(continuation, status=status)


# Leases


def check_lease(lease: Lease, turn: TurnState | None) -> TurnState:
    """Return the turn. Raise `LeaseLost` if its lease was released or replaced, or the turn was deleted."""
    if turn is None or (turn.lease.worker, turn.lease.epoch) != (lease.worker, lease.epoch):
        raise_lease_lost(lease)
    return turn


def raise_lease_lost(lease: Lease) -> NoReturn:
    """Raise `LeaseLost`: the worker no longer holds the continuation."""
    raise LeaseLost(lease.continuation_id)


def make_lease(continuation: Continuation, state: LeaseState) -> Lease:
    """Return the lease that a worker has been granted on a continuation."""
    assert state.worker is not None
    return Lease(continuation.id, continuation.session_id, state.worker, state.epoch)


def grant_lease(current: LeaseState, claim: ClaimRequest, now: datetime) -> LeaseState:
    """Return the lease state after a claim: the new worker, the new end and the next epoch."""
    return LeaseState(claim.worker, lease_end(now, claim.lease_s), current.epoch + 1)


def lease_end(now: datetime, lease_s: float) -> datetime:
    """Return the time at which a lease that is granted or renewed now expires."""
    return now + timedelta(seconds=lease_s)


def renew_lease(current: LeaseState, worker: str, until: datetime) -> LeaseState | None:
    """Return a worker's lease with its new end, or None if the worker does not hold it."""
    return current._replace(until=until) if current.worker == worker else None


def is_lost(status: Status, lease: LeaseState, now: datetime, dead_workers: Collection[str] = ()) -> bool:
    """Return True if a continuation is running without a valid lease, or its worker is dead."""
    if status != "running":
        return False
    if lease.until is None or lease.worker in dead_workers:
        return True
    return not now < lease.until <= now + MAX_LEASE


# Sweeps


def is_forgotten(status: Status, updated_at: datetime, worker: str | None, before: datetime) -> bool:
    """Return True if an open continuation without a worker has not changed since `before`."""
    return status not in FINAL and updated_at < before and worker is None


def may_drop_steps(status: Status, updated_at: datetime, before: datetime) -> bool:
    """Return True if a continuation ended before the time `before`, so that a sweep drops its steps."""
    return status in FINAL and updated_at < before


def is_idle(status: SessionStatus, updated_at: datetime, holder_count: int, before: datetime) -> bool:
    """Return True if an active session, which no continuation holds, has not changed since `before`."""
    return status == "active" and updated_at < before and not holder_count


def expire_session(version: int) -> tuple[SessionStatus, int]:
    """Return the status "expired" and the next version."""
    return "expired", version + 1


# Missing and existing records


def raise_session_not_found(session_id: str) -> NoReturn:
    """Raise `SessionNotFound`: the owner has no session with this id."""
    raise SessionNotFound(f"there is no session {session_id}", session_id=session_id)


def raise_continuation_not_found(continuation_id: str) -> NoReturn:
    """Raise `ContinuationNotFound`: the owner has no continuation with this id."""
    raise ContinuationNotFound(f"there is no continuation {continuation_id}", continuation_id=continuation_id)


def raise_message_not_found(session_id: str, message_id: str) -> NoReturn:
    """Raise `MessageNotFound`: the session has no message with this id."""
    raise MessageNotFound(
        f"there is no message {message_id!r:.80} in session {session_id}", session_id=session_id
    )


def raise_artifact_not_found(artifact_id: str) -> NoReturn:
    """Raise `ArtifactNotFound`: the owner has no artifact with this id."""
    raise ArtifactNotFound(f"there is no artifact {artifact_id}")


def raise_session_exists(session_id: str) -> NoReturn:
    """Raise `SessionExists`: the id of a new session is taken."""
    raise SessionExists(f"session {session_id} already exists", session_id=session_id)


def raise_parts_exist(session_id: str) -> NoReturn:
    """Raise `SessionExists`: another session has continuations or artifacts with the ids of the import."""
    raise SessionExists(
        f"parts of session {session_id} already exist in another session: fork that session instead",
        session_id=session_id,
    )
