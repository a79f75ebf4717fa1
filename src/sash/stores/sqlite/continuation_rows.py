"""Continuations and their steps as rows of SQLite."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainValidator

from sash.ports.store import StoredStep
from sash.ports.turns import SessionTotals
from sash.stores.rules import lease_rules, record_errors, retention_rules, turn_rules
from sash.stores.sqlite import prompt_rows
from sash.stores.sqlite.columns import StoredTime, Text, read_columns, read_time
from sash.stores.sqlite.damaged_rows import change_sound, read_sound
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.session_rows import get_session
from sash.stores.states import NO_LEASE, EndState, Holders, LeaseState, SessionState, TurnState
from sash.values.bounds import Natural
from sash.values.codec import decode, encode
from sash.values.continuations import (
    FINAL,
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationResponse,
    Status,
)
from sash.values.ids import LATEST_ID, ulid_before
from sash.values.prompts import NO_PROMPTS, SentPrompts
from sash.values.sessions import MAX_CONTINUATION_RETENTION_HOURS, Session
from sash.values.stats import Stats
from sash.values.steps import Step

# Text that sorts after every id.
AFTER_ALL_IDS = "~"
# The maximum time between the start and the end of a turn: an older turn has expired.
MAX_TURN_AGE = timedelta(hours=MAX_CONTINUATION_RETENTION_HOURS) + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Ending:
    """The fields that a continuation gets at its end. They are stored apart from its request."""

    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    stats: Stats | None = None

    @classmethod
    def of(cls, continuation: Continuation) -> "Ending | None":
        """Return the ending of a continuation, or None if it has none."""
        ending = cls(continuation.response, continuation.error, continuation.artifacts, continuation.stats)
        return None if ending == cls() else ending


ContinuationQuery = Literal["continuations", "open_continuations", "window_turns"]


class _TurnColumns(NamedTuple):
    """The columns of a continuation, in the order of the queries."""

    body: Any
    status: Status
    updated_at: StoredTime
    ending: Any


class _TurnStateColumns(NamedTuple):
    """The columns of the query `turn_state`."""

    key: int
    worker: Text | None
    epoch: Natural
    step_count: Natural
    cursor: Natural


class _EndStateColumns(NamedTuple):
    """The columns of the query `end_state`."""

    key: int
    worker: Text | None
    epoch: Natural
    step_count: Natural
    cursor: Natural
    positions: Natural
    has_pending: bool
    owner: Text
    session_id: Text
    version: Natural
    ending: Any


class _StepColumns(NamedTuple):
    """The columns of the query `events`."""

    continuation_id: Text
    step: Annotated[Step, PlainValidator(partial(decode, Step))]


class _OldTurnColumns(NamedTuple):
    """The columns of the query `unswept_turns`."""

    status: Status
    updated_at: StoredTime
    id: Text
    session: int
    first_cursor: Natural


def read_session_state(db: sqlite3.Connection, owner: str, session_id: str) -> tuple[int, SessionState]:
    """Return the key of a session in other tables, and its state before a new turn.

    Raise `SessionNotFound` if the owner has no such session.
    """
    row = db.execute(SQL["session_state"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        record_errors.raise_session_not_found(session_id)
    key, *state = row
    return key, read_columns(SessionState, state)


def read_turn_state(db: sqlite3.Connection, continuation_id: str) -> tuple[int, TurnState | None]:
    """Return the key of a continuation's session, and the turn's state; 0 and None if it was deleted."""
    row = db.execute(SQL["turn_state"], (continuation_id,)).fetchone()
    if row is None:
        return 0, None
    key, worker, epoch, step_count, cursor = read_columns(_TurnStateColumns, row)
    return key, TurnState(LeaseState(worker, None, epoch), step_count, cursor)


def read_end_state(
    db: sqlite3.Connection, continuation_id: str, known: Session | None = None
) -> tuple[int, EndState | None, Stats | None]:
    """Return the key of a continuation's session, its state, and its stats so far; 0 and None if deleted.

    The session is not decoded if `known` is its current version.
    """
    row = db.execute(SQL["end_state"], (continuation_id,)).fetchone()
    if row is None:
        return 0, None, None
    found = read_columns(_EndStateColumns, row)
    turn = TurnState(LeaseState(found.worker, None, found.epoch), found.step_count, found.cursor)
    if known is None or known.version != found.version:
        known = get_session(db, found.owner, found.session_id)
    stored_stats = None if found.ending is None else decode(Ending, found.ending).stats
    return (
        found.key,
        EndState(turn, found.positions, found.has_pending, SessionTotals.of(known)),
        stored_stats,
    )


def count_pending(db: sqlite3.Connection, owner: str) -> int:
    """Return the number of queued turns of an owner."""
    [count] = db.execute(SQL["count_pending"], {"owner": owner}).fetchone()
    return int(count)


def read_holders(db: sqlite3.Connection, continuation_id: str) -> Holders:
    """Return the continuations that hold the session of a continuation."""
    return Holders(*db.execute(SQL["holders"], {"id": continuation_id}).fetchone())


def get_continuation(db: sqlite3.Connection, owner: str, continuation_id: str) -> Continuation:
    row = db.execute(SQL["continuation"], {"id": continuation_id, "owner": owner}).fetchone()
    if row is None:
        record_errors.raise_continuation_not_found(continuation_id)
    return read_continuation(row)


def find_by_key(db: sqlite3.Connection, key: int, idempotency_key: str | None) -> Continuation | None:
    """Return the continuation with this idempotency key, or None. `key` is the key of the session."""
    if idempotency_key is None:
        return None
    where = {"session": key, "idempotency_key": idempotency_key}
    row = db.execute(SQL["continuation_of_key"], where).fetchone()
    return None if row is None else read_continuation(row)


def find_next_pending(db: sqlite3.Connection, session_id: str) -> Continuation | None:
    row = db.execute(SQL["next_pending"], {"session_id": session_id}).fetchone()
    return None if row is None else read_continuation(row)


def list_continuations(
    db: sqlite3.Connection,
    key: int,
    query: ContinuationQuery = "continuations",
) -> list[Continuation]:
    return list(map(read_continuation, db.execute(SQL[query], {"session": key})))


def list_recent(
    db: sqlite3.Connection,
    owner: str,
    key: int | None,
    before: str | None,
    statuses: Collection[Status],
    limit: int,
) -> list[Continuation]:
    """Return the newest continuations of a session, or of all sessions of the owner without a `key`."""
    query = "recent_of_owner" if key is None else "recent_of_session"
    if statuses and FINAL.isdisjoint(statuses):
        query = "recent_unfinished"
    where = {"owner": owner, "session": key, "before": before or AFTER_ALL_IDS}
    where["statuses"] = json.dumps(list(statuses)) if statuses else None
    row_count = limit
    while True:
        rows = db.execute(SQL[query], where | {"limit": row_count}).fetchall()
        found = read_sound(read_continuation, rows)
        if len(found) >= limit or len(rows) < row_count:
            return found[:limit]
        row_count += 2 * (len(rows) - len(found))  # Damaged rows do not count.


def list_waiting(db: sqlite3.Connection, max_open: int) -> list[Continuation]:
    found = db.execute(SQL["waiting"])
    rows = [row for holder_count, *row in found if turn_rules.is_claimable(row[1], holder_count, max_open)]
    return read_sound(read_continuation, rows)


def renew_leases(
    db: sqlite3.Connection, worker: str, continuation_ids: Collection[str], until: datetime
) -> frozenset[str]:
    """Renew the leases that the worker holds on these continuations, and return their ids."""
    rows = db.execute(SQL["workers_of"], {"ids": json.dumps(list(continuation_ids))}).fetchall()
    held = [key for key, holder in rows if lease_rules.renew_lease(LeaseState(holder), worker, until)]
    db.executemany(SQL["renew"], [(until.timestamp(), key) for key in held])
    return frozenset(held)


def list_workers(db: sqlite3.Connection) -> list[str]:
    """Return the ids of the workers that hold a lease."""
    return [worker for [worker] in db.execute(SQL["workers"])]


def list_lost(db: sqlite3.Connection, now: datetime, dead_workers: Sequence[str]) -> list[Continuation]:
    """Return the running continuations without a valid lease, or with a dead worker."""

    def is_lost(row: Sequence[Any]) -> bool:
        worker, until, *_ = row
        lease = LeaseState(worker, None if until is None else read_time(until))
        return lease_rules.is_lost("running", lease, now, dead_workers)

    rows = db.execute(SQL["running"]).fetchall()
    found = read_sound(lambda row: read_continuation(row[2:]) if is_lost(row) else None, rows)
    return list(filter(None, found))


def list_forgotten(db: sqlite3.Connection, before: datetime) -> list[Continuation]:
    """Return the open continuations without a worker that have not changed since `before`."""

    def is_forgotten(row: Sequence[Any]) -> bool:
        worker, _, status, updated_at, _ = row
        return retention_rules.is_forgotten(status, read_time(updated_at), worker, before)

    rows = db.execute(SQL["waiting_since"], {"before": before.timestamp()}).fetchall()
    found = read_sound(lambda row: read_continuation(row[1:]) if is_forgotten(row) else None, rows)
    return list(filter(None, found))


def list_turn_stats(
    db: sqlite3.Connection, owner: str | None, since: datetime
) -> list[tuple[datetime, Stats]]:
    where = {"owner": owner, "since": since.timestamp(), "first": ulid_before(since - MAX_TURN_AGE)}
    rows = db.execute(SQL["turn_stats"], where)
    return read_sound(lambda row: (read_time(row[0]), decode(Stats, row[1])), rows)


def last_id(db: sqlite3.Connection) -> str | None:
    [last] = db.execute(SQL["last_id"], {"latest": LATEST_ID}).fetchone()
    return last  # type: ignore[no-any-return]


def read_continuation(row: Sequence[Any]) -> Continuation:
    found = read_columns(_TurnColumns, row)
    continuation = replace(decode(Continuation, found.body), status=found.status, updated_at=found.updated_at)
    if found.ending is None:
        return continuation
    end = decode(Ending, found.ending)
    return replace(
        continuation, response=end.response, error=end.error, artifacts=end.artifacts, stats=end.stats
    )


def insert_continuation(
    db: sqlite3.Connection,
    key: int,
    continuation: Continuation,
    first_cursor: int,
    lease: LeaseState = NO_LEASE,
    ending: Ending | None = None,
    answer_position: int | None = None,
) -> None:
    db.execute(
        SQL["insert_continuation"],
        (
            continuation.id,
            key,
            continuation.owner,
            continuation.status,
            continuation.updated_at.timestamp(),
            continuation.request.idempotency_key,
            lease.worker,
            lease.until and lease.until.timestamp(),
            lease.epoch,
            first_cursor,
            answer_position,
            encode(continuation),
            ending and encode(ending),
        ),
    )


def update_continuation(db: sqlite3.Connection, continuation: Continuation) -> None:
    """Write the fields that a continuation has from its creation on. The columns of its end stay."""
    body = replace(continuation, response=None, error=None, artifacts=(), stats=None)
    db.execute(SQL["update_continuation"], {"id": continuation.id, "body": encode(body)})


def claim_continuation(db: sqlite3.Connection, continuation: Continuation, lease: LeaseState) -> None:
    """Write the status and the lease of a claimed continuation."""
    until = lease.until and lease.until.timestamp()
    updated_at = continuation.updated_at.timestamp()
    values = (continuation.status, updated_at, lease.worker, until, lease.epoch, continuation.id)
    db.execute(SQL["claim"], values)


def release_continuation(
    db: sqlite3.Connection,
    continuation_id: str,
    status: Status,
    lease: LeaseState,
    now: datetime,
    ending: Ending | None = None,
    answer_position: int | None = None,
) -> None:
    """Write a status, the ending if there is one, and the lease without a worker."""
    text = ending and encode(ending)
    values = (status, now.timestamp(), lease.epoch, text, answer_position, continuation_id)
    db.execute(SQL["release"], values)


def insert_steps(
    db: sqlite3.Connection,
    key: int,
    continuation_id: str,
    steps: Iterable[Step],
    prompts: SentPrompts = NO_PROMPTS,
) -> None:
    """Insert steps. The first one also has the prompts, as a field that the decoder of steps ignores."""
    bodies = [encode(step) for step in steps]
    if prompts and bodies:
        bodies[0] = f'{bodies[0][:-1]},"prompts":{encode(prompts)}}}'
    rows = [(key, step.cursor, continuation_id, body) for step, body in zip(steps, bodies, strict=True)]
    db.executemany(SQL["insert_step"], rows)


def list_steps(db: sqlite3.Connection, continuation_id: str) -> tuple[Step, ...]:
    return tuple(decode(Step, row[0]) for row in db.execute(SQL["steps"], {"id": continuation_id}))


def list_sound_steps(db: sqlite3.Connection, continuation_id: str) -> list[Step]:
    """Return the steps of a continuation that can be read."""
    return read_sound(lambda row: decode(Step, row[0]), db.execute(SQL["steps"], {"id": continuation_id}))


def list_events(db: sqlite3.Connection, key: int, after: int, limit: int) -> list[StoredStep]:
    rows = db.execute(SQL["events"], {"session": key, "after": after, "limit": limit})
    return [StoredStep(*read_columns(_StepColumns, row)) for row in rows]


def drop_old_steps(db: sqlite3.Connection, before: datetime) -> int:
    """Drop the steps of continuations that ended before `before`, and return the number of steps.

    No later step gets the cursor of a dropped one.
    """

    def drop_steps(turn: _OldTurnColumns) -> int:
        if not retention_rules.may_drop_steps(turn.status, turn.updated_at, before):
            return 0
        where = {"id": turn.id, "session": turn.session, "first_cursor": turn.first_cursor}
        db.execute(SQL["keep_cursor"], where)
        dropped = db.execute(SQL["drop_steps"], where).rowcount
        db.execute(SQL["mark_swept"], where)
        return dropped

    rows = db.execute(SQL["unswept_turns"], {"before": before.timestamp()}).fetchall()
    turns = read_sound(lambda row: read_columns(_OldTurnColumns, row), rows)
    old = [turn for turn in turns if retention_rules.may_drop_steps(turn.status, turn.updated_at, before)]
    for session in {turn.session for turn in old}:
        prompt_rows.keep_parts(db, session, {turn.id for turn in old if turn.session == session})
    return sum(change_sound(db, drop_steps, turns))
