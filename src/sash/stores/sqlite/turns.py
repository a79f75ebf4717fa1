"""The methods of the store for turns, on SQLite. Each reads a state, applies its rule, and writes the change.

Every function is one job of the writer thread, and runs in one transaction.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sash.ports.turns import BegunTurn, ClaimRequest, Cut, EndWritten, Lease, Turn, TurnEnd
from sash.stores.rules import lease_rules, record_errors, turn_rules, waiting_rules
from sash.stores.sqlite import continuation_rows as continuations
from sash.stores.sqlite import message_rows as messages
from sash.stores.sqlite import session_rows as sessions
from sash.stores.sqlite import waiting_rows
from sash.stores.sqlite.continuation_rows import Ending
from sash.stores.sqlite.damaged_rows import change_sound, read_sound
from sash.stores.sqlite.queries import SQL
from sash.stores.states import EndChange, Holders, Release, TurnChange, TurnState
from sash.values.codec import decode, encode
from sash.values.continuations import Continuation, TurnCaller
from sash.values.messages import MessageEntry
from sash.values.prompts import SentPrompts
from sash.values.sessions import Session
from sash.values.steps import Step, StepBody


def begin(
    db: sqlite3.Connection, new: Continuation, claim: ClaimRequest, enqueue: bool, now: datetime
) -> BegunTurn:
    key, state = continuations.read_session_state(db, new.owner, new.session_id)
    existing = continuations.find_by_key(db, key, new.request.idempotency_key)
    fires = new.request.fires
    waiting_rules.check_firing(new, existing, waiting_rows.is_waiting(db, key, fires))
    known = claim.known if claim.knows(state.version) else None
    session = known or sessions.get_session(db, new.owner, new.session_id)
    waiting = continuations.count_pending(db, new.owner) if enqueue else 0
    begun = turn_rules.begin(
        session, state, existing, new, claim, enqueue=enqueue, owner_pending_count=waiting, now=now
    )
    if begun.created:
        continuations.insert_continuation(db, key, begun.continuation, state.cursor, begun.lease)
    waiting_rows.remove_fired(db, new.owner, fires)
    turn = None
    if begun.lease.worker is not None:
        window = None if known else messages.get_window(db, session)
        lease = lease_rules.make_lease(begun.continuation, begun.lease)
        turn = Turn(lease, begun.continuation, session, window, (), state.cursor)
    return BegunTurn(begun.continuation, turn, begun.created)


def claim(
    db: sqlite3.Connection,
    owner: str,
    continuation_id: str,
    claim: ClaimRequest,
    steps: Sequence[StepBody],
    now: datetime,
) -> Turn:
    continuation = continuations.get_continuation(db, owner, continuation_id)
    holders = continuations.read_holders(db, continuation_id)
    return _claim(db, continuation, holders, claim, steps, now)


def claim_next(db: sqlite3.Connection, session_id: str, claim: ClaimRequest, now: datetime) -> Turn | None:
    continuation = continuations.find_next_pending(db, session_id)
    if continuation is None:
        return None
    holders = continuations.read_holders(db, continuation.id)
    if not turn_rules.is_claimable(continuation.status, holders.number, claim.max_open):
        return None
    return _claim(db, continuation, holders, claim, (), now)


def append(
    db: sqlite3.Connection,
    lease: Lease,
    steps: Sequence[StepBody],
    release: Release | None,
    prompts: SentPrompts,
    now: datetime,
) -> tuple[Step, ...]:
    key, turn = continuations.read_turn_state(db, lease.continuation_id)
    change = turn_rules.append(lease, turn, steps, release, now)
    continuations.insert_steps(db, key, lease.continuation_id, change.steps, prompts)
    if change.released is not None:
        status, updated_at, stats = change.released
        ending = Ending(stats=stats)
        continuations.release_continuation(
            db, lease.continuation_id, status, change.lease, updated_at, ending
        )
    return change.steps


def finish(
    db: sqlite3.Connection,
    lease: Lease,
    end: TurnEnd,
    known: Session | None,
    based_on: Session | None,
    now: datetime,
) -> EndWritten:
    key, state, stored_stats = continuations.read_end_state(db, lease.continuation_id, known)
    change = turn_rules.finish(lease, state, end, now, based_on)
    ending = Ending(end.response, end.error, end.artifacts, end.choose_stats(stored_stats))
    _write_end(db, key, lease.continuation_id, end, change, ending, now)
    return EndWritten(change.steps, change.next_waits)


def record(
    db: sqlite3.Connection, new: Continuation, end: TurnEnd, session: Session, now: datetime
) -> tuple[Continuation, tuple[Step, ...]]:
    key, state = continuations.read_session_state(db, new.owner, new.session_id)
    existing = continuations.find_by_key(db, key, new.request.idempotency_key)
    recorded, change = turn_rules.record(session, state, existing, new, end, now)
    if change is None:
        return recorded, ()
    opened = replace(new, status=recorded.status, updated_at=recorded.updated_at)
    ending = Ending.of(recorded)
    continuations.insert_continuation(
        db, key, opened, state.cursor, ending=ending, answer_position=change.answer_position
    )
    _write_session_end(db, key, new.id, end, change, now)
    return recorded, change.steps


def cut_window(db: sqlite3.Connection, session: Session, cut: Cut, now: datetime) -> None:
    """Cut the window of a session outside of a turn. Raise `SessionBusy` if a turn holds the session."""
    key, state = continuations.read_session_state(db, session.owner, session.id)
    turn_rules.check_free(session.id, state.holders)
    messages.apply_cut(db, key, cut, now)


def amend(
    db: sqlite3.Connection, owner: str, continuation_id: str, text: str, token_count: int, now: datetime
) -> Continuation:
    continuation = continuations.get_continuation(db, owner, continuation_id)
    session = sessions.get_session(db, owner, continuation.session_id)
    key, turn = _read_turn(db, continuation_id)
    stored = messages.find_answer(db, continuation_id)
    answer = None if stored is None else decode(MessageEntry, stored.body)
    change = turn_rules.amend(session, continuation, turn, answer, text, token_count, now)
    assert stored is not None and answer is not None  # the rule raises for a turn without an answer
    ending = Ending.of(change.continuation)
    db.execute(SQL["amend_continuation"], {"id": continuation_id, "ending": ending and encode(ending)})
    messages.replace_answer(db, stored, continuation_id, answer, change.answer)
    continuations.insert_steps(db, key, continuation_id, change.steps)
    sessions.touch_session(db, key, change.session)
    return change.continuation


def set_caller(db: sqlite3.Connection, owner: str, continuation_id: str, caller: TurnCaller) -> Continuation:
    continuation = continuations.get_continuation(db, owner, continuation_id)
    changed = turn_rules.set_caller(continuation, caller)
    continuations.update_continuation(db, changed)
    return changed


def cancel(
    db: sqlite3.Connection,
    owner: str,
    continuation_id: str,
    reason: str,
    work: TurnEnd,
    step_count: int | None,
    now: datetime,
) -> Continuation:
    continuation = continuations.get_continuation(db, owner, continuation_id)
    key, state, _ = continuations.read_end_state(db, continuation_id)
    assert state is not None
    end = turn_rules.cancel(continuation, state.turn, reason, work, step_count)
    cancelled = end.apply_to_continuation(continuation, now)
    change = turn_rules.end_turn(state, end, now)
    _write_end(db, key, continuation_id, end, change, Ending.of(cancelled), now)
    return cancelled


def interrupt_lost(db: sqlite3.Connection, now: datetime, dead_workers: Sequence[str]) -> list[Continuation]:
    lost = continuations.list_lost(db, now, dead_workers)
    return change_sound(db, lambda continuation: _interrupt(db, continuation, now), lost)


def interrupt_running(db: sqlite3.Connection, owner: str, session_id: str | None, now: datetime) -> None:
    """Interrupt the running turns of one session, or of all of the owner's sessions with None."""
    found = db.execute(SQL["running_turns"], {"owner": owner, "session_id": session_id}).fetchall()
    running = read_sound(continuations.read_continuation, found)
    change_sound(db, lambda continuation: _interrupt(db, continuation, now), running)


