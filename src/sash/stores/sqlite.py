"""The store on SQLite: the default, with nothing to set up.

One writer thread owns the writing connection. What waits when it gets to work is committed together, with one
fsync (group commit); each job has a savepoint of its own, so that one that is refused does not touch the
others. Readers have connections apart, and never wait for the writer (WAL).
"""

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

from sash.clock import Clock, SystemClock
from sash.codec import decode, encode
from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    LeaseLost,
    SessionChanged,
    SessionExists,
    SessionNotFound,
    StoreUnavailable,
)
from sash.sessions import Session, SessionStatus
from sash.state import ConversationWindow, MessageEntry
from sash.steps import ArtifactRef, Continuation, NewStep, Step
from sash.store import (
    LEASE_S,
    Artifact,
    Begun,
    Bundle,
    Finish,
    Finished,
    Lease,
    Page,
    StoredMessage,
    StoredStep,
    Swept,
    Turn,
    after_turn,
    already_final,
    busy,
    cancelled_steps,
    check_begin,
    lease_end,
    number_steps,
)
from sash.stores.lock import FileLock

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

SCHEMA_VERSION = 1
MOST_JOBS_A_COMMIT = 256
READERS = 2
BUSY_TIMEOUT_S = 5.0


@dataclass(slots=True)
class _Waiting:
    """A job with the one who waits for its result."""

    job: Job[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None

    def tell(self) -> None:
        if not self.future.done():
            if self.error is None:
                self.future.set_result(self.result)
            else:
                self.future.set_exception(self.error)


class SqliteStore:
    """Sessions in one SQLite file. `synchronous="NORMAL"` may lose the last moments before a power cut."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        clock: Clock | None = None,
    ) -> None:
        self._path = Path(path)
        self._synchronous = synchronous
        self._clock = clock or SystemClock()
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._readers: ThreadPoolExecutor | None = None
        self._lock = FileLock(Path(f"{self._path}.lock"))
        self._alone = False
        self._workers: set[str] = set()

    async def open(self) -> None:
        if self._writer is not None:
            return
        database = await asyncio.to_thread(self._prepare)
        self._local, self._reading = threading.local(), []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sash-reader")
        self._writer = threading.Thread(
            target=self._write_forever, args=(database,), name="sash-writer", daemon=True
        )
        self._writer.start()

    async def close(self) -> None:
        if self._writer is not None and self._readers is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
            self._readers.shutdown()
            for db in self._reading:
                db.close()
            self._lock.release()
            self._writer = self._readers = None

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
            rows = db.execute(
                "SELECT body FROM sessions WHERE owner = :owner AND (:status IS NULL OR status = :status) "
                "AND (:cursor IS NULL OR id < :cursor) ORDER BY id DESC LIMIT :limit + 1",
                {"owner": owner, "status": status, "cursor": cursor, "limit": limit},
            ).fetchall()
            sessions = tuple(decode(Session, row[0]) for row in rows[:limit])
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
            _update_session(db, saved)
            return saved

        return await self._write(job)

    async def delete_session(self, owner: str, session_id: str) -> None:
        def job(db: sqlite3.Connection) -> None:
            _session(db, owner, session_id)
            db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))

        await self._write(job)

    async def erase(self, owner: str) -> int:
        def job(db: sqlite3.Connection) -> int:
            return db.execute("DELETE FROM sessions WHERE owner = ?", (owner,)).rowcount

        return await self._write(job)

    async def begin(
        self,
        new: Continuation,
        *,
        worker: str,
        lease_s: float = LEASE_S,
        enqueue: bool = False,
        known_version: int | None = None,
    ) -> Begun:
        def job(db: sqlite3.Connection) -> Begun:
            key = new.request.idempotency_key
            session, cursor, holder, pending = _place_of_turn(db, new.owner, new.session_id)
            same = None if key is None else _of_key(db, new.session_id, key)
            if same is not None:
                return Begun(same, None, created=False)
            check_begin(session)
            if holder is not None and not enqueue:
                raise busy(new.session_id, holder)
            if holder is not None or pending:
                waiting = replace(new, status="pending")
                _insert_continuation(db, waiting, cursor)
                return Begun(waiting, None, created=True)
            running = replace(new, status="running")
            until = lease_end(self._clock.now(), lease_s)
            self._workers.add(worker)
            _insert_continuation(db, running, cursor, worker, until)
            window = None if session.version == known_version else _window(db, session)
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
        known_version: int | None = None,
    ) -> Turn:
        def job(db: sqlite3.Connection) -> Turn:
            continuation = _continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            holder = _holder(db, continuation.session_id)
            waits_for_approval = continuation.status == "awaiting_approval"
            if holder is not None and not (holder == continuation_id and waits_for_approval):
                raise busy(continuation.session_id, holder)
            self._add_steps(db, continuation.session_id, continuation.id, steps, *_place(db, continuation))
            session = _session(db, owner, continuation.session_id)
            return self._hand_over(db, continuation, session, worker, lease_s, known_version)

        return await self._write(job)

    async def claim_next(
        self,
        session_id: str,
        *,
        worker: str,
        lease_s: float = LEASE_S,
        known_version: int | None = None,
    ) -> Turn | None:
        def job(db: sqlite3.Connection) -> Turn | None:
            pending = _next_pending(db, session_id)
            if pending is None or _holder(db, session_id) is not None:
                return None
            session = _session(db, pending.owner, session_id)
            return self._hand_over(db, pending, session, worker, lease_s, known_version)

        return await self._write(job)

    async def append(
        self, lease: Lease, steps: Sequence[NewStep], *, awaiting_approval: bool = False
    ) -> tuple[Step, ...]:
        def job(db: sqlite3.Connection) -> tuple[Step, ...]:
            body, n, cursor = _held(db, lease)
            written = self._add_steps(db, lease.session_id, lease.continuation_id, steps, n, cursor)
            if awaiting_approval:
                continuation = decode(Continuation, body)
                _let_go(db, replace(continuation, status="awaiting_approval", updated_at=self._clock.now()))
            return written

        return await self._write(job)

    async def finish(self, lease: Lease, end: Finish) -> Finished:
        def job(db: sqlite3.Connection) -> Finished:
            now = self._clock.now()
            body, n, cursor = _held(db, lease)
            continuation = decode(Continuation, body)
            written = self._add_steps(db, lease.session_id, lease.continuation_id, end.steps, n, cursor)
            ended = replace(
                continuation,
                status=end.status,
                updated_at=now,
                response=end.response,
                error=end.error,
                artifacts=end.artifacts,
            )
            _let_go(db, ended)
            session, _, _, waits = _place_of_turn(db, continuation.owner, continuation.session_id)
            positions = _end_turn(db, after_turn(session, end, now), cursor + len(end.steps), end)
            if end.messages:
                _add_messages(db, continuation, end, positions)
            return Finished(ended, written, waits)

        return await self._write(job)

    async def cancel(self, owner: str, continuation_id: str, reason: str) -> Continuation:
        def job(db: sqlite3.Connection) -> Continuation:
            continuation = _continuation(db, owner, continuation_id)
            if continuation.is_final:
                raise already_final(continuation)
            self._add_steps(
                db,
                continuation.session_id,
                continuation.id,
                cancelled_steps(reason),
                *_place(db, continuation),
            )
            ended = replace(continuation, status="cancelled", updated_at=self._clock.now())
            _let_go(db, ended)
            return ended

        return await self._write(job)

    async def renew(
        self, worker: str, continuation_ids: Collection[str], *, lease_s: float = LEASE_S
    ) -> frozenset[str]:
        def job(db: sqlite3.Connection) -> frozenset[str]:
            until = lease_end(self._clock.now(), lease_s).timestamp()
            rows = db.execute(
                "UPDATE continuations SET lease_until = ? WHERE worker = ? "
                "AND id IN (SELECT value FROM json_each(?)) RETURNING id",
                (until, worker, json.dumps(list(continuation_ids))),
            )
            return frozenset(row[0] for row in rows.fetchall())

        return await self._write(job)

    async def interrupt_lost(self) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            now = self._clock.now()
            rows = db.execute(
                "SELECT body, worker, lease_until FROM continuations WHERE worker IS NOT NULL"
            ).fetchall()
            lost = [
                decode(Continuation, body)
                for body, worker, lease_until in rows
                if lease_until <= now.timestamp() or (self._alone and worker not in self._workers)
            ]
            return [self._interrupt(db, continuation, now) for continuation in lost]

        return await self._write(job)

    async def get_continuation(self, owner: str, continuation_id: str) -> Continuation:
        return await self._read(partial(_continuation, owner=owner, continuation_id=continuation_id))

    async def list_continuations(self, owner: str, session_id: str) -> list[Continuation]:
        def job(db: sqlite3.Connection) -> list[Continuation]:
            _session(db, owner, session_id)
            rows = db.execute(
                "SELECT body FROM continuations WHERE session_id = ? ORDER BY id", (session_id,)
            )
            return [decode(Continuation, row[0]) for row in rows]

        return await self._read(job)

    async def journal(self, owner: str, continuation_id: str) -> tuple[Continuation, tuple[Step, ...]]:
        def job(db: sqlite3.Connection) -> tuple[Continuation, tuple[Step, ...]]:
            continuation = _continuation(db, owner, continuation_id)
            return continuation, _steps(db, continuation)

        return await self._read(job)

    async def events(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredStep]:
        def job(db: sqlite3.Connection) -> list[StoredStep]:
            _session(db, owner, session_id)
            return _events(db, session_id, after, limit)

        return await self._read(job)

    async def window(self, owner: str, session_id: str) -> ConversationWindow:
        def job(db: sqlite3.Connection) -> ConversationWindow:
            return _window(db, _session(db, owner, session_id))

        return await self._read(job)

    async def messages(
        self, owner: str, session_id: str, *, after: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            _session(db, owner, session_id)
            return _messages(db, session_id, after, limit)

        return await self._read(job)

    async def search(
        self, owner: str, query: str, *, session_id: str | None = None, limit: int = 10
    ) -> list[StoredMessage]:
        words = " ".join(f'"{word.replace(chr(34), chr(34) * 2)}"' for word in query.split())

        def job(db: sqlite3.Connection) -> list[StoredMessage]:
            rows = db.execute(
                f"SELECT {_MESSAGE} FROM said JOIN messages ON messages.row = said.rowid "
                "JOIN sessions ON sessions.id = messages.session_id "
                "WHERE said MATCH :words AND sessions.owner = :owner "
                "AND (:session IS NULL OR messages.session_id = :session) ORDER BY rank LIMIT :limit",
                {"words": words, "owner": owner, "session": session_id, "limit": limit},
            )
            return list(map(_stored_message, rows))

        await self._write(_index_messages)
        return await self._read(job)

    async def put_artifact(self, artifact: Artifact) -> None:
        def job(db: sqlite3.Connection) -> None:
            _session(db, artifact.owner, artifact.session_id)
            _insert_artifact(db, artifact)

        await self._write(job)

    async def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        def job(db: sqlite3.Connection) -> Artifact:
            row = db.execute(
                "SELECT ref, session_id, owner, data FROM artifacts WHERE id = ? AND owner = ?",
                (artifact_id, owner),
            ).fetchone()
            if row is None:
                raise ArtifactNotFound(f"no artifact {artifact_id}", artifact_id=artifact_id)
            return Artifact(decode(ArtifactRef, row[0]), *row[1:])

        return await self._read(job)

    async def export_session(self, owner: str, session_id: str) -> Bundle:
        def job(db: sqlite3.Connection) -> Bundle:
            db.execute("BEGIN")
            try:
                return _bundle(db, _session(db, owner, session_id))
            finally:
                db.execute("ROLLBACK")

        return await self._read(job)

    async def import_session(self, bundle: Bundle) -> None:
        def job(db: sqlite3.Connection) -> None:
            _insert_session(db, bundle.session)
            for continuation in bundle.continuations:
                _insert_continuation(db, continuation, first_cursor=0)
            for stored in bundle.steps:
                _insert_step(db, bundle.session.id, stored.continuation_id, stored.step)
            _insert_messages(db, bundle.messages)
            for artifact in bundle.artifacts:
                _insert_artifact(db, artifact)
            db.execute(
                "UPDATE sessions SET evicted = ?, turn_starts = ?, positions = ?, "
                "cursor = (SELECT ifnull(max(cursor), 0) FROM steps WHERE session_id = sessions.id) "
                "WHERE id = ?",
                (
                    bundle.evicted_count,
                    json.dumps(bundle.turn_starts),
                    len(bundle.messages),
                    bundle.session.id,
                ),
            )

        await self._write(job)

    async def sweep(self, *, idle_before: datetime, ended_before: datetime) -> Swept:
        def job(db: sqlite3.Connection) -> Swept:
            now = self._clock.now()
            waiting = db.execute(
                "SELECT body FROM continuations WHERE worker IS NULL AND updated_at < ? "
                "AND status IN ('pending', 'interrupted', 'awaiting_approval')",
                (ended_before.timestamp(),),
            ).fetchall()
            for row in waiting:
                expired = replace(decode(Continuation, row[0]), status="expired", updated_at=now)
                step = NewStep("summary", {"status": "expired"})
                self._add_steps(db, expired.session_id, expired.id, (step,), *_place(db, expired))
                _let_go(db, expired)
            steps = _sweep_steps(db, ended_before)
            _index_messages(db)
            idle = db.execute(
                "SELECT body FROM sessions WHERE status = 'active' AND updated_at < ? AND NOT EXISTS "
                "(SELECT 1 FROM continuations WHERE session_id = sessions.id AND status IN "
                "('running', 'awaiting_approval'))",
                (idle_before.timestamp(),),
            ).fetchall()
            for row in idle:
                session = decode(Session, row[0])
                _update_session(db, replace(session, status="expired", version=session.version + 1))
            return Swept(len(idle), len(waiting), steps)

        return await self._write(job)

    def _hand_over(
        self,
        db: sqlite3.Connection,
        continuation: Continuation,
        session: Session,
        worker: str,
        lease_s: float,
        known_version: int | None,
    ) -> Turn:
        now = self._clock.now()
        self._workers.add(worker)
        running = replace(continuation, status="running", updated_at=now)
        [epoch] = db.execute(
            "UPDATE continuations SET status = 'running', updated_at = ?, worker = ?, lease_until = ?, "
            "epoch = epoch + 1, body = ? WHERE id = ? RETURNING epoch",
            (
                now.timestamp(),
                worker,
                lease_end(now, lease_s).timestamp(),
                encode(running),
                continuation.id,
            ),
        ).fetchone()
        steps = _steps(db, running)
        window = None if session.version == known_version else _window(db, session)
        return Turn(Lease(continuation.id, session.id, worker, epoch), running, session, window, steps)

    def _interrupt(self, db: sqlite3.Connection, continuation: Continuation, now: datetime) -> Continuation:
        step = NewStep("observed_event", {"event": "interrupted"})
        self._add_steps(db, continuation.session_id, continuation.id, (step,), *_place(db, continuation))
        interrupted = replace(continuation, status="interrupted", updated_at=now)
        _let_go(db, interrupted)
        return interrupted

    def _add_steps(
        self,
        db: sqlite3.Connection,
        session_id: str,
        continuation_id: str,
        steps: Sequence[NewStep],
        n: int,
        cursor: int,
    ) -> tuple[Step, ...]:
        written = number_steps(steps, n, cursor, self._clock.now())
        for step in written:
            _insert_step(db, session_id, continuation_id, step)
        return written

    async def _write(self, job: Job[T]) -> T:
        if self._writer is None:
            raise StoreUnavailable("the store is not open")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(job, loop.create_future(), loop)
        self._jobs.put(waiting)
        result: T = await waiting.future
        return result

    async def _read(self, job: Job[T]) -> T:
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run_reader, job)

    def _run_reader(self, job: Job[T]) -> T:
        try:
            if not hasattr(self._local, "db"):
                self._local.db = self._connect(reader=True)
                self._reading.append(self._local.db)
            return job(self._local.db)
        except sqlite3.Error as error:
            raise _unavailable(self._path, error) from error

    def _connect(self, *, reader: bool = False) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute(f"PRAGMA query_only = {'ON' if reader else 'OFF'}")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _prepare(self) -> sqlite3.Connection:
        with ExitStack() as undo:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._alone = self._lock.acquire()
                undo.callback(self._lock.release)
                db = self._connect()
                undo.callback(db.close)
                db.execute("PRAGMA journal_mode = WAL")
                _migrate(db)
            except (sqlite3.Error, OSError) as error:
                raise _unavailable(self._path, error) from error
            undo.pop_all()
        return db

    def _write_forever(self, db: sqlite3.Connection) -> None:
        closing = False
        while not closing:
            first = self._jobs.get()
            batch = [] if first is None else [first]
            closing = first is None
            while not closing and len(batch) < MOST_JOBS_A_COMMIT:
                try:
                    waiting = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if waiting is None:
                    closing = True
                else:
                    batch.append(waiting)
            if batch:
                _commit(db, batch, self._path)
                _tell(batch)
        db.close()


def _commit(db: sqlite3.Connection, batch: list[_Waiting], path: Path) -> None:
    """Run the jobs in one transaction; if it cannot be committed none of them has happened."""
    try:
        db.execute("BEGIN IMMEDIATE")
        for waiting in batch:
            _run_job(db, waiting, alone=len(batch) == 1)
        if db.in_transaction:
            db.execute("COMMIT")
    except Exception as error:
        with suppress(sqlite3.Error):
            db.rollback()
        for waiting in batch:
            waiting.error = waiting.error or _unavailable(path, error)


def _run_job(db: sqlite3.Connection, waiting: _Waiting, *, alone: bool) -> None:
    """Run one job; what it changed before it refused is undone, for which one alone needs no savepoint."""
    if not alone:
        db.execute("SAVEPOINT job")
    try:
        waiting.result = waiting.job(db)
    except sqlite3.Error:
        raise
    except BaseException as error:
        waiting.error = error
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
    if not alone:
        db.execute("RELEASE job")


def _tell(batch: Iterable[_Waiting]) -> None:
    for waiting in batch:
        try:
            waiting.loop.call_soon_threadsafe(waiting.tell)
        except RuntimeError:
            continue  # the loop of the one who asked is gone


def _migrate(db: sqlite3.Connection) -> None:
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreUnavailable(
            f"the database was written by a newer Sash (schema {version}, this one knows {SCHEMA_VERSION}): "
            "install the newer one"
        )
    for number in range(version + 1, SCHEMA_VERSION + 1):
        script = files("sash.stores").joinpath("sql", f"sqlite_{number:04}.sql").read_text()
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def _unavailable(path: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store {path.name} cannot be used: {error}. Check that the disk has room, that the file may be "
        "written, and that no other program holds it",
        cause=str(error),
    )


_MESSAGE = (
    "messages.session_id, messages.position, messages.in_window, messages.continuation_id, messages.body"
)


def _stored_message(row: Sequence[Any]) -> StoredMessage:
    session_id, position, in_window, continuation_id, body = row
    message = decode(MessageEntry, body)
    return StoredMessage(session_id, position, message, bool(in_window), continuation_id)


def _session(db: sqlite3.Connection, owner: str, session_id: str) -> Session:
    row = db.execute("SELECT body FROM sessions WHERE id = ? AND owner = ?", (session_id, owner)).fetchone()
    if row is None:
        raise SessionNotFound(f"no session {session_id}", session_id=session_id)
    return decode(Session, row[0])


def _insert_session(db: sqlite3.Connection, session: Session) -> None:
    if db.execute("SELECT 1 FROM sessions WHERE id = ?", (session.id,)).fetchone():
        raise SessionExists(f"session {session.id} exists already", session_id=session.id)
    db.execute(
        "INSERT INTO sessions (id, owner, status, updated_at, version, body) VALUES (?, ?, ?, ?, ?, ?)",
        (
            session.id,
            session.owner,
            session.status,
            session.updated_at.timestamp(),
            session.version,
            encode(session),
        ),
    )


def _update_session(db: sqlite3.Connection, session: Session) -> None:
    db.execute(
        "UPDATE sessions SET status = ?, updated_at = ?, version = ?, body = ? WHERE id = ?",
        (session.status, session.updated_at.timestamp(), session.version, encode(session), session.id),
    )


def _end_turn(db: sqlite3.Connection, session: Session, cursor: int, end: Finish) -> int:
    """Write what a turn's end changes of its session, and return how many messages it has then."""
    starts = (json.dumps(end.turn_starts),) if end.messages else ()
    [positions] = db.execute(
        "UPDATE sessions SET updated_at = ?, version = ?, body = ?, cursor = ?, positions = positions + ?, "
        f"evicted = evicted + ?{', turn_starts = ?' if end.messages else ''} WHERE id = ? "
        "RETURNING positions",
        (
            session.updated_at.timestamp(),
            session.version,
            encode(session),
            cursor,
            len(end.messages),
            len(end.evicted),
            *starts,
            session.id,
        ),
    ).fetchone()
    return int(positions)


def _continuation(db: sqlite3.Connection, owner: str, continuation_id: str) -> Continuation:
    row = db.execute(
        "SELECT body FROM continuations WHERE id = ? AND owner = ?", (continuation_id, owner)
    ).fetchone()
    if row is None:
        raise ContinuationNotFound(f"no continuation {continuation_id}", continuation_id=continuation_id)
    return decode(Continuation, row[0])


# The number of a continuation's last step, and the cursor of its session's last one, even if it was swept.
_PLACE = (
    "(SELECT count(*) FROM steps WHERE session_id = c.session_id AND cursor > c.first_cursor "
    "AND continuation_id = c.id), "
    "max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = c.session_id), 0)) "
    "FROM continuations AS c JOIN sessions AS s ON s.id = c.session_id WHERE c.session_id = ? AND c.id = ?"
)


def _held(db: sqlite3.Connection, lease: Lease) -> tuple[str, int, int]:
    row = db.execute(
        f"SELECT c.body, {_PLACE} AND worker = ? AND epoch = ?",
        (lease.session_id, lease.continuation_id, lease.worker, lease.epoch),
    ).fetchone()
    if row is None:
        raise LeaseLost(lease.continuation_id)
    body, n, cursor = row
    return body, n, cursor


def _place(db: sqlite3.Connection, continuation: Continuation) -> tuple[int, int]:
    n, cursor = db.execute(f"SELECT {_PLACE}", (continuation.session_id, continuation.id)).fetchone()
    return n, cursor


def _place_of_turn(
    db: sqlite3.Connection, owner: str, session_id: str
) -> tuple[Session, int, str | None, bool]:
    """Return a session, its last cursor, who holds it, and whether somebody waits."""
    row = db.execute(
        "SELECT body, max(cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = :id), 0)), "
        "(SELECT id FROM continuations WHERE session_id = :id "
        "AND status IN ('running', 'awaiting_approval')), "
        "EXISTS (SELECT 1 FROM continuations INDEXED BY waiting WHERE session_id = :id "
        "AND status = 'pending') "
        "FROM sessions WHERE id = :id AND owner = :owner",
        {"id": session_id, "owner": owner},
    ).fetchone()
    if row is None:
        raise SessionNotFound(f"no session {session_id}", session_id=session_id)
    return decode(Session, row[0]), row[1], row[2], bool(row[3])


def _of_key(db: sqlite3.Connection, session_id: str, key: str) -> Continuation | None:
    row = db.execute(
        "SELECT body FROM continuations WHERE session_id = ? AND idempotency_key = ?", (session_id, key)
    ).fetchone()
    return None if row is None else decode(Continuation, row[0])


def _holder(db: sqlite3.Connection, session_id: str) -> str | None:
    row = db.execute(
        "SELECT id FROM continuations WHERE session_id = ? AND status IN ('running', 'awaiting_approval')",
        (session_id,),
    ).fetchone()
    return None if row is None else str(row[0])


def _next_pending(db: sqlite3.Connection, session_id: str) -> Continuation | None:
    row = db.execute(
        "SELECT body FROM continuations INDEXED BY waiting WHERE session_id = ? AND status = 'pending' "
        "ORDER BY id LIMIT 1",
        (session_id,),
    ).fetchone()
    return None if row is None else decode(Continuation, row[0])


def _insert_continuation(
    db: sqlite3.Connection,
    continuation: Continuation,
    first_cursor: int,
    worker: str | None = None,
    lease_until: datetime | None = None,
) -> None:
    db.execute(
        "INSERT INTO continuations (session_id, id, owner, status, updated_at, idempotency_key, worker, "
        "lease_until, epoch, first_cursor, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            continuation.session_id,
            continuation.id,
            continuation.owner,
            continuation.status,
            continuation.updated_at.timestamp(),
            continuation.request.idempotency_key,
            worker,
            lease_until and lease_until.timestamp(),
            0 if worker is None else 1,
            first_cursor,
            encode(continuation),
        ),
    )


