"""The rules of turns, from their begin to their end."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sash.errors import ContinuationFinal, InvalidInput, NotAwaitingApproval, SessionBusy, SessionChanged
from sash.ports.session_rules import check_active, check_queue
from sash.ports.turns import ClaimRequest, Lease, SessionTotals, TurnEnd, WaitingStatus
from sash.stores.rules.lease_rules import check_lease, grant_lease, raise_lease_lost
from sash.stores.rules.session_versions import check_version, touch_session
from sash.stores.states import (
    NO_LEASE,
    AmendChange,
    AppendChange,
    BeginChange,
    EndChange,
    EndState,
    Holders,
    Release,
    ReleasedFields,
    SessionState,
    TurnChange,
    TurnState,
)
from sash.values.continuations import Continuation, ContinuationResponse, Status, TurnCaller
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
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


def check_free(session_id: str, holders: Holders, max_open: int = 1) -> None:
    """Raise `SessionBusy` if `max_open` continuations hold the session."""
    if holders.oldest_id is not None and holders.number >= max_open:
        raise SessionBusy(
            f"session {session_id} is busy with {holders.oldest_id}: await or cancel it, or send with "
            "busy='enqueue' or busy='interrupt'",
            session_id=session_id,
            continuation_id=holders.oldest_id,
        )


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


def set_caller(continuation: Continuation, caller: TurnCaller) -> Continuation:
    """Return a continuation whose request names this caller."""
    return replace(continuation, request=replace(continuation.request, caller=caller))


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