def expire_forgotten(db: sqlite3.Connection, before: datetime, now: datetime) -> int:
    """Expire the continuations without a worker that have not changed since `before`. Return their number."""

    def expire(continuation: Continuation) -> None:
        key, turn = _read_turn(db, continuation.id)
        journal = continuations.list_sound_steps(db, continuation.id)
        _write_change(db, key, turn_rules.expire(continuation, turn, journal, now))

    return len(change_sound(db, expire, continuations.list_forgotten(db, before)))


def _interrupt(db: sqlite3.Connection, continuation: Continuation, now: datetime) -> Continuation:
    key, turn = _read_turn(db, continuation.id)
    journal = continuations.list_sound_steps(db, continuation.id)
    change = turn_rules.interrupt(continuation, turn, journal, now)
    _write_change(db, key, change)
    return change.continuation


def _claim(
    db: sqlite3.Connection,
    continuation: Continuation,
    holders: Holders,
    claim: ClaimRequest,
    steps: Sequence[StepBody],
    now: datetime,
) -> Turn:
    key, turn = _read_turn(db, continuation.id)
    session = sessions.get_session(db, continuation.owner, continuation.session_id)
    change = turn_rules.claim(session, continuation, turn, holders, claim, steps, now)
    continuations.insert_steps(db, key, continuation.id, change.steps)
    continuations.claim_continuation(db, change.continuation, change.lease)
    window = None if claim.knows(session.version) else messages.get_window(db, session)
    journal = continuations.list_steps(db, continuation.id)
    lease, cursor = lease_rules.make_lease(continuation, change.lease), turn.cursor + len(change.steps)
    return Turn(lease, change.continuation, session, window, journal, cursor)