def _last_cursor(db: sqlite3.Connection, session_id: str) -> int:
    """The cursor of the session's last step, also when it was swept away."""
    [cursor] = db.execute(
        "SELECT max(cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = :id), 0)) "
        "FROM sessions WHERE id = :id",
        {"id": session_id},
    ).fetchone()
    return int(cursor)


def _steps(db: sqlite3.Connection, continuation: Continuation) -> tuple[Step, ...]:
    rows = db.execute(
        "SELECT body FROM steps WHERE session_id = :session AND continuation_id = :id AND cursor > "
        "(SELECT first_cursor FROM continuations WHERE session_id = :session AND id = :id) ORDER BY cursor",
        {"session": continuation.session_id, "id": continuation.id},
    )
    return tuple(decode(Step, row[0]) for row in rows)


def _sweep_steps(db: sqlite3.Connection, before: datetime) -> int:
    """Drop the steps of continuations that ended long ago; their cursors are not given again."""
    old = db.execute(
        "SELECT session_id, id, first_cursor FROM continuations WHERE NOT swept AND updated_at < ? "
        "AND status IN ('completed', 'failed', 'cancelled', 'expired')",
        (before.timestamp(),),
    ).fetchall()
    dropped = 0
    for session_id, continuation_id, first_cursor in old:
        last = _last_cursor(db, session_id)
        db.execute("UPDATE sessions SET cursor = ? WHERE id = ?", (last, session_id))
        dropped += db.execute(
            "DELETE FROM steps WHERE session_id = ? AND cursor > ? AND continuation_id = ?",
            (session_id, first_cursor, continuation_id),
        ).rowcount
        db.execute("UPDATE continuations SET swept = 1 WHERE id = ?", (continuation_id,))
    return dropped


