"""The store on SQLite: the default, with nothing to set up. `database` has its threads, `sql/` its SQL."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sash.clock import Clock, SystemClock
from sash.codec import decode, encode
from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    LeaseLost,
    SessionChanged,
    SessionExists,
    SessionNotFound,
)
from sash.sessions import Session, SessionStats, SessionStatus
from sash.state import ConversationWindow, MessageEntry
from sash.steps import (
    ArtifactRef,
    Continuation,
    ContinuationError,
    ContinuationResponse,
    NewStep,
    Status,
    Step,
)
from sash.store import (
    LEASE_S,
    NO_STATS,
    Artifact,
    Begun,
    Bundle,
    Cut,
    Evicted,
    Finish,
    Finished,
    Lease,
    Page,
    StoredMessage,
    StoredStep,
    Swept,
    Turn,
    add_stats,
    already_final,
    busy,
    cancelled_steps,
    check_begin,
    lease_end,
    number_steps,
)
from sash.stores.database import Database, Synchronous
from sash.stores.queries import queries

_SQL = queries("sqlite")


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a continuation has only when it is over."""

    response: ContinuationResponse | None = None
    error: ContinuationError | None = None
    artifacts: tuple[ArtifactRef, ...] = ()


class _Held(NamedTuple):
    """What a lease holds."""

    session: int
    steps: int
    cursor: int
    stats: str
    positions: int
    next_waits: int


class _LastCut(NamedTuple):
    """Where the window was cut last; `evicted_count` counts what all cuts took out."""

    turn_starts: tuple[str, ...]
    evicted: tuple[Evicted, ...]
    evicted_count: int
    window_from: int


