"""The store as files that a person can read; for one process at a time.

    sessions/{session}/session.json       the session, and where its window is cut
    sessions/{session}/turns/{turn}.json  a continuation, with the messages it added to the transcript
    sessions/{session}/logs/{turn}.log    its steps, one JSON object a line: the journal
    sessions/{session}/vectors.json       vectors of evicted turns, if an embedder makes them
    artifacts/{artifact}                  large results
    index/meta.json                       the version of this layout

The log is the truth. A write is one append to one log, on the disk (fsync) when it returns; its last line
carries `commit`; lines without one at the end of a log were torn off by a crash and are dropped. The other
files are replaced whole; what they lack is taken from the logs when a session is read. A sweep brings them up
to date before it drops old logs.
"""

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from sash.errors import SashError, StoreUnavailable
from sash.ports.store import (
    Artifact,
    BegunTurn,
    Bundle,
    ClaimRequest,
    EndWritten,
    Evicted,
    Lease,
    Page,
    StoredMessage,
    SweepCounts,
    Turn,
    TurnEnd,
    Vector,
    WaitingStatus,
    is_over,
    parts_exist,
)
from sash.stores import disk
from sash.stores.files.artifacts import ArtifactFiles
from sash.stores.ledger.ledgers import Ledgers
from sash.stores.ledger.session_ledger import Entry, Ledger
from sash.stores.ledger.store import LedgerStore
from sash.stores.lock import FileLock
from sash.values.clock import Clock, SystemClock
from sash.values.codec import adapter, decode, encode
from sash.values.continuations import Continuation
from sash.values.ids import is_ulid
from sash.values.messages import MessageEntry
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats
from sash.values.step_codec import StepRecord
from sash.values.steps import Step, StepBody

T = TypeVar("T")

LAYOUT_VERSION = 1

_logger = logging.getLogger(__name__)