def _index_messages(db: sqlite3.Connection) -> None:
    """Let the full-text index catch up with the messages."""
    [last] = db.execute("SELECT ifnull(max(row), 0) FROM messages").fetchone()
    [done] = db.execute("SELECT row FROM indexed").fetchone()
    if last > done:
        db.execute("INSERT INTO said (rowid, text) SELECT row, text FROM messages WHERE row > ?", (done,))
        db.execute("UPDATE indexed SET row = ?", (last,))


def _let_go(db: sqlite3.Connection, continuation: Continuation) -> None:
    """Write a continuation that nobody holds from now on; who held it is fenced out by the new epoch."""
    db.execute(
        "UPDATE continuations SET status = ?, updated_at = ?, worker = NULL, lease_until = NULL, "
        "epoch = epoch + 1, body = ? WHERE id = ?",
        (
            continuation.status,
            continuation.updated_at.timestamp(),
            encode(continuation),
            continuation.id,
        ),
    )


def _insert_step(db: sqlite3.Connection, session_id: str, continuation_id: str, step: Step) -> None:
    db.execute(
        "INSERT INTO steps (session_id, cursor, continuation_id, body) VALUES (?, ?, ?, ?)",
        (session_id, step.cursor, continuation_id, encode(step)),
    )


def _events(db: sqlite3.Connection, session_id: str, after: int, limit: int) -> list[StoredStep]:
    rows = db.execute(
        "SELECT continuation_id, body FROM steps WHERE session_id = ? AND cursor > ? ORDER BY cursor LIMIT ?",
        (session_id, after, limit),
    )
    return [StoredStep(continuation_id, decode(Step, body)) for continuation_id, body in rows]