class SqliteStore:
    """Sessions in one SQLite file. `synchronous="NORMAL"` may lose the last moments before a power cut."""

    def __init__(
        self, path: str | Path, *, synchronous: Synchronous = "FULL", clock: Clock | None = None
    ) -> None:
        self._database = Database(Path(path), synchronous)
        self._read, self._write = self._database.read, self._database.write
        self._clock = clock or SystemClock()
        self._workers: set[str] = set()

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def create_session(self, session: Session) -> None:
        await self._write(partial(_insert_session, session=session))

    async def get_session(self, owner: str, session_id: str) -> Session:
        return await self._read(partial(_session, owner=owner, session_id=session_id))

    async def list_sessions(
        self,
        owner: str,
        *,
        status: SessionStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        def job(db: sqlite3.Connection) -> Page:
            where = {"owner": owner, "status": status, "cursor": cursor, "limit": limit + 1}
            rows = db.execute(_SQL["sessions"], where).fetchall()
            sessions = tuple(map(_read_session, rows[:limit]))
            return Page(sessions, sessions[-1].id if len(rows) > limit else None)

        return await self._read(job)

    async def save_session(self, session: Session) -> Session:
        def job(db: sqlite3.Connection) -> Session:
            if _session(db, session.owner, session.id).version != session.version:
                raise SessionChanged(
                    f"session {session.id} was changed meanwhile: read it again and repeat the change",
                    session_id=session.id,
                )
            saved = replace(session, version=session.version + 1, updated_at=self._clock.now())
            [key] = db.execute(_SQL["update_session"], _session_row(saved)).fetchone()
            db.execute(_SQL["update_digest"], {"session": key, "digest": saved.memory.digest})
            return saved

        return await self._write(job)

    async def delete_session(self, owner: str, session_id: str) -> None:
        def job(db: sqlite3.Connection) -> None:
            where = {"session_id": session_id, "owner": owner}
            if not db.execute(_SQL["delete_session"], where).rowcount:
                raise _no_session(session_id)
            db.execute(_SQL["indexed_after_delete"])

        await self._write(job)

    async def erase(self, owner: str) -> int:
        def job(db: sqlite3.Connection) -> int:
            erased = db.execute(_SQL["erase"], {"owner": owner}).rowcount
            db.execute(_SQL["indexed_after_delete"])
            return erased

        return await self._write(job)

    async def begin(
        self,
        new: Continuation,
        *,
        worker: str,
        lease_s: float = LEASE_S,
        enqueue: bool = False,
        known: Session | None = None,
    ) -> Begun:
        def job(db: sqlite3.Connection) -> Begun:
            where = {"session_id": new.session_id, "owner": new.owner}
            place = db.execute(_SQL["place_of_turn"], where).fetchone()
            if place is None:
                raise _no_session(new.session_id)
            key, version, cursor, holder, pending = place
            same = _of_idempotency_key(db, key, new.request.idempotency_key)
            if same is not None:
                return Begun(same, None, created=False)
            is_known = known is not None and known.version == version
            session = known if known and is_known else _session(db, new.owner, new.session_id)
            check_begin(session)
            if holder is not None and not enqueue:
                raise busy(new.session_id, holder)
            if holder is not None or pending:
                waiting = replace(new, status="pending")
                _insert_continuation(db, key, waiting, cursor)
                return Begun(waiting, None, created=True)
            running = replace(new, status="running")
            self._workers.add(worker)
            until = lease_end(self._clock.now(), lease_s)
            _insert_continuation(db, key, running, cursor, worker, until)
            window = None if is_known else _window(db, key, session)
            turn = Turn(Lease(new.id, session.id, worker, 1), running, session, window)
            return Begun(running, turn, created=True)

        return await self._write(job)

    async def claim(
        self,
        owner: str,
        continuation_id: str,
        *,
        worker: str,
        lease_s: float = LEASE_S,
        steps: Sequence[NewStep] = (),
        known: Session | None = None,
    ) -> Turn:
        def job(db: sqlite3.Connection) -> Turn:
            continuation = _continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            holder = _holder(db, continuation)
            waits_for_approval = continuation.status == "awaiting_approval"
            if holder is not None and not (holder == continuation_id and waits_for_approval):
                raise busy(continuation.session_id, holder)
            _add_steps(db, continuation, steps, self._clock.now())
            return self._hand_over(db, continuation, worker, lease_s, known)

        return await self._write(job)

    async def claim_next(
        self,
        session_id: str,
        *,
        worker: str,
        lease_s: float = LEASE_S,
        known: Session | None = None,
    ) -> Turn | None:
        def job(db: sqlite3.Connection) -> Turn | None:
            row = db.execute(_SQL["next_pending"], {"session_id": session_id}).fetchone()
            pending = None if row is None else _read_continuation(row)
            if pending is None or _holder(db, pending) is not None:
                return None
            return self._hand_over(db, pending, worker, lease_s, known)

        return await self._write(job)

    async def append(
        self, lease: Lease, steps: Sequence[NewStep], *, awaiting_approval: bool = False
    ) -> tuple[Step, ...]:
        def job(db: sqlite3.Connection) -> tuple[Step, ...]:
            now, held = self._clock.now(), _held(db, lease)
            written = number_steps(steps, held.steps, held.cursor, now)
            _insert_steps(db, held.session, lease.continuation_id, written)
            if awaiting_approval:
                _let_go(db, lease.continuation_id, "awaiting_approval", now)
            return written

        return await self._write(job)

    async def finish(self, lease: Lease, end: Finish) -> Finished:
        def job(db: sqlite3.Connection) -> Finished:
            now, held = self._clock.now(), _held(db, lease)
            written = number_steps(end.steps, held.steps, held.cursor, now)
            _insert_steps(db, held.session, lease.continuation_id, written)
            ending = _Ending(end.response, end.error, end.artifacts)
            _let_go(db, lease.continuation_id, end.status, now, ending)
            stats = add_stats(decode(SessionStats, held.stats), end.stats)
            cursor, positions = held.cursor + len(written), held.positions + len(end.messages)
            changes = (now.timestamp(), cursor, positions, encode(stats), held.session)
            db.execute(_SQL["end_turn"], changes)
            placed = enumerate(end.messages, held.positions + 1)
            _insert_messages(db, held.session, lease.continuation_id, placed)
            if end.cut is not None:
                _move_cut(db, held.session, end.cut)
            return Finished(written, bool(held.next_waits))

        return await self._write(job)

    async def cancel(self, owner: str, continuation_id: str, reason: str) -> Continuation:
        def job(db: sqlite3.Connection) -> Continuation:
            continuation = _continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            return self._close(db, continuation, "cancelled", cancelled_steps(reason))

        return await self._write(job)

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        def job(db: sqlite3.Connection) -> frozenset[str]:
            until = lease_end(self._clock.now(), lease_s).timestamp()
            ids = json.dumps(list(continuation_ids))
            rows = db.execute(_SQL["renew"], {"until": until, "worker": worker, "ids": ids})
            return frozenset(row[0] for row in rows.fetchall())

        return await self._write(job)

    async def interrupt_lost(self) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            where = {
                "now": self._clock.now().timestamp(),
                "alone": self._database.alone,
                "workers": json.dumps(list(self._workers)),
            }
            lost = map(_read_continuation, db.execute(_SQL["lost"], where).fetchall())
            step = NewStep("observed_event", {"event": "interrupted"})
            return [self._close(db, continuation, "interrupted", (step,)) for continuation in lost]

        return await self._write(job)

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return await self._read(partial(_continuation, owner=owner, continuation_id=continuation_id))

    async def list_continuations(self, owner: str, session_id: str) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            return _continuations(db, _key(db, owner, session_id))

        return await self._read(job)

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        def job(db: sqlite3.Connection) -> tuple[Continuation, tuple[Step, ...]]:
            return _continuation(db, owner, continuation_id), _steps(db, continuation_id)

        return await self._read(job)

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        def job(db: sqlite3.Connection) -> list[StoredStep]:
            return _events(db, _key(db, owner, session_id), after, limit)

        return await self._read(job)

    async def window(self, owner: str, session_id: str) -> ConversationWindow:
        def job(db: sqlite3.Connection) -> ConversationWindow:
            return _window(db, _key(db, owner, session_id), _session(db, owner, session_id))

        return await self._read(job)

    async def evicted(self, owner: str, session_id: str) -> tuple[Evicted, ...]:
        def job(db: sqlite3.Connection) -> tuple[Evicted, ...]:
            return _cut(db, _key(db, owner, session_id)).evicted

        return await self._read(job)

    async def messages(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            return _messages(db, _key(db, owner, session_id), session_id, after, limit)

        return await self._read(job)

    async def search(
        self, owner: str, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        words = " ".join(f'"{word.replace(chr(34), chr(34) * 2)}"' for word in query.split())

        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            where = {"words": words, "owner": owner, "session_id": session_id, "limit": limit}
            return [_read_message(*row) for row in db.execute(_SQL["search"], where)]

        await self._write(_index_messages)
        return await self._read(job)

    async def put_artifact(self, artifact: Artifact) -> None:
        def job(db: sqlite3.Connection) -> None:
            _insert_artifact(db, _key(db, artifact.owner, artifact.session_id), artifact)

        await self._write(job)

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        def job(db: sqlite3.Connection) -> Artifact:
            row = db.execute(_SQL["artifact"], {"id": artifact_id, "owner": owner}).fetchone()
            if row is None:
                raise ArtifactNotFound(f"no artifact {artifact_id}", artifact_id=artifact_id)
            return _read_artifact(row)

        return await self._read(job)

    async def export_session(self, owner: str, session_id: str) -> Bundle:
        def job(db: sqlite3.Connection) -> Bundle:
            db.execute("BEGIN")
            try:
                return _bundle(db, _key(db, owner, session_id), _session(db, owner, session_id))
            finally:
                db.execute("ROLLBACK")

        return await self._read(job)

    async def import_session(self, bundle: Bundle) -> None:
        await self._write(partial(_insert_bundle, bundle=bundle))

    async def sweep(self, *, idle_before: datetime, ended_before: datetime) -> Swept:
        def job(db: sqlite3.Connection) -> Swept:
            before = {"before": ended_before.timestamp()}
            forgotten = list(map(_read_continuation, db.execute(_SQL["forgotten"], before).fetchall()))
            for continuation in forgotten:
                step = NewStep("summary", {"status": "expired"})
                self._close(db, continuation, "expired", (step,))
            steps = _sweep_steps(db, ended_before)
            _index_messages(db)
            idle = db.execute(_SQL["idle_sessions"], {"before": idle_before.timestamp()}).fetchall()
            db.executemany(_SQL["expire_session"], idle)
            return Swept(len(idle), len(forgotten), steps)

        return await self._write(job)

    def _hand_over(
        self,
        db: sqlite3.Connection,
        continuation: Continuation,
        worker: str,
        lease_s: float,
        known: Session | None,
    ) -> Turn:
        now = self._clock.now()
        self._workers.add(worker)
        until = lease_end(now, lease_s).timestamp()
        [epoch] = db.execute(
            _SQL["hand_over"],
            {"id": continuation.id, "now": now.timestamp(), "worker": worker, "until": until},
        ).fetchone()
        running = replace(continuation, status="running", updated_at=now)
        session = _session(db, continuation.owner, continuation.session_id)
        is_known = known is not None and known.version == session.version
        window = None if is_known else _window(db, _key(db, session.owner, session.id), session)
        lease = Lease(continuation.id, session.id, worker, epoch)
        return Turn(lease, running, session, window, _steps(db, continuation.id))

    def _close(
        self, db: sqlite3.Connection, continuation: Continuation, status: Status, steps: Sequence[NewStep]
    ) -> Continuation:
        """Take a continuation from whoever holds it."""
        now = self._clock.now()
        _add_steps(db, continuation, steps, now)
        _let_go(db, continuation.id, status, now)
        return replace(continuation, status=status, updated_at=now)


def _no_session(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session {session_id}", session_id=session_id)


def _time(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def _key(db: sqlite3.Connection, owner: str, session_id: str) -> int:
    row = db.execute(_SQL["key"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        raise _no_session(session_id)
    return int(row[0])


def _session(db: sqlite3.Connection, owner: str, session_id: str) -> Session:
    row = db.execute(_SQL["session"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        raise _no_session(session_id)
    return _read_session(row)


def _read_session(row: Sequence[Any]) -> Session:
    body, status, updated_at, version, stats, digest = row
    session = decode(Session, body)
    return replace(
        session,
        status=status,
        updated_at=_time(updated_at),
        version=version,
        stats=decode(SessionStats, stats),
        memory=replace(session.memory, digest=digest),
    )


def _session_row(session: Session) -> dict[str, Any]:
    body = replace(session, stats=NO_STATS, memory=replace(session.memory, digest=""))
    return {
        "id": session.id,
        "owner": session.owner,
        "status": session.status,
        "updated_at": session.updated_at.timestamp(),
        "version": session.version,
        "stats": encode(session.stats),
        "body": encode(body),
    }


def _insert_session(db: sqlite3.Connection, session: Session) -> int:
    """Write a session, and return its key."""
    row = db.execute(_SQL["insert_session"], _session_row(session)).fetchone()
    if row is None:
        raise SessionExists(f"session {session.id} exists already", session_id=session.id)
    db.execute(_SQL["insert_cut"], {"session": row[0], "digest": session.memory.digest})
    return int(row[0])


def _continuation(db: sqlite3.Connection, owner: str, continuation_id: str) -> Continuation:
    row = db.execute(_SQL["continuation"], {"id": continuation_id, "owner": owner}).fetchone()
    if row is None:
        raise ContinuationNotFound(f"no continuation {continuation_id}", continuation_id=continuation_id)
    return _read_continuation(row)


def _continuations(db: sqlite3.Connection, key: int) -> list[Continuation]:
    return list(map(_read_continuation, db.execute(_SQL["continuations"], {"session": key})))


def _of_idempotency_key(db: sqlite3.Connection, key: int, idempotency_key: str | None) -> Continuation | None:
    if idempotency_key is None:
        return None
    where = {"session": key, "idempotency_key": idempotency_key}
    row = db.execute(_SQL["continuation_of_key"], where).fetchone()
    return None if row is None else _read_continuation(row)


def _read_continuation(row: Sequence[Any]) -> Continuation:
    body, status, updated_at, ending = row
    continuation = replace(decode(Continuation, body), status=status, updated_at=_time(updated_at))
    if ending is None:
        return continuation
    end = decode(_Ending, ending)
    return replace(continuation, response=end.response, error=end.error, artifacts=end.artifacts)


def _insert_continuation(
    db: sqlite3.Connection,
    key: int,
    continuation: Continuation,
    first_cursor: int,
    worker: str | None = None,
    lease_until: datetime | None = None,
    ending: _Ending | None = None,
) -> None:
    db.execute(
        _SQL["insert_continuation"],
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
            encode(continuation),
            ending and encode(ending),
        ),
    )


def _held(db: sqlite3.Connection, lease: Lease) -> _Held:
    row = db.execute(_SQL["held"], (lease.continuation_id, lease.worker, lease.epoch)).fetchone()
    if row is None:
        raise LeaseLost(lease.continuation_id)
    return _Held(*row)


def _holder(db: sqlite3.Connection, continuation: Continuation) -> str | None:
    """Return who holds the session of a continuation."""
    row = db.execute(_SQL["holder"], {"id": continuation.id}).fetchone()
    return None if row is None else str(row[0])


def _let_go(
    db: sqlite3.Connection,
    continuation_id: str,
    status: Status,
    now: datetime,
    ending: _Ending | None = None,
) -> None:
    db.execute(_SQL["let_go"], (status, now.timestamp(), ending and encode(ending), continuation_id))


def _add_steps(
    db: sqlite3.Connection, continuation: Continuation, steps: Sequence[NewStep], now: datetime
) -> None:
    """Write steps of a continuation that need not be held."""
    key, n, cursor = db.execute(_SQL["place"], {"id": continuation.id}).fetchone()
    _insert_steps(db, key, continuation.id, number_steps(steps, n, cursor, now))


def _insert_steps(db: sqlite3.Connection, key: int, continuation_id: str, steps: Iterable[Step]) -> None:
    rows = [(key, step.cursor, continuation_id, encode(step)) for step in steps]
    db.executemany(_SQL["insert_step"], rows)


def _steps(db: sqlite3.Connection, continuation_id: str) -> tuple[Step, ...]:
    return tuple(decode(Step, row[0]) for row in db.execute(_SQL["steps"], {"id": continuation_id}))


def _events(db: sqlite3.Connection, key: int, after: int, limit: int) -> list[StoredStep]:
    rows = db.execute(_SQL["events"], {"session": key, "after": after, "limit": limit})
    return [StoredStep(continuation_id, decode(Step, body)) for continuation_id, body in rows]


def _sweep_steps(db: sqlite3.Connection, before: datetime) -> int:
    """Drop the steps of continuations that ended long ago; their cursors are not given again."""
    dropped = 0
    for row in db.execute(_SQL["long_ended"], {"before": before.timestamp()}).fetchall():
        where = dict(zip(("id", "session", "first_cursor"), row, strict=True))
        db.execute(_SQL["keep_cursor"], where)
        dropped += db.execute(_SQL["drop_steps"], where).rowcount
        db.execute(_SQL["mark_swept"], where)
    return dropped


def _insert_messages(
    db: sqlite3.Connection,
    key: int,
    continuation_id: str | None,
    messages: Iterable[tuple[int, MessageEntry]],
) -> None:
    rows = [(key, position, continuation_id, encode(message)) for position, message in messages]
    db.executemany(_SQL["insert_message"], rows)


def _messages(
    db: sqlite3.Connection, key: int, session_id: str, after: int, limit: int
) -> list[StoredMessage]:
    rows = db.execute(_SQL["messages"], {"session": key, "after": after, "limit": limit})
    return [_read_message(session_id, *row) for row in rows]


def _read_message(
    session_id: str, position: int, continuation_id: str | None, body: str, in_window: int
) -> StoredMessage:
    message = decode(MessageEntry, body)
    return StoredMessage(session_id, position, message, bool(in_window), continuation_id)


def _index_messages(db: sqlite3.Connection) -> None:
    """Let the full-text index catch up with the messages."""
    db.execute(_SQL["not_indexed"])
    db.execute(_SQL["all_indexed"])


def _window(db: sqlite3.Connection, key: int, session: Session) -> ConversationWindow:
    cut = _cut(db, key)
    rows = db.execute(_SQL["window"], {"session": key})
    return ConversationWindow(
        session.id,
        tuple(decode(MessageEntry, body) for _, body in rows),
        max_tokens=session.window.max_tokens,
        max_turns=session.window.max_turns,
        evict_to=session.window.evict_to,
        evicted_count=cut.evicted_count,
        turn_starts=cut.turn_starts,
    )


def _cut(db: sqlite3.Connection, key: int) -> _LastCut:
    turn_starts, evicted, *counts = db.execute(_SQL["cut"], {"session": key}).fetchone()
    last = tuple(Evicted(*item) for item in json.loads(evicted))
    return _LastCut(tuple(json.loads(turn_starts)), last, *counts)


def _move_cut(db: sqlite3.Connection, key: int, cut: Cut) -> None:
    """Take what was evicted out of the window."""
    gone = {evicted.message_id for evicted in cut.evicted}
    ids = {
        position: json.loads(body)["id"] for position, body in db.execute(_SQL["window"], {"session": key})
    }
    left_at = [position for position, message_id in ids.items() if message_id in gone]
    stays_at = [position for position, message_id in ids.items() if message_id not in gone]
    last = _cut(db, key)
    moved = _LastCut(cut.turn_starts, cut.evicted, last.evicted_count + len(gone), last.window_from)
    _write_cut(db, key, moved, left_at, stays_at)
    db.execute(_SQL["update_digest"], {"session": key, "digest": cut.digest})


def _write_cut(
    db: sqlite3.Connection, key: int, cut: _LastCut, left_at: list[int], stays_at: list[int]
) -> None:
    """Note where the window is cut: all from some position on, and what is kept of the positions before."""
    window_from = max((cut.window_from, *(position + 1 for position in left_at)))
    db.execute(
        _SQL["move_cut"],
        {
            "session": key,
            "window_from": window_from,
            "kept": json.dumps([position for position in stays_at if position < window_from]),
            "turn_starts": json.dumps(cut.turn_starts),
            "evicted": json.dumps([(e.message_id, e.reason) for e in cut.evicted]),
            "evicted_count": cut.evicted_count,
        },
    )


def _insert_artifact(db: sqlite3.Connection, key: int, artifact: Artifact) -> None:
    db.execute(
        _SQL["insert_artifact"],
        {
            "id": artifact.ref.id,
            "session": key,
            "owner": artifact.owner,
            "ref": encode(artifact.ref),
            "data": artifact.data,
        },
    )


def _read_artifact(row: Sequence[Any]) -> Artifact:
    ref, session_id, owner, data = row
    return Artifact(decode(ArtifactRef, ref), session_id, owner, data)


def _bundle(db: sqlite3.Connection, key: int, session: Session) -> Bundle:
    cut = _cut(db, key)
    return Bundle(
        session=session,
        continuations=tuple(_continuations(db, key)),
        steps=tuple(_events(db, key, 0, -1)),
        messages=tuple(_messages(db, key, session.id, 0, -1)),
        artifacts=tuple(map(_read_artifact, db.execute(_SQL["artifacts"], {"session": key}))),
        turn_starts=cut.turn_starts,
        evicted=cut.evicted,
        evicted_count=cut.evicted_count,
    )


def _insert_bundle(db: sqlite3.Connection, bundle: Bundle) -> None:
    key = _insert_session(db, bundle.session)
    for c in bundle.continuations:
        _insert_continuation(db, key, c, first_cursor=0, ending=_Ending(c.response, c.error, c.artifacts))
    for stored in bundle.steps:
        _insert_steps(db, key, stored.continuation_id, (stored.step,))
    for m in bundle.messages:
        _insert_messages(db, key, m.continuation_id, ((m.position, m.message),))
    for artifact in bundle.artifacts:
        _insert_artifact(db, key, artifact)
    left_at = [m.position for m in bundle.messages if not m.in_window]
    stays_at = [m.position for m in bundle.messages if m.in_window]
    cut = _LastCut(bundle.turn_starts, bundle.evicted, bundle.evicted_count, window_from=1)
    _write_cut(db, key, cut, left_at, stays_at)
    db.execute(_SQL["set_positions"], {"session": key, "positions": len(bundle.messages)})
    db.execute(_SQL["keep_cursor"], {"session": key})
