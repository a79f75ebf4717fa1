"""Sessions, continuations, steps and messages as rows of SQLite, and back."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from sash.errors import (
    ContinuationNotFound,
    LeaseLost,
    SessionExists,
    SessionNotFound,
)
from sash.ports.store import (
    Artifact,
    Bundle,
    Cut,
    Evicted,
    Lease,
    StoredMessage,
    StoredStep,
    TurnEnd,
    amended,
    name_taken,
    number_steps,
    parts_exist,
)
from sash.stores.sqlite.queries import queries
from sash.values.codec import decode, encode
from sash.values.continuations import (
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationResponse,
    Status,
)
from sash.values.ids import ulid_before
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import SESSION_IDLE_DAYS, Session
from sash.values.stats import NO_STATS, Stats
from sash.values.steps import Amended, Step, StepBody

SQL = queries("queries")

# A turn that ended on a day was begun not long before: it expires otherwise.
LONGEST_TURN = timedelta(days=SESSION_IDLE_DAYS + 1)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a continuation has only when it is over."""

    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    stats: Stats | None = None


class Held(NamedTuple):
    """What a lease holds."""

    session: int
    steps: int
    cursor: int
    stats: str
    positions: int
    next_waits: int


class Place(NamedTuple):
    """Where a session stands: its key, its last cursor, its number of messages."""

    session: int
    cursor: int
    positions: int


class _LastCut(NamedTuple):
    """Where the window was cut last; `evicted_count` counts what all cuts took out."""

    turn_starts: tuple[str, ...]
    evicted: tuple[Evicted, ...]
    evicted_count: int
    window_from: int


