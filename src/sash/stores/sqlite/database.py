"""One SQLite file: a writer thread, reader threads, and the migrations.

The writer thread owns one connection. It commits all waiting jobs together, with one fsync (group commit).
Each job has a savepoint, so that a job that fails does not affect the others. Readers have connections of
their own and never wait for the writer (WAL).

A cursor that is not read to its end keeps its connection at an old state of the file. A traceback keeps such
cursors, so `clear_frames` ends the cursors of a failed job.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from traceback import clear_frames
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from sash.errors import StoreUnavailable, WriteRefused
from sash.stores.lock import FileLock
from sash.stores.run_to_end import run_to_end
from sash.stores.sqlite.full_text_index import DamagedIndex, empty_index, is_index_damaged
from sash.stores.sqlite.queries import read_script

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
Synchronous = Literal["FULL", "NORMAL"]

SCHEMA_VERSION = 9
# The owner of reads that concern all owners.
ALL_OWNERS = ""
MAX_JOBS_PER_COMMIT = 256
READERS = 4
# The other readers stay free for other owners.
READERS_PER_OWNER = 2
BUSY_TIMEOUT_S = 5.0
# A long job gives way to other writes after this time.
SLICE_S = 0.01
# Emptying the log stops all writes while it waits for readers, so it waits briefly and tries again.
EMPTY_LOG_TIMEOUT_S, EMPTY_LOG_ATTEMPTS = 0.02, 50

# Errors of one job. All other errors concern the file.
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


@dataclass(slots=True)
class _PendingJob:
    """A job in the writer's queue, and the future that gets its result."""

    job: Job[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class _File:
    """The file that was opened. If the file is moved or deleted, later writes into it would be lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None

    def note_identity(self) -> None:
        """Store the identity (device and inode) of the file that is open now."""
        found = self.path.stat()
        self._identity = (found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise `FileNotFoundError` if the file was moved, deleted or replaced since `note_identity`."""
        if self._is_gone():
            raise FileNotFoundError(self.path)

    def explain(self, error: Exception) -> str:
        """Return an error message for users, with the cause and the remedy."""
        start = f"the store {self.path.name} cannot be used"
        # SQLite reports a missing file in several ways, so the file itself is checked again.
        if self._is_gone():
            return f"{start}: the file that was opened is not there any more: put it back, or restart"
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            advice = (
                "The file is damaged or is not a database: put a backup in its place, "
                "or try `sqlite3 FILE .recover`"
            )
        else:
            advice = (
                "Check that the disk has room, that the file may be written, "
                "and that no other program holds it"
            )
        return f"{start}: {error}. {advice}"

    def _is_gone(self) -> bool:
        if self._identity is None:
            return False
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return True
        return (found.st_dev, found.st_ino) != self._identity


class Database:
    """A SQLite file that several processes may open.

    If no other process has the file open, `when_alone` runs before any other process can open it.
    """

    def __init__(self, path: Path, synchronous: Synchronous, when_alone: Job[None]) -> None:
        self._path = path
        self._file = _File(path)
        self._when_alone = when_alone
        self._synchronous = synchronous
        self._jobs: queue.SimpleQueue[_PendingJob | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._local = threading.local()
        self._reader_connections: list[sqlite3.Connection] = []
        self._readers: ThreadPoolExecutor | None = None
        self._owners: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._lock = FileLock(Path(f"{path}.lock"))
        self._repairs = 0

    async def open(self) -> None:
        """Open the file. If the caller is cancelled, the file is open anyway and has to be closed."""
        if self._writer is None:
            await run_to_end(self._open())

    async def _open(self) -> None:
        db = await asyncio.to_thread(self._prepare)
        self._jobs = queue.SimpleQueue()
        self._local, self._reader_connections = threading.local(), []
        self._owners.clear()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sash-reader")
        self._writer = threading.Thread(target=self._run_writer, args=(db,), name="sash-writer", daemon=True)
        self._writer.start()

    async def close(self) -> None:
        """Run the jobs that wait, and close the file, even if the caller is cancelled."""
        writer, readers = self._writer, self._readers
        if writer is not None and readers is not None:
            self._writer = self._readers = None
            await run_to_end(self._close(writer, readers))

    async def _close(self, writer: threading.Thread, readers: ThreadPoolExecutor) -> None:
        self._jobs.put(None)
        await asyncio.to_thread(writer.join)
        await asyncio.to_thread(readers.shutdown)
        for db in self._reader_connections:
            db.close()
        self._lock.release()

    async def write(self, job: Job[T]) -> T:
        """Run a job in a transaction and return its result. Its changes are on the disk when this returns."""
        if self._writer is None:
            raise StoreUnavailable("the store is not open")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._jobs.put(_PendingJob(job, future, loop))
        result: T = await future
        return result

    async def write_in_slices(self, steps: Callable[[sqlite3.Connection], Iterator[T]]) -> T | None:
        """Run a long job in several transactions, and return the last value that it yields.

        The job is a generator. Other writes may run after each `yield`, so the job must leave records there
        that are valid, or that no query shows.
        """
        work: Iterator[T] | None = None
        result, is_done = None, False

        def run_slice(db: sqlite3.Connection) -> tuple[T | None, bool]:
            nonlocal work
            work = work or steps(db)
            until, last = monotonic() + SLICE_S, result
            try:
                for last in work:
                    if monotonic() >= until:
                        return last, False
            except Exception:
                work = None  # the writer may run this slice again
                raise
            return last, True

        while not is_done:
            result, is_done = await self.write(run_slice)
        return result

    async def read(self, job: Job[T], owner: str) -> T:
        """Run a job that only reads, and return its result. All its queries see the same state.

        The jobs of one owner never use all readers.
        """
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        places = self._owners.get(owner)
        if places is None:
            places = self._owners[owner] = asyncio.Semaphore(READERS_PER_OWNER)
        await places.acquire()
        if self._readers is None:
            # With None the job would run in a thread that `close` does not await.
            places.release()
            raise StoreUnavailable("the store is not open")
        running = asyncio.get_running_loop().run_in_executor(self._readers, self._run_reader, job)
        running.add_done_callback(partial(_free_place, places))
        # A caller that goes away does not stop the reader, so its place stays taken.
        return await asyncio.shield(running)

    def _run_reader(self, job: Job[T]) -> T:
        try:
            self._file.check()  # SQLite would create a missing file
            if not hasattr(self._local, "db"):
                self._local.db = self._connect(reader=True)
                self._reader_connections.append(self._local.db)
            self._local.db.execute("BEGIN")
            try:
                return job(self._local.db)
            except Exception as error:
                clear_frames(error.__traceback__)
                raise
            finally:
                self._local.db.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            if is_index_damaged(error):
                raise DamagedIndex(self._file.explain(error)) from error
            raise StoreUnavailable(self._file.explain(error)) from error

    async def repair_index(self) -> None:
        """Empty the damaged full-text index. Later searches and sweeps fill it again."""
        repairs = self._repairs

        def job(db: sqlite3.Connection) -> None:
            if repairs == self._repairs:
                raise DamagedIndex("the full-text index is damaged")  # the writer repairs it

        await self.write(job)

    async def empty_log(self) -> None:
        """Move all data from the write-ahead log into the file, so that the log keeps no deleted data."""
        await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> None:
        with suppress(sqlite3.Error), closing(self._connect(timeout_s=EMPTY_LOG_TIMEOUT_S)) as db:
            for _ in range(EMPTY_LOG_ATTEMPTS):
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # this copies most pages, and stops no writes
                [is_busy, *_] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not is_busy:
                    return
                sleep(EMPTY_LOG_TIMEOUT_S)

    def _connect(self, *, reader: bool = False, timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, isolation_level=None, timeout=timeout_s, check_same_thread=False)
        db.text_factory = read_text
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
                _prepare_schema(db)
                self._file.note_identity()
            except (sqlite3.Error, OSError) as error:
                raise StoreUnavailable(self._file.explain(error)) from error
            undo.pop_all()
        return db

    def _prepare_alone(self) -> None:
        try:
            with closing(self._connect()) as db:
                _prepare_schema(db)
                self._when_alone(db)
        except Exception as error:
            if not is_index_damaged(error):
                raise
            with closing(self._connect()) as db:
                empty_index(db)
            with closing(self._connect()) as db:
                self._when_alone(db)

    def _run_writer(self, db: sqlite3.Connection) -> None:
        pending = self._jobs.get()
        while pending is not None:
            batch = [pending]
            while len(batch) < MAX_JOBS_PER_COMMIT and not self._jobs.empty():
                pending = self._jobs.get()
                if pending is None:
                    break
                batch.append(pending)
            if not _commit(db, batch, self._file):
                db = self._empty_index(db)
                _commit(db, batch, self._file)
            _send_results(batch)
            if pending is not None:
                pending = self._jobs.get()
        db.close()

    def _empty_index(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """Empty the damaged full-text index. Return a new connection, which does not know the old index."""
        try:
            with closing(self._connect()) as fresh:
                empty_index(fresh)
            new = self._connect()
        except sqlite3.Error:
            return db
        self._repairs += 1
        db.close()
        return new


def read_text(data: bytes) -> str:
    """Return a stored text. Bytes that are no UTF-8 do not stop the query; the row's reader refuses them."""
    return data.decode(errors="surrogateescape")


def _free_place(places: asyncio.Semaphore, ended: asyncio.Future[Any]) -> None:
    """Free the place of a reader. An error for a caller that went away counts as seen."""
    places.release()
    if not ended.cancelled():
        ended.exception()


def _commit(db: sqlite3.Connection, batch: list[_PendingJob], file: _File) -> bool:
    """Run the jobs in one transaction. If the commit fails, no job has an effect, and each gets the error.

    Return False if the full-text index is damaged.
    """
    for pending in batch:
        pending.error = None
    try:
        db.execute("BEGIN IMMEDIATE")
        file.check()
        for pending in batch:
            _run_job(db, pending, alone=len(batch) == 1)
        if db.in_transaction:
            db.execute("COMMIT")
    except Exception as error:
        with suppress(sqlite3.Error):
            db.rollback()
        message = file.explain(error)
        for pending in batch:
            pending.error = pending.error or StoreUnavailable(message)
        return not is_index_damaged(error)
    return True


def _run_job(db: sqlite3.Connection, pending: _PendingJob, *, alone: bool) -> None:
    """Run one job and store its result or error. A failed job changes nothing.

    A job alone in its transaction needs no savepoint.
    """
    if not alone:
        db.execute("SAVEPOINT job")
    try:
        pending.result = pending.job(db)
    except sqlite3.Error as error:
        if is_index_damaged(error) or not isinstance(error, _REFUSALS):
            raise
        pending.error = WriteRefused(f"the store refused a write: {error}")
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
    except DamagedIndex:
        raise
    except BaseException as error:
        pending.error = error
        clear_frames(error.__traceback__)
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
    if not alone:
        db.execute("RELEASE job")


def _send_results(batch: list[_PendingJob]) -> None:
    """Send the results to the waiting callers, with one call into each event loop."""
    for loop in {pending.loop for pending in batch}:
        with suppress(RuntimeError):  # the caller's event loop may be closed
            loop.call_soon_threadsafe(_set_results, loop, batch)


def _set_results(loop: asyncio.AbstractEventLoop, batch: list[_PendingJob]) -> None:
    for pending in batch:
        if pending.loop is not loop or pending.future.done():
            continue
        if pending.error is None:
            pending.future.set_result(pending.result)
        else:
            pending.future.set_exception(pending.error)


def _prepare_schema(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    migrate(db)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema to the current version. Raise `StoreUnavailable` if a newer Sash wrote the file."""
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreUnavailable(
            f"the database was written by a newer Sash (schema {version}, this one knows {SCHEMA_VERSION}): "
            "install the newer Sash"
        )
    for number in range(version + 1, SCHEMA_VERSION + 1):
        script = read_script(f"{number:04}")
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