def _add_messages(db: sqlite3.Connection, continuation: Continuation, end: Finish, last: int) -> None:
    session_id = continuation.session_id
    first = last - len(end.messages) + 1
    _insert_messages(
        db,
        (
            StoredMessage(session_id, position, message, True, continuation.id)
            for position, message in enumerate(end.messages, first)
        ),
    )
    evicted = set(end.evicted)
    for row, message_id in (
        db.execute(
            "SELECT row, id FROM messages WHERE session_id = ? AND in_window ORDER BY position", (session_id,)
        ).fetchall()
        if evicted
        else ()
    ):
        if message_id in evicted:
            db.execute("UPDATE messages SET in_window = 0 WHERE row = ?", (row,))


def _insert_messages(db: sqlite3.Connection, messages: Iterable[StoredMessage]) -> None:
    db.executemany(
        "INSERT INTO messages (session_id, position, id, continuation_id, in_window, body) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [
            (m.session_id, m.position, m.message.id, m.continuation_id, m.in_window, encode(m.message))
            for m in messages
        ],
    )


def _messages(db: sqlite3.Connection, session_id: str, after: int, limit: int) -> list[StoredMessage]:
    rows = db.execute(
        f"SELECT {_MESSAGE} FROM messages WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?",
        (session_id, after, limit),
    )
    return list(map(_stored_message, rows))


