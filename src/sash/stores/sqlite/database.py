"""One SQLite file: a thread that writes, threads that read, and the migrations.

The writer owns its connection. What waits when it gets to work is committed together, with one fsync (group
commit); each job has a savepoint of its own, so that one that is refused does not touch the others. Readers
have connections apart, and never wait for the writer (WAL).
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from sash.errors import StoreUnavailable, WriteRefused
from sash.stores.lock import FileLock
from sash.stores.sqlite.queries import script

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
Synchronous = Literal["FULL", "NORMAL"]

SCHEMA_VERSION = 1
MAX_JOBS_A_COMMIT = 256
READERS = 2
BUSY_TIMEOUT_S = 5.0

# What is wrong with one job, and not with the file.
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


@dataclass(slots=True)
class _Waiting:
    """A job with the one who waits for its result."""

    job: Job[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class _File:
    """Knows a file again: what is written into one that was moved or deleted, nobody finds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[int, int] | None = None

    def note(self) -> None:
        self._known = self._identity()

    def check(self) -> None:
        try:
            is_same = self._identity() == self._known
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise OSError("the file that was opened is not there any more: put it back, or start again")

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino


class Database:
    """A SQLite file that several processes may open.

    `when_alone` is run at the opening if no other process has the file open, before any can open it.
    """

    def __init__(self, path: Path, synchronous: Synchronous, when_alone: Job[None]) -> None:
        self._path = path
        self._file = _File(path)
        self._when_alone = when_alone
        self._synchronous = synchronous
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._readers: ThreadPoolExecutor | None = None
        self._lock = FileLock(Path(f"{path}.lock"))

    async def open(self) -> None:
        if self._writer is not None:
            return
        db = await asyncio.to_thread(self._prepare)
        self._jobs = queue.SimpleQueue()
        self._local, self._reading = threading.local(), []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sash-reader")
        self._writer = threading.Thread(
            target=self._write_forever, args=(db,), name="sash-writer", daemon=True
        )
        self._writer.start()

    async def close(self) -> None:
        writer, readers = self._writer, self._readers
        if writer is not None and readers is not None:
            self._writer = self._readers = None
            self._jobs.put(None)
            await asyncio.to_thread(writer.join)
            await asyncio.to_thread(readers.shutdown)
            for db in self._reading:
                db.close()
            self._lock.release()

    async def write(self, job: Job[T]) -> T:
        """Run a job in a transaction, which is on the disk when this returns."""
        if self._writer is None:
            raise StoreUnavailable("the store is not open")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._jobs.put(_Waiting(job, future, loop))
        result: T = await future
        return result

    async def read(self, job: Job[T]) -> T:
        """Run a job that only reads, and sees the store as it is at one moment."""
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run_reader, job)

    def _run_reader(self, job: Job[T]) -> T:
        try:
            if not hasattr(self._local, "db"):
                self._file.check()  # SQLite would create the file if it is missing
                self._local.db = self._connect(reader=True)
                self._reading.append(self._local.db)
            self._file.check()
            self._local.db.execute("BEGIN")
            try:
                return job(self._local.db)
            finally:
                self._local.db.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise _unavailable(self._path, error) from error

    async def empty_log(self) -> None:
        """Bring all that was written into the file, so that the log has nothing any more."""
        await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> None:
        with suppress(sqlite3.Error), closing(self._connect()) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _connect(self, *, reader: bool = False) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA secure_delete = ON")
            db.execute(f"PRAGMA query_only = {'ON' if reader else 'OFF'}")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _prepare(self) -> sqlite3.Connection:
        with ExitStack() as undo:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                undo.callback(self._lock.release)
                self._lock.share(self._prepare_alone)
                db = self._connect()
                undo.callback(db.close)
                _make_ready(db)
                self._file.note()
            except (sqlite3.Error, OSError) as error:
                raise _unavailable(self._path, error) from error
            undo.pop_all()
        return db

    def _prepare_alone(self) -> None:
        with closing(self._connect()) as db:
            _make_ready(db)
            self._when_alone(db)

    def _write_forever(self, db: sqlite3.Connection) -> None:
        waiting = self._jobs.get()
        while waiting is not None:
            batch = [waiting]
            while len(batch) < MAX_JOBS_A_COMMIT and not self._jobs.empty():
                waiting = self._jobs.get()
                if waiting is None:
                    break
                batch.append(waiting)
            _commit(db, batch, self._file)
            _tell(batch)
            if waiting is not None:
                waiting = self._jobs.get()
        db.close()


def _commit(db: sqlite3.Connection, batch: list[_Waiting], file: _File) -> None:
    """Run the jobs in one transaction; if it cannot be committed none of them has happened."""
    try:
        db.execute("BEGIN IMMEDIATE")
        file.check()
        for waiting in batch:
            _run_job(db, waiting, alone=len(batch) == 1)
        if db.in_transaction:
            db.execute("COMMIT")
    except Exception as error:
        with suppress(sqlite3.Error):
            db.rollback()
        for waiting in batch:
            waiting.error = waiting.error or _unavailable(file.path, error)


def _run_job(db: sqlite3.Connection, waiting: _Waiting, *, alone: bool) -> None:
    """Run one job; what it changed before it refused is undone, for which one alone needs no savepoint."""
    if not alone:
        db.execute("SAVEPOINT job")
    try:
        waiting.result = waiting.job(db)
    except sqlite3.Error as error:
        if not isinstance(error, _REFUSALS):
            raise
        waiting.error = WriteRefused(f"the store refused a write: {error}")
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
    except BaseException as error:
        waiting.error = error
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
    if not alone:
        db.execute("RELEASE job")


def _tell(batch: list[_Waiting]) -> None:
    """Hand the results over, with one call a loop."""
    for loop in {waiting.loop for waiting in batch}:
        with suppress(RuntimeError):  # the loop of those who asked may be gone
            loop.call_soon_threadsafe(_settle, loop, batch)


def _settle(loop: asyncio.AbstractEventLoop, batch: list[_Waiting]) -> None:
    for waiting in batch:
        if waiting.loop is not loop or waiting.future.done():
            continue
        if waiting.error is None:
            waiting.future.set_result(waiting.result)
        else:
            waiting.future.set_exception(waiting.error)


def _make_ready(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    _migrate(db)


def _migrate(db: sqlite3.Connection) -> None:
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreUnavailable(
            f"the database was written by a newer Sash (schema {version}, this one knows {SCHEMA_VERSION}): "
            "install the newer one"
        )
    for number in range(version + 1, SCHEMA_VERSION + 1):
        migration = script(f"{number:04}")
        db.executescript(f"BEGIN IMMEDIATE;\n{migration}\nPRAGMA user_version = {number};\nCOMMIT;")


def _unavailable(path: Path, error: Exception) -> StoreUnavailable:
    advice = "Check that the disk has room, that the file may be written, and that no other program holds it"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        advice = "It is damaged, or no database: put a backup in its place, or try `sqlite3 FILE .recover`"
    return StoreUnavailable(f"the store {path.name} cannot be used: {error}. {advice}")