class Damage(NamedTuple):
    """A file that could not be read whole, and what was done about it."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class _SessionFile:
    """What `session.json` holds: the session as of `cursor`; what came later is in the logs."""

    session: Session
    cursor: int
    in_window: tuple[str, ...] = ()
    turn_starts: tuple[str, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    evicted_count: int = 0


@dataclass(frozen=True, slots=True)
class _TurnFile:
    """What `turns/{turn}.json` holds, as of `cursor`; its first message stands at `position`.

    `ended` is the session's cursor at its end.
    """

    continuation: Continuation
    messages: tuple[MessageEntry, ...] = ()
    position: int = 0
    cursor: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True)
class _Commit:
    """What the last line of a write carries."""

    continuation: Continuation
    finish: TurnEnd | None = None
    position: int = 0
    amended: MessageEntry | None = None


@dataclass(frozen=True, slots=True)
class _VectorFile:
    """What `vectors.json` holds; it can be made again from the transcript."""

    vectors: tuple[Vector, ...] = ()


class _Late(NamedTuple):
    """The end of a turn, or its amended answer, that the session or the turn does not know by its file."""

    cursor: int
    turn_id: str
    change: TurnEnd | MessageEntry
    at: datetime


class FilesStore(LedgerStore):
    """Ledgers that are written down. A second process is refused."""

    def __init__(self, folder: str | Path, *, clock: Clock | None = None) -> None:
        self._files = _FileLedgers(Path(folder), clock or SystemClock())
        self._thread: ThreadPoolExecutor | None = None

    @property
    def damaged(self) -> list[Damage]:
        """What could not be read whole so far."""
        return self._files.damaged

    async def open(self) -> None:
        if self._thread is None:
            await asyncio.to_thread(self._files.open)
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="sash-files")

    async def close(self) -> None:
        if self._thread is not None:
            await self._do(lambda ledgers: self._files.close())
            self._thread.shutdown()
            self._thread = None

    async def _do(self, job: Callable[[Ledgers], T]) -> T:
        """Run a job in the thread that has the ledgers and their files to itself."""
        if self._thread is None:
            raise StoreUnavailable("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._files.run, job)


class _FileLedgers(Ledgers):
    """Ledgers that are read from their files when they are needed, and written when they change."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(clock)
        self._folder = folder
        self._lock = FileLock(folder / "lock")
        self._kept = ArtifactFiles(folder / "artifacts", self._report)
        self._dirty: set[str] = set()
        self._all_known = False
        self.damaged: list[Damage] = []

    def open(self) -> None:
        try:
            for name in ("sessions", "artifacts", "index"):
                (self._folder / name).mkdir(parents=True, exist_ok=True)
            if not self._lock.acquire():
                raise StoreUnavailable(
                    f"the folder {self._folder.name} is in use by another process: stop that one, or use the "
                    "sqlite store, which several processes can open"
                )
            self._check_layout()
            for leftover in (self._folder / "sessions").glob(".*.deleted"):
                shutil.rmtree(leftover)
        except (OSError, ValueError, KeyError) as error:
            self._lock.release()
            raise _unavailable(self._folder, error) from error

    def close(self) -> None:
        self._ledgers.clear()
        self._session_of.clear()
        self._named.clear()
        self._dirty.clear()
        self._all_known = False
        self._lock.release()

    def run(self, job: Callable[[Ledgers], T]) -> T:
        try:
            return job(self)
        except OSError as error:
            raise _unavailable(self._folder, error) from error

    def list_sessions(
        self, owner: str, status: SessionStatus | None, name: str | None, limit: int, cursor: str | None
    ) -> Page:
        self._load_all()
        return super().list_sessions(owner, status, name, limit, cursor)

    def find_session(self, owner: str, name: str) -> Session | None:
        if not self._all_known:
            self._load_all()
        return super().find_session(owner, name)

    def count_active(self, owner: str) -> int:
        if not self._all_known:
            self._load_all()
        return super().count_active(owner)

    def save_session(self, session: Session) -> Session:
        with self._change(session.id) as ledger:
            saved = super().save_session(session)
            self._write_session(ledger)
        return saved

    def delete_session(self, owner: str, session_id: str) -> None:
        self._ledger(owner, session_id)
        artifacts = list(self._kept.of_session(session_id))
        super().delete_session(owner, session_id)
        self._dirty.discard(session_id)
        for artifact in artifacts:
            self._kept.remove(artifact.ref.id)
        folder = self._folder / "sessions" / session_id
        shutil.rmtree(folder.rename(folder.with_name(f".{session_id}.deleted")))

    def erase(self, owner: str) -> int:
        self._load_all()
        return super().erase(owner)

    def begin(self, new: Continuation, claim: ClaimRequest, enqueue: bool) -> BegunTurn:
        with self._change(new.session_id) as ledger:
            begun = super().begin(new, claim, enqueue)
            if begun.created:
                self._write_opening(ledger, ledger.entry(new.id))
        return begun

    def claim(self, owner: str, continuation_id: str, claim: ClaimRequest, steps: Sequence[StepBody]) -> Turn:
        with self._change(self._find(continuation_id)) as ledger:
            turn = super().claim(owner, continuation_id, claim, steps)
            self._log(ledger, ledger.entry(continuation_id), len(steps))
        return turn

    def append(
        self, lease: Lease, steps: Sequence[StepBody], give_back: WaitingStatus | None, stats: Stats
    ) -> tuple[Step, ...]:
        with self._change(lease.session_id) as ledger:
            written = super().append(lease, steps, give_back, stats)
            self._log(ledger, ledger.entry(lease.continuation_id), len(steps))
        return written

    def finish(self, lease: Lease, end: TurnEnd) -> EndWritten:
        with self._change(lease.session_id) as ledger:
            finished = super().finish(lease, end)
            entry = ledger.entry(lease.continuation_id)
            self._log(ledger, entry, len(end.steps), end)
            self._write_turn_soon(ledger, entry)
        return finished

    def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        with self._change(new.session_id) as ledger:
            recorded, steps = super().record(new, end, session)
            if recorded.id == new.id:
                entry = ledger.entry(new.id)
                self._log(ledger, entry, len(steps), end, new=True)
                self._write_turn_soon(ledger, entry)
        return recorded, steps

    def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        with self._change(self._find(continuation_id)) as ledger:
            continuation = super().amend(owner, continuation_id, text, token_count)
            entry = ledger.entry(continuation_id)
            if (self._session_folder(ledger) / "vectors.json").exists():
                self._write_vectors(ledger)
            was_swept = len(entry.steps) == 1
            self._log(ledger, entry, 1, amended=entry.messages[-1], new=was_swept)
            self._write_turn_soon(ledger, entry)
        return continuation

    def cancel(self, owner: str, continuation_id: str, reason: str, stats: Stats) -> TurnEnd:
        with self._change(self._find(continuation_id)) as ledger:
            end = super().cancel(owner, continuation_id, reason, stats)
            self._log(ledger, ledger.entry(continuation_id), 1, end)
        return end

    def interrupt_lost(self) -> list[Continuation]:
        self._load_all()
        now, lost = self._clock.now(), []
        for ledger in self._ledgers.values():
            for entry in ledger.entries.values():
                gone = entry.lease_until is None or is_over(entry.lease_until, now)
                if entry.continuation.status == "running" and gone:
                    lost.append(ledger.interrupt(entry, now))
                    self._log(ledger, entry, 1)
        return lost

    def waiting(self) -> list[Continuation]:
        self._load_all()
        return super().waiting()

    def last_id(self) -> str | None:
        self._load_all()
        return super().last_id()

    def add_vectors(self, owner: str, session_id: str, vectors: Sequence[Vector], keep: int) -> None:
        super().add_vectors(owner, session_id, vectors, keep)
        self._write_vectors(self._ledgers[session_id])

    def turn_stats(self, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
        self._load_all()
        return super().turn_stats(owner, since)

    def search(self, owner: str, query: str, session_id: str | None, limit: int) -> list[StoredMessage]:
        self._load_all()
        return super().search(owner, query, session_id, limit)

    def put_artifact(self, artifact: Artifact) -> None:
        self._ledger(artifact.owner, artifact.session_id)
        self._kept.write(artifact)

    def get_artifact(self, owner: str, artifact_id: str) -> Artifact:
        return self._kept.read(owner, artifact_id)

    def export_session(self, owner: str, session_id: str) -> Bundle:
        artifacts = tuple(self._kept.of_session(session_id))
        return replace(super().export_session(owner, session_id), artifacts=artifacts)

    def import_session(self, bundle: Bundle) -> Session:
        self._load_all()
        if any(self._kept.has(a.ref.id) for a in bundle.artifacts):
            raise parts_exist(bundle.session.id)
        folder = self._folder / "sessions" / bundle.session.id
        if not self._is_session(bundle.session.id):
            shutil.rmtree(folder, ignore_errors=True)  # what a process that died while it imported has left
        session = super().import_session(replace(bundle, artifacts=()))
        try:
            self._write_whole(self._ledgers[bundle.session.id], bundle.artifacts)
        except Exception:
            super().delete_session(bundle.session.owner, bundle.session.id)
            for artifact in bundle.artifacts:
                self._kept.remove(artifact.ref.id)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return session

    def sweep(self, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        self._load_all()
        self._flush()  # what a sweep clears must be in the turns' files before
        before = {key: (ledger.session, _finals(ledger)) for key, ledger in self._ledgers.items()}
        swept = super().sweep(idle_before, ended_before)
        for key, ledger in self._ledgers.items():
            session, finals = before[key]
            if ledger.session is not session:
                self._dirty.add(key)
            for entry in ledger.entries.values():
                if entry.continuation.is_final and entry.continuation.id not in finals:
                    self._log(ledger, entry, 1)
        self._flush()
        self._drop_logs()
        return swept

    def _ledger(self, owner: str, session_id: str) -> Ledger:
        self._known(session_id)
        return super()._ledger(owner, session_id)

    def _entry(self, owner: str, continuation_id: str) -> tuple[Ledger, Entry]:
        self._find(continuation_id)
        return super()._entry(owner, continuation_id)

    def _find(self, continuation_id: str) -> str:
        """Return the session of a continuation, if there is one."""
        if continuation_id not in self._session_of:
            self._load_all()
        return self._session_of.get(continuation_id, "")

    def _known(self, session_id: str) -> Ledger | None:
        """Return a session's ledger, read from its files if need be."""
        if session_id not in self._ledgers and self._is_session(session_id):
            ledger = self._load(session_id)
            if ledger is not None:
                self._add(ledger)
        return self._ledgers.get(session_id)

    def _is_session(self, session_id: str) -> bool:
        return is_ulid(session_id) and (self._folder / "sessions" / session_id / "session.json").exists()

    def _load_all(self) -> None:
        for folder in sorted((self._folder / "sessions").iterdir()):
            self._known(folder.name)
        self._all_known = True

    @contextmanager
    def _change(self, session_id: str) -> Iterator[Ledger]:
        """Change a session; if that cannot be written down, read it again as it is on the disk.

        Of a session that does not exist the change itself says so, before it uses the ledger.
        """
        ledger = self._known(session_id)
        leases = {} if ledger is None else ledger.leases()
        try:
            yield cast(Ledger, ledger)
        except SashError:
            raise  # it was refused, before anything was changed
        except Exception:
            self._ledgers.pop(session_id, None)
            if again := self._known(session_id):
                again.take_leases(leases)
            raise

    def _log(
        self,
        ledger: Ledger,
        entry: Entry,
        count: int,
        end: TurnEnd | None = None,
        *,
        amended: MessageEntry | None = None,
        new: bool = False,
    ) -> None:
        """Write the last `count` steps of an entry, or only how it stands now, as one commit."""
        self._dirty.add(ledger.session.id)
        continuation = entry.continuation
        lines = [_line(step) for step in entry.steps[-count:]]
        if not count:
            lines = [_status_line(continuation.updated_at, ledger.cursor)]
        lines[-1]["commit"] = _as_json(_Commit(continuation, end, entry.position, amended))
        disk.append(self._session_folder(ledger) / "logs" / f"{continuation.id}.log", lines, new=new)

    def _write_opening(self, ledger: Ledger, entry: Entry) -> None:
        self._log(ledger, entry, 0, new=True)
        self._write_turn_soon(ledger, entry)

    def _write_turn_soon(self, ledger: Ledger, entry: Entry) -> None:
        """Write a turn's file if that can be done now; its log has all, and a sweep writes it again."""
        with suppress(OSError):
            self._write_turn(ledger, entry)

    def _write_turn(self, ledger: Ledger, entry: Entry, *, sync: bool = False) -> None:
        cursor = entry.steps[-1].cursor if entry.steps else ledger.cursor
        record = _TurnFile(entry.continuation, tuple(entry.messages), entry.position, cursor, entry.ended)
        path = self._session_folder(ledger) / "turns" / f"{entry.continuation.id}.json"
        disk.replace(path, encode(record), sync=sync)

    def _write_session(self, ledger: Ledger) -> None:
        record = _SessionFile(
            ledger.session,
            ledger.cursor,
            tuple(ledger.in_window),
            ledger.turn_starts,
            ledger.evicted,
            ledger.evicted_count,
        )
        folder = self._session_folder(ledger)
        (folder / "turns").mkdir(parents=True, exist_ok=True)
        (folder / "logs").mkdir(exist_ok=True)
        disk.replace(folder / "session.json", encode(record), sync=True)
        self._dirty.discard(ledger.session.id)

    def _write_vectors(self, ledger: Ledger) -> None:
        text = encode(_VectorFile(tuple(ledger.vectors.values())))
        disk.replace(self._session_folder(ledger) / "vectors.json", text, sync=True)

    def _write_whole(self, ledger: Ledger, artifacts: Sequence[Artifact]) -> None:
        folder = self._session_folder(ledger)
        for name in ("turns", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        imported = [m for m in ledger.transcript if ledger.turn_of.get(m.id) is None]
        if imported:
            text = "".join(f"{encode(message)}\n" for message in imported)
            disk.replace(folder / "turns" / "imported.ndjson", text, sync=True)
        for entry in ledger.entries.values():
            self._write_turn(ledger, entry, sync=True)
            if entry.steps:
                lines = [_line(step) for step in entry.steps]
                lines[-1]["commit"] = _as_json(_Commit(entry.continuation))
                disk.append(folder / "logs" / f"{entry.continuation.id}.log", lines, new=True)
        for artifact in artifacts:
            self._kept.write(artifact)
        self._write_session(ledger)

    def _flush(self) -> None:
        """Bring the files of changed sessions up to date with their logs."""
        for session_id in tuple(self._dirty):
            if ledger := self._ledgers.get(session_id):
                for entry in ledger.entries.values():
                    if entry.steps or not entry.continuation.is_final:
                        self._write_turn(ledger, entry, sync=True)
                self._write_session(ledger)

    def _drop_logs(self) -> None:
        for ledger in self._ledgers.values():
            for entry in ledger.entries.values():
                if entry.continuation.is_final and not entry.steps:
                    path = self._session_folder(ledger) / "logs" / f"{entry.continuation.id}.log"
                    path.unlink(missing_ok=True)

    def _session_folder(self, ledger: Ledger) -> Path:
        return self._folder / "sessions" / ledger.session.id

    def _check_layout(self) -> None:
        meta = self._folder / "index" / "meta.json"
        version = json.loads(meta.read_bytes())["version"] if meta.exists() else LAYOUT_VERSION
        if version > LAYOUT_VERSION:
            self._lock.release()
            raise StoreUnavailable(
                f"the folder was written by a newer Sash (layout {version}): install that one"
            )
        disk.replace(meta, json.dumps({"version": LAYOUT_VERSION}), sync=True)

    def _load(self, session_id: str) -> Ledger | None:
        """Read a session from its files; one that cannot be read is reported, and the others are."""
        folder = self._folder / "sessions" / session_id
        try:
            return self._read_ledger(session_id, folder)
        except SashError as error:
            self._report(folder / "session.json", f"the session cannot be read: {error}")
            return None

    def _read_ledger(self, session_id: str, folder: Path) -> Ledger:
        """Read a session; a damaged file of a turn is reported, and what the others say is kept."""
        record = decode(_SessionFile, (folder / "session.json").read_bytes())
        ledger = Ledger(record.session)
        ledger.cursor, ledger.turn_starts = record.cursor, record.turn_starts
        ledger.evicted, ledger.evicted_count = record.evicted, record.evicted_count
        loaded = filter(None, map(self._load_turn, sorted((folder / "turns").glob("*.json"))))
        files = {file.continuation.id: file for file in loaded}
        entries = {key: Entry(file.continuation, ended=file.ended) for key, file in files.items()}
        late: list[_Late] = []
        for path in sorted((folder / "logs").glob("*.log")):
            late += self._replay(entries, files, path, record.cursor)
        late += _ends_without_log(files, late, record.cursor)
        for _, entry in sorted(entries.items()):
            ledger.add(entry)
            ledger.cursor = max(ledger.cursor, *(step.cursor for step in entry.steps), 0)
        _add_transcript(ledger, record, folder, files, _ended_late(late))
        for item in sorted(late):
            _catch_up(ledger, item, record.cursor)
            self._dirty.add(session_id)
        ledger.vectors = self._load_vectors(folder / "vectors.json")
        return ledger

    def _load_vectors(self, path: Path) -> dict[int, Vector]:
        try:
            vectors = decode(_VectorFile, path.read_bytes()).vectors if path.exists() else ()
        except SashError as error:
            self._report(path, f"the vectors cannot be read, and are made again: {error}")
            vectors = ()
        return {vector.position: vector for vector in vectors}

    def _replay(
        self, entries: dict[str, Entry], files: dict[str, _TurnFile], path: Path, cursor: int
    ) -> list[_Late]:
        """Take a turn's steps from its log; return what the session or the turn's file does not know of it.

        A turn that has ended by its file has, also if the log has lost its end.
        """
        lines, late, file = self._load_log(path), [], files.get(path.stem)
        if not lines:
            return []
        last, commit = lines[-1]
        assert commit is not None
        entry = entries.setdefault(path.stem, Entry(commit.continuation))
        if file is None or not entry.continuation.is_final or last.cursor > file.cursor:
            entry.continuation = commit.continuation
        for step, commit in lines:
            if isinstance(step, Step):
                entry.steps.append(step)
            if commit is not None and commit.finish is not None:
                entry.ended = step.cursor
                if step.cursor > cursor:
                    late.append(_Late(step.cursor, path.stem, commit.finish, step.ts))
                elif file is None:
                    said, at = commit.finish.messages, step.cursor
                    file = files[path.stem] = _TurnFile(commit.continuation, said, commit.position, at, at)
            elif commit is not None and commit.amended is not None:
                newer = file is None or step.cursor > file.cursor
                if newer or step.cursor > cursor:
                    answer = file.messages[-1] if file and not newer else commit.amended
                    late.append(_Late(step.cursor, path.stem, answer, step.ts))
        return late

    def _load_turn(self, path: Path) -> _TurnFile | None:
        try:
            return decode(_TurnFile, path.read_bytes())
        except SashError as error:
            self._report(path, f"the turn's file is damaged, what its log has is used: {error}")
            return None

    def _load_log(self, path: Path) -> list[tuple[Step | StepRecord, _Commit | None]]:
        """Read a log up to its last commit, and cut away what is behind it.

        Behind it is what a crash tore off. If there is more, the file was damaged, and is kept beside.
        """
        data, lines, whole, size, end = path.read_bytes(), [], 0, 0, 0
        for raw in data.splitlines(keepends=True):
            try:
                lines.append(_read_line(raw))
            except (ValueError, SashError):
                break
            size += len(raw)
            if lines[-1][1] is not None:
                whole, end = len(lines), size
        if end < len(data):
            if data.count(b"\n", size) > 1:
                shutil.copyfile(path, path.with_suffix(".damaged"))
                self._report(path, "damaged in the middle: what comes before is used, the rest kept beside")
            else:
                self._report(path, "the last lines were torn off by a crash and are left out")
            os.truncate(path, end)
        return lines[:whole]

    def _report(self, path: Path, what: str) -> None:
        damage = Damage(str(path.relative_to(self._folder)), what)
        if damage not in self.damaged:
            self.damaged.append(damage)
            _logger.error("%s: %s", damage.path, what)


def _ends_without_log(files: dict[str, _TurnFile], late: list[_Late], cursor: int) -> Iterator[_Late]:
    """Find the ends of turns that neither the session nor the logs know, only their own files."""
    known = _ended_late(late)
    for file in files.values():
        turn = file.continuation
        if turn.is_final and file.ended > cursor and file.messages and turn.id not in known:
            end = TurnEnd(turn.status, (), messages=file.messages, stats=turn.stats or NO_STATS)
            yield _Late(file.ended, turn.id, end, turn.updated_at)


def _ended_late(late: Iterable[_Late]) -> set[str]:
    return {item.turn_id for item in late if isinstance(item.change, TurnEnd)}


def _catch_up(ledger: Ledger, item: _Late, cursor: int) -> None:
    """Take in what a turn's log knows and `session.json` did not, as of its cursor, or the turn's file."""
    if isinstance(item.change, TurnEnd):
        ledger.take_in(item.turn_id, item.change, item.at)
        return
    entry = ledger.entries[item.turn_id]
    if entry.messages:
        ledger.put_answer(entry, item.change)
    if item.cursor > cursor:
        ledger.touch(item.at)


def _add_transcript(
    ledger: Ledger, record: _SessionFile, folder: Path, files: dict[str, _TurnFile], late: set[str]
) -> None:
    """Put the transcript together: what was imported, then the turns by their place, but the late ones."""
    imported = folder / "turns" / "imported.ndjson"
    for line in imported.read_bytes().splitlines() if imported.exists() else ():
        ledger.say(decode(MessageEntry, line), None)
    for file in sorted(files.values(), key=lambda f: f.position):
        if file.continuation.id not in late:
            for message in file.messages:
                ledger.say(message, file.continuation.id)
    kept = set(record.in_window)
    ledger.in_window = {m.id: m for m in ledger.transcript if m.id in kept}


def _finals(ledger: Ledger) -> set[str]:
    return {key for key, entry in ledger.entries.items() if entry.continuation.is_final}


def _line(step: Step) -> dict[str, Any]:
    line: dict[str, Any] = adapter(Step).dump_python(step, mode="json")
    return line


def _status_line(at: datetime, cursor: int) -> dict[str, Any]:
    """Return a line that carries a commit and no step: its number is 0."""
    record = StepRecord(0, at, "observed_event", {"event": "status"}, cursor)
    line: dict[str, Any] = adapter(StepRecord).dump_python(record, mode="json")
    return line


def _read_line(raw: bytes) -> tuple[Step | StepRecord, _Commit | None]:
    """Read a line of a log; the last one of a write has its commit."""
    line = json.loads(raw)
    if not isinstance(line, dict) or not raw.endswith(b"\n"):
        raise ValueError("not a whole line")
    commit = line.pop("commit", None)
    text = json.dumps(line)
    step = decode(Step, text) if line.get("n") else decode(StepRecord, text)
    return step, None if commit is None else decode(_Commit, json.dumps(commit))


def _as_json(value: Any) -> Any:
    return adapter(type(value)).dump_python(value, mode="json")


def _unavailable(folder: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"the folder {folder.name} cannot be used: {error}. Check that the disk has room and that the folder "
        "may be written"
    )