def _window(db: sqlite3.Connection, session: Session) -> ConversationWindow:
    evicted, turn_starts = db.execute(
        "SELECT evicted, turn_starts FROM sessions WHERE id = ?", (session.id,)
    ).fetchone()
    rows = db.execute(
        "SELECT body FROM messages WHERE session_id = ? AND in_window ORDER BY position", (session.id,)
    )
    return ConversationWindow(
        session.id,
        tuple(decode(MessageEntry, row[0]) for row in rows),
        max_tokens=session.window.max_tokens,
        max_turns=session.window.max_turns,
        evict_to=session.window.evict_to,
        evicted_count=evicted,
        turn_starts=tuple(json.loads(turn_starts)),
    )


def _insert_artifact(db: sqlite3.Connection, artifact: Artifact) -> None:
    db.execute(
        "INSERT INTO artifacts (id, session_id, owner, ref, data) VALUES (?, ?, ?, ?, ?)",
        (artifact.ref.id, artifact.session_id, artifact.owner, encode(artifact.ref), artifact.data),
    )


def _bundle(db: sqlite3.Connection, session: Session) -> Bundle:
    window = _window(db, session)
    continuations = db.execute(
        "SELECT body FROM continuations WHERE session_id = ? ORDER BY id", (session.id,)
    )
    artifacts = db.execute(
        "SELECT ref, session_id, owner, data FROM artifacts WHERE session_id = ?", (session.id,)
    )
    return Bundle(
        session=session,
        continuations=tuple(decode(Continuation, row[0]) for row in continuations.fetchall()),
        steps=tuple(_events(db, session.id, 0, -1)),
        messages=tuple(_messages(db, session.id, 0, -1)),
        artifacts=tuple(Artifact(decode(ArtifactRef, row[0]), *row[1:]) for row in artifacts.fetchall()),
        turn_starts=window.turn_starts,
        evicted_count=window.evicted_count,
    )