def no_session(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session {session_id}", session_id=session_id)


def _time(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def find_key(db: sqlite3.Connection, owner: str, session_id: str) -> int:
    row = db.execute(SQL["key"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        raise no_session(session_id)
    return int(row[0])


def get_session(db: sqlite3.Connection, owner: str, session_id: str) -> Session:
    row = db.execute(SQL["session"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        raise no_session(session_id)
    return read_session(row)


def find_session(db: sqlite3.Connection, owner: str, name: str) -> Session | None:
    row = db.execute(SQL["session_of_name"], {"owner": owner, "name": name}).fetchone()
    return None if row is None else read_session(row)


def read_session(row: Sequence[Any]) -> Session:
    body, status, updated_at, version, stats, digest, cut_at = row
    session = decode(Session, body)
    cut_at = None if cut_at is None else _time(cut_at)
    return replace(
        session,
        status=status,
        updated_at=_time(updated_at),
        version=version,
        stats=decode(Stats, stats),
        memory=replace(session.memory, digest=digest, cut_at=cut_at),
    )


def session_row(session: Session) -> dict[str, Any]:
    body = replace(session, stats=NO_STATS, memory=replace(session.memory, digest="", cut_at=None))
    return {
        "id": session.id,
        "owner": session.owner,
        "name": session.name,
        "status": session.status,
        "updated_at": session.updated_at.timestamp(),
        "version": session.version,
        "stats": encode(session.stats),
        "body": encode(body),
    }


def insert_session(db: sqlite3.Connection, session: Session) -> int:
    """Write a session, and return its key."""
    check_name(db, session)
    row = db.execute(SQL["insert_session"], session_row(session)).fetchone()
    if row is None:
        raise SessionExists(f"session {session.id} exists already", session_id=session.id)
    memory, cut_at = session.memory, session.memory.cut_at
    cut = {"session": row[0], "digest": memory.digest, "cut_at": cut_at and cut_at.timestamp()}
    db.execute(SQL["insert_cut"], cut)
    return int(row[0])


def is_name_taken(db: sqlite3.Connection, session: Session) -> bool:
    """Whether another active session has the name that a session would have."""
    if session.name is None or session.status != "active":
        return False
    found = find_session(db, session.owner, session.name)
    return found is not None and found.status == "active" and found.id != session.id


def check_name(db: sqlite3.Connection, session: Session) -> None:
    if is_name_taken(db, session):
        raise name_taken(session)


def get_continuation(db: sqlite3.Connection, owner: str, continuation_id: str) -> Continuation:
    row = db.execute(SQL["continuation"], {"id": continuation_id, "owner": owner}).fetchone()
    if row is None:
        raise ContinuationNotFound(f"no continuation {continuation_id}", continuation_id=continuation_id)
    return read_continuation(row)


def list_continuations(
    db: sqlite3.Connection,
    key: int,
    query: Literal["continuations", "open_continuations", "window_turns"] = "continuations",
) -> list[Continuation]:
    return list(map(read_continuation, db.execute(SQL[query], {"session": key})))


def find_same(db: sqlite3.Connection, key: int, idempotency_key: str | None) -> Continuation | None:
    if idempotency_key is None:
        return None
    where = {"session": key, "idempotency_key": idempotency_key}
    row = db.execute(SQL["continuation_of_key"], where).fetchone()
    return None if row is None else read_continuation(row)


def read_continuation(row: Sequence[Any]) -> Continuation:
    body, status, updated_at, ending = row
    continuation = replace(decode(Continuation, body), status=status, updated_at=_time(updated_at))
    if ending is None:
        return continuation
    end = decode(Ending, ending)
    return replace(
        continuation, response=end.response, error=end.error, artifacts=end.artifacts, stats=end.stats
    )


def list_turn_stats(db: sqlite3.Connection, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
    where = {"owner": owner, "since": since.timestamp(), "first": ulid_before(since - LONGEST_TURN)}
    rows = db.execute(SQL["turn_stats"], where)
    return [(_time(updated_at), decode(Stats, stats)) for updated_at, stats in rows]


def insert_continuation(
    db: sqlite3.Connection,
    key: int,
    continuation: Continuation,
    first_cursor: int,
    worker: str | None = None,
    lease_until: datetime | None = None,
    ending: Ending | None = None,
    answer_at: int | None = None,
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
            worker,
            lease_until and lease_until.timestamp(),
            0 if worker is None else 1,
            first_cursor,
            answer_at,
            encode(continuation),
            ending and encode(ending),
        ),
    )


def check_lease(db: sqlite3.Connection, lease: Lease) -> Held:
    row = db.execute(SQL["held"], (lease.continuation_id, lease.worker, lease.epoch)).fetchone()
    if row is None:
        raise LeaseLost(lease.continuation_id)
    return Held(*row)


def find_holder(db: sqlite3.Connection, continuation: Continuation) -> str | None:
    """Return who holds the session of a continuation."""
    row = db.execute(SQL["holder"], {"id": continuation.id}).fetchone()
    return None if row is None else str(row[0])


def let_go(
    db: sqlite3.Connection,
    continuation_id: str,
    status: Status,
    now: datetime,
    ending: Ending | None = None,
    answer_at: int | None = None,
) -> None:
    values = (status, now.timestamp(), ending and encode(ending), answer_at, continuation_id)
    db.execute(SQL["let_go"], values)


def take_in(
    db: sqlite3.Connection,
    place: Place,
    continuation_id: str,
    end: TurnEnd,
    written: Sequence[Step],
    stats: Stats,
    now: datetime,
) -> None:
    """Add what a turn leaves behind to the session, which had these stats, the transcript and the window."""
    key, cursor, positions = place
    insert_steps(db, key, continuation_id, written)
    insert_messages(db, key, continuation_id, enumerate(end.messages, positions + 1))
    cursor, positions = cursor + len(written), positions + len(end.messages)
    db.execute(SQL["end_turn"], (now.timestamp(), cursor, positions, encode(stats + end.stats), key))
    if end.cut is not None:
        move_cut(db, key, end.cut, now)


def amend(
    db: sqlite3.Connection, continuation: Continuation, text: str, token_count: int, now: datetime
) -> Continuation:
    """Replace the answer of a turn wherever it stands."""
    found = db.execute(SQL["answer"], {"id": continuation.id}).fetchone()
    row, body, key, position = found or (None, None, None, None)
    answer = None if body is None else decode(MessageEntry, body)
    changed, message = amended(continuation, answer, text, token_count)
    db.execute(SQL["amend_message"], {"row": row, "body": encode(message)})
    ending = Ending(changed.response, changed.error, changed.artifacts, changed.stats)
    db.execute(SQL["amend_continuation"], {"id": changed.id, "ending": encode(ending)})
    add_steps(db, changed, (Amended(text),), now)
    db.execute(SQL["drop_vector"], {"session": key, "position": position, "id": changed.id})
    db.execute(SQL["touch_session"], {"session": key, "now": now.timestamp()})
    return changed


def add_steps(
    db: sqlite3.Connection, continuation: Continuation, steps: Sequence[StepBody], now: datetime
) -> None:
    """Write steps of a continuation that need not be held."""
    key, n, cursor = db.execute(SQL["place"], {"id": continuation.id}).fetchone()
    insert_steps(db, key, continuation.id, number_steps(steps, n, cursor, now))


def insert_steps(db: sqlite3.Connection, key: int, continuation_id: str, steps: Iterable[Step]) -> None:
    rows = [(key, step.cursor, continuation_id, encode(step)) for step in steps]
    db.executemany(SQL["insert_step"], rows)


def list_steps(db: sqlite3.Connection, continuation_id: str) -> tuple[Step, ...]:
    return tuple(decode(Step, row[0]) for row in db.execute(SQL["steps"], {"id": continuation_id}))


def list_events(db: sqlite3.Connection, key: int, after: int, limit: int) -> list[StoredStep]:
    rows = db.execute(SQL["events"], {"session": key, "after": after, "limit": limit})
    return [StoredStep(continuation_id, decode(Step, body)) for continuation_id, body in rows]


def sweep_steps(db: sqlite3.Connection, before: datetime) -> int:
    """Drop the steps of continuations that ended long ago; their cursors are not given again."""
    dropped = 0
    for row in db.execute(SQL["long_ended"], {"before": before.timestamp()}).fetchall():
        where = dict(zip(("id", "session", "first_cursor"), row, strict=True))
        db.execute(SQL["keep_cursor"], where)
        dropped += db.execute(SQL["drop_steps"], where).rowcount
        db.execute(SQL["mark_swept"], where)
    return dropped


def insert_messages(
    db: sqlite3.Connection,
    key: int,
    continuation_id: str | None,
    messages: Iterable[tuple[int, MessageEntry]],
) -> None:
    rows = [(key, position, continuation_id, encode(message)) for position, message in messages]
    db.executemany(SQL["insert_message"], rows)


def list_messages(
    db: sqlite3.Connection, key: int, session_id: str, after: int, limit: int
) -> list[StoredMessage]:
    rows = db.execute(SQL["messages"], {"session": key, "after": after, "limit": limit})
    return [read_message(session_id, *row) for row in rows]


def read_message(
    session_id: str, position: int, continuation_id: str | None, body: str, in_window: int
) -> StoredMessage:
    message = decode(MessageEntry, body)
    return StoredMessage(session_id, position, message, bool(in_window), continuation_id)


def index_messages(db: sqlite3.Connection) -> None:
    """Let the full-text index catch up with the messages."""
    db.execute(SQL["index_messages"])
    db.execute(SQL["all_indexed"])


def forget_words(db: sqlite3.Connection) -> None:
    """Let the full-text index forget the messages that were deleted."""
    db.execute(SQL["indexed_after_delete"])
    db.execute(SQL["forget_deleted_words"])


def get_window(db: sqlite3.Connection, session: Session) -> ConversationWindow:
    key = find_key(db, session.owner, session.id)
    cut = get_cut(db, key)
    rows = db.execute(SQL["window"], {"session": key})
    return ConversationWindow(
        session.id,
        tuple(decode(MessageEntry, body) for _, body in rows),
        max_tokens=session.window.max_tokens,
        max_turns=session.window.max_turns,
        evict_to=session.window.evict_to,
        evicted_count=cut.evicted_count,
        turn_starts=cut.turn_starts,
    )


def get_cut(db: sqlite3.Connection, key: int) -> _LastCut:
    turn_starts, evicted, *counts = db.execute(SQL["cut"], {"session": key}).fetchone()
    last = tuple(Evicted(*item) for item in json.loads(evicted))
    return _LastCut(tuple(json.loads(turn_starts)), last, *counts)


def move_cut(db: sqlite3.Connection, key: int, cut: Cut, now: datetime) -> None:
    """Take what was evicted out of the window."""
    gone = {evicted.message_id for evicted in cut.evicted}
    ids = {position: json.loads(body)["id"] for position, body in db.execute(SQL["window"], {"session": key})}
    left_at = [position for position, message_id in ids.items() if message_id in gone]
    stays_at = [position for position, message_id in ids.items() if message_id not in gone]
    last = get_cut(db, key)
    moved = _LastCut(cut.turn_starts, cut.evicted, last.evicted_count + len(gone), last.window_from)
    _write_cut(db, key, moved, left_at, stays_at)
    db.execute(SQL["update_digest"], {"session": key, "digest": cut.digest, "cut_at": now.timestamp()})


def _write_cut(
    db: sqlite3.Connection, key: int, cut: _LastCut, left_at: list[int], stays_at: list[int]
) -> None:
    """Note where the window is cut: all from some position on, and what is kept of the positions before."""
    window_from = max((cut.window_from, *(position + 1 for position in left_at)))
    db.execute(
        SQL["move_cut"],
        {
            "session": key,
            "window_from": window_from,
            "kept": json.dumps([position for position in stays_at if position < window_from]),
            "turn_starts": json.dumps(cut.turn_starts),
            "evicted": json.dumps([(e.message_id, e.reason) for e in cut.evicted]),
            "evicted_count": cut.evicted_count,
        },
    )


def insert_artifact(db: sqlite3.Connection, key: int, artifact: Artifact) -> None:
    db.execute(
        SQL["insert_artifact"],
        {
            "id": artifact.ref.id,
            "session": key,
            "owner": artifact.owner,
            "ref": encode(artifact.ref),
            "data": artifact.data,
        },
    )


def read_artifact(row: Sequence[Any]) -> Artifact:
    ref, session_id, owner, data = row
    return Artifact(decode(ArtifactRef, ref), session_id, owner, data)


def get_bundle(db: sqlite3.Connection, session: Session) -> Bundle:
    key = find_key(db, session.owner, session.id)
    cut = get_cut(db, key)
    return Bundle(
        session=session,
        continuations=tuple(list_continuations(db, key)),
        steps=tuple(list_events(db, key, 0, -1)),
        messages=tuple(list_messages(db, key, session.id, 0, -1)),
        artifacts=tuple(map(read_artifact, db.execute(SQL["artifacts"], {"session": key}))),
        turn_starts=cut.turn_starts,
        evicted=cut.evicted,
        evicted_count=cut.evicted_count,
    )


def insert_bundle(db: sqlite3.Connection, bundle: Bundle) -> Session:
    session = bundle.session
    if is_name_taken(db, session):
        session = replace(session, name=None)
    try:
        _insert_bundle(db, replace(bundle, session=session))
    except sqlite3.IntegrityError as error:
        raise parts_exist(session.id) from error
    return session


def _insert_bundle(db: sqlite3.Connection, bundle: Bundle) -> None:
    key = insert_session(db, bundle.session)
    last = {m.continuation_id: m.position for m in bundle.messages}
    for c in bundle.continuations:
        ending = Ending(c.response, c.error, c.artifacts, c.stats)
        insert_continuation(db, key, c, first_cursor=0, ending=ending, answer_at=last.get(c.id))
    for stored in bundle.steps:
        insert_steps(db, key, stored.continuation_id, (stored.step,))
    for m in bundle.messages:
        insert_messages(db, key, m.continuation_id, ((m.position, m.message),))
    for artifact in bundle.artifacts:
        insert_artifact(db, key, artifact)
    left_at = [m.position for m in bundle.messages if not m.in_window]
    stays_at = [m.position for m in bundle.messages if m.in_window]
    cut = _LastCut(bundle.turn_starts, bundle.evicted, bundle.evicted_count, window_from=1)
    _write_cut(db, key, cut, left_at, stays_at)
    db.execute(SQL["set_positions"], {"session": key, "positions": len(bundle.messages)})
    db.execute(SQL["keep_cursor"], {"session": key})
    index_messages(db)