def _read_turn(db: sqlite3.Connection, continuation_id: str) -> tuple[int, TurnState]:
    key, turn = continuations.read_turn_state(db, continuation_id)
    if turn is None:
        record_errors.raise_continuation_not_found(continuation_id)
    return key, turn


def _write_change(db: sqlite3.Connection, key: int, change: TurnChange) -> None:
    """Write a continuation whose lease was released, and its new steps. The session does not change."""
    continuation = change.continuation
    continuations.insert_steps(db, key, continuation.id, change.steps)
    continuations.release_continuation(
        db,
        continuation.id,
        continuation.status,
        change.lease,
        continuation.updated_at,
        Ending.of(continuation),
    )


def _write_end(
    db: sqlite3.Connection,
    key: int,
    continuation_id: str,
    end: TurnEnd,
    change: EndChange,
    ending: Ending | None,
    now: datetime,
) -> None:
    continuations.release_continuation(
        db, continuation_id, end.status, change.lease, now, ending, change.answer_position
    )
    _write_session_end(db, key, continuation_id, end, change, now)


def _write_session_end(
    db: sqlite3.Connection, key: int, continuation_id: str, end: TurnEnd, change: EndChange, now: datetime
) -> None:
    """Write the steps and messages of an ended turn, the session's totals, and the cut."""
    continuations.insert_steps(db, key, continuation_id, change.steps, end.prompts)
    messages.insert_messages(db, key, continuation_id, change.messages)
    status, version, stats, _ = change.totals
    values = (now.timestamp(), version, change.cursor, change.message_count, encode(stats), key)
    db.execute(SQL["end_turn"], values)
    if status != "active":
        db.execute(SQL["end_session"], (status, key))
    if end.cut is not None:
        messages.apply_cut(db, key, end.cut, now)
