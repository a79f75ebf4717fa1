"""Ledgers that are read from their files when they are needed, and written when they change."""

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from sash.errors import SashError, StoreUnavailable
from sash.ports.store import Bundle, StoredMessage, SweepCounts, Vector
from sash.ports.turns import CANCELLED, BegunTurn, ClaimRequest, Cut, EndWritten, Lease, Turn, TurnEnd
from sash.stores import disk
from sash.stores.files.artifacts import ArtifactFiles
from sash.stores.files.damage import DamageReport, keep_copy
from sash.stores.files.deleted_sessions import DeletedSessions
from sash.stores.files.owner_files import OwnerFiles
from sash.stores.files.records import (
    INDEX_VERSION,
    LAYOUT_FILE,
    LAYOUT_VERSION,
    OWNERS_FOLDER,
    VECTORS_FILE,
    LayoutFile,
)
from sash.stores.files.session_reader import SessionReader
from sash.stores.files.session_writer import SessionWriter
from sash.stores.ledger.entry import Entry, keep_parts
from sash.stores.ledger.ledgers import Ledgers
from sash.stores.ledger.session_ledger import Ledger
from sash.stores.lock import FileLock
from sash.stores.rules import record_errors
from sash.stores.states import Release
from sash.values.clock import Clock
from sash.values.codec import decode, encode
from sash.values.continuations import Continuation, TurnCaller
from sash.values.ids import is_ulid
from sash.values.owner_notes import OwnerNotes
from sash.values.prompts import SentPrompts
from sash.values.sessions import Session
from sash.values.steps import Step, StepBody
from sash.values.waiting_turns import WaitingTurn

T = TypeVar("T")

WRITE_CHECK = ".write_check"
# An empty file may fit on a full disk.
WRITE_CHECK_BYTES = 4096


class FileLedgers(Ledgers):
    """The ledgers of a folder. Only one process may open it."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.damage = DamageReport(folder)
        super().__init__(clock, ArtifactFiles(folder / "artifacts", self.damage))
        self._folder = folder
        self._lock = FileLock(folder / "lock")
        self._reader = SessionReader(self.damage)
        self._writer = SessionWriter(folder / "sessions")
        self._deleted = DeletedSessions(folder, self.damage)
        self._owner_files = OwnerFiles(folder)
        self._all_loaded = False

    def open(self) -> None:
        try:
            for name in ("sessions", "artifacts", "index", OWNERS_FOLDER):
                (self._folder / name).mkdir(parents=True, exist_ok=True)
            if not self._lock.acquire():
                raise StoreUnavailable(
                    f"the folder {self._folder.name} is in use by another process: stop that one, or use the "
                    "sqlite store, which several processes can open"
                )
            self._check_layout()
            self._deleted.open(self._spent, self._reader, self._clock.now())
        except (OSError, ValueError, KeyError) as error:
            self._lock.release()
            raise StoreUnavailable(self._explain(error)) from error

    def close(self) -> None:
        self._ledgers.clear()
        self._session_of.clear()
        self._names.clear()
        self._spent.usd.clear()
        self._writer.outdated.clear()
        self._all_loaded = False
        self._lock.release()

    def run(self, job: Callable[[Ledgers], T]) -> T:
        """Run a job on these ledgers and return its result. Raise `StoreUnavailable` if the disk fails."""
        try:
            return job(self)
        except OSError as error:
            raise StoreUnavailable(self._explain(error)) from error

    def check_write(self) -> None:
        path = self._folder / "sessions" / WRITE_CHECK
        disk.replace(path, bytes(WRITE_CHECK_BYTES), sync=True)
        path.unlink()

    def find_session(self, owner: str, name: str) -> Session | None:
        self._load_all()
        return super().find_session(owner, name)

    def count_active(self, owner: str) -> int:
        self._load_all()
        return super().count_active(owner)

    def save_session(self, session: Session, *, cut: Cut | None = None) -> Session:
        with self._change(session.id) as ledger:
            had_waiting_turns = bool(ledger and ledger.waiting_turns)
            saved = super().save_session(session, cut=cut)
            self._writer.write_session(ledger)
            if had_waiting_turns and not ledger.waiting_turns:
                self._writer.write_waiting_turns(ledger)
        return saved

    def delete_session(self, owner: str, session_id: str) -> None:
        self._ledger(owner, session_id)
        super().delete_session(owner, session_id)
        self._writer.outdated.discard(session_id)
        self._deleted.remove(self._writer.session_folder(session_id), self._spent)

    def erase(self, owner: str) -> int:
        erased = super().erase(owner)
        self._owner_files.remove(owner)
        return erased

    def owner_notes(self, owner: str) -> OwnerNotes:
        return self._owner_files.read(owner)

    def _write_owner_notes(self, notes: OwnerNotes) -> None:
        self._owner_files.write(notes)

    def add_waiting_turn(self, turn: WaitingTurn) -> WaitingTurn:
        with self._change(turn.session_id) as ledger:
            added = super().add_waiting_turn(turn)
            self._writer.write_waiting_turns(ledger)
        return added

    def change_waiting_turn(self, turn: WaitingTurn) -> None:
        self._find_waiting_turn(turn.owner, turn.id)
        with self._change(turn.session_id) as ledger:
            super().change_waiting_turn(turn)
            self._writer.write_waiting_turns(ledger)

    def cancel_waiting_turn(self, owner: str, turn_id: str) -> WaitingTurn:
        session_id = self._find_waiting_turn(owner, turn_id).session.id
        with self._change(session_id) as ledger:
            cancelled = super().cancel_waiting_turn(owner, turn_id)
            self._writer.write_waiting_turns(ledger)
        return cancelled

    def begin(self, new: Continuation, claim: ClaimRequest, *, enqueue: bool = False) -> BegunTurn:
        with self._change(new.session_id) as ledger:
            begun = super().begin(new, claim, enqueue=enqueue)
            if begun.created:
                entry = ledger.entry(new.id)
                self._writer.log(ledger, entry, 0, new=True)
                self._writer.try_write_turn(ledger, entry)
            if new.request.fires is not None:
                self._writer.try_write_waiting_turns(ledger)
        return begun

    def claim(
        self, owner: str, continuation_id: str, claim: ClaimRequest, *, steps: Sequence[StepBody] = ()
    ) -> Turn:
        with self._change(self._find_session_id(continuation_id)) as ledger:
            turn = super().claim(owner, continuation_id, claim, steps=steps)
            self._writer.log(ledger, ledger.entry(continuation_id), len(steps))
        return turn

    def record(
        self, new: Continuation, end: TurnEnd, session: Session
    ) -> tuple[Continuation, tuple[Step, ...]]:
        with self._change(new.session_id) as ledger:
            recorded, steps = super().record(new, end, session)
            if recorded.id == new.id:
                entry = ledger.entry(new.id)
                self._writer.log(ledger, entry, len(steps), end, new=True)
                self._writer.try_write_turn(ledger, entry)
                self._writer.try_write_session(ledger)
        return recorded, steps

    def amend(self, owner: str, continuation_id: str, text: str, token_count: int) -> Continuation:
        with self._change(self._find_session_id(continuation_id)) as ledger:
            had_vectors = {*ledger.vectors} if ledger else set()
            continuation = super().amend(owner, continuation_id, text, token_count)
            entry = ledger.entry(continuation_id)
            if dropped := had_vectors - ledger.vectors.keys():
                self._writer.drop_vectors(ledger, dropped)
            was_swept = len(entry.steps) == 1
            self._writer.log(ledger, entry, 1, amended=entry.messages[-1], new=was_swept)
            self._writer.try_write_turn(ledger, entry)
            self._writer.try_write_session(ledger)
        return continuation

    def set_caller(self, owner: str, continuation_id: str, caller: TurnCaller) -> Continuation:
        with self._change(self._find_session_id(continuation_id)) as ledger:
            continuation = super().set_caller(owner, continuation_id, caller)
            entry = ledger.entry(continuation_id)
            if continuation.is_final:  # Then its file is the truth, and a sweep may have dropped its log.
                self._writer.write_turn(ledger, entry, sync=True)
            else:
                self._writer.log(ledger, entry, 0)
        return continuation

    def tag_message(
        self, owner: str, session_id: str, message_id: str, tags: frozenset[str]
    ) -> tuple[Session, StoredMessage]:
        with self._change(session_id) as ledger:
            tagged = super().tag_message(owner, session_id, message_id, tags)
            self._writer.write_message(ledger, message_id)
            self._writer.write_session(ledger)
        return tagged

    def cancel(
        self,
        owner: str,
        continuation_id: str,
        reason: str,
        *,
        end: TurnEnd = CANCELLED,
        step_count: int | None = None,
    ) -> Continuation:
        with self._change(self._find_session_id(continuation_id)):
            ledger, entry = self._entry(owner, continuation_id)
            end = ledger.cancel(entry, reason, end, step_count, self._clock.now())
            self._writer.log(ledger, entry, len(end.steps), end)
            self._writer.try_write_turn(ledger, entry)
            self._writer.try_write_session(ledger)
        return entry.continuation

    def interrupt_lost(self) -> list[Continuation]:
        now, lost = self._clock.now(), []
        for ledger, entry in self._find_lost(now):
            with self._change_if_writable(ledger.session.id):
                interrupted = ledger.interrupt(entry, now)
                self._writer.log(ledger, entry, 1)
                lost.append(interrupted)
        return lost

    def add_vectors(
        self,
        owner: str,
        session_id: str,
        vectors: Sequence[Vector],
        *,
        keep: int,
        replace_all: bool = False,
    ) -> None:
        with self._change(session_id) as ledger:
            super().add_vectors(owner, session_id, vectors, keep=keep, replace_all=replace_all)
            self._writer.add_vectors(ledger, vectors, keep)

    def spend(self, owner: str, usd: float) -> None:
        super().spend(owner, usd)
        self._deleted.write(self._spent)

    def import_session(self, bundle: Bundle) -> Session:
        self._load_all()
        session_id = bundle.session.id
        if any(self._artifacts.has(a.ref.id) for a in bundle.artifacts):
            record_errors.raise_parts_exist(session_id)
        folder = self._writer.session_folder(session_id)
        if not self._is_session(session_id):
            shutil.rmtree(folder, ignore_errors=True)  # left by a process that died during an import
        session = super().import_session(replace(bundle, artifacts=()))
        try:
            for artifact in bundle.artifacts:
                self._artifacts.write(artifact)
            self._writer.write_all(self._ledgers[session_id])
        except Exception:
            super().delete_session(bundle.session.owner, session_id)
            for artifact in bundle.artifacts:
                self._artifacts.remove(artifact.ref.id)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return session

    def sweep(
        self, *, idle_before: datetime, ended_before: datetime, delete_before: datetime | None = None
    ) -> SweepCounts:
        swept = super().sweep(idle_before=idle_before, ended_before=ended_before, delete_before=delete_before)
        self._deleted.write(self._spent)
        return swept

    def _sweep_session(self, ledger: Ledger, idle_before: datetime, ended_before: datetime) -> SweepCounts:
        with self._change_if_writable(ledger.session.id):
            for entry in ledger.entries.values():
                if entry.steps and entry.may_drop_steps(ended_before):
                    self._writer.write_turn(ledger, entry, sync=True)  # the sweep drops its log
            if keeper := keep_parts(ledger.entries.values(), ended_before):
                self._writer.write_turn(ledger, keeper, sync=True)
            self._writer.write_outdated_session(ledger)
            session, final_turns = ledger.session, _final_turns(ledger)
            swept = super()._sweep_session(ledger, idle_before, ended_before)
            if ledger.session is not session:
                self._writer.outdated.add(session.id)
            for continuation_id in _final_turns(ledger) - final_turns:
                self._writer.log(ledger, ledger.entry(continuation_id), 1)
            self._writer.write_outdated_session(ledger)
            self._writer.drop_swept_logs(ledger)
            return swept
        return SweepCounts(0, 0, 0)

    def _append(
        self, lease: Lease, steps: Sequence[StepBody], release: Release | None, prompts: SentPrompts
    ) -> tuple[Step, ...]:
        with self._change(lease.session_id) as ledger:
            written = super()._append(lease, steps, release, prompts)
            self._writer.log(ledger, ledger.entry(lease.continuation_id), len(steps), prompts=prompts)
        return written

    def _finish(self, lease: Lease, end: TurnEnd, based_on: Session | None) -> EndWritten:
        with self._change(lease.session_id) as ledger:
            finished = super()._finish(lease, end, based_on)
            entry = ledger.entry(lease.continuation_id)
            self._writer.log(ledger, entry, len(end.steps), end)
            self._writer.try_write_turn(ledger, entry)
            self._writer.try_write_session(ledger)
        return finished

    def _all_ledgers(self) -> Collection[Ledger]:
        self._load_all()
        return super()._all_ledgers()

    def _ledger(self, owner: str, session_id: str) -> Ledger:
        self._load(session_id)
        return super()._ledger(owner, session_id)

    def _entry(self, owner: str, continuation_id: str) -> tuple[Ledger, Entry]:
        self._find_session_id(continuation_id)
        return super()._entry(owner, continuation_id)

    def _find_session_id(self, continuation_id: str) -> str:
        """Return the id of a continuation's session, or an empty string if it is unknown."""
        if continuation_id not in self._session_of:
            self._load_all()
        return self._session_of.get(continuation_id, "")

    def _load(self, session_id: str) -> Ledger | None:
        """Return the ledger of a session, from memory or from its files. Return None if it is unknown."""
        if session_id not in self._ledgers and self._is_session(session_id):
            loaded = self._reader.read(self._writer.session_folder(session_id))
            if loaded is not None:
                self._add(loaded.ledger)
                if loaded.is_outdated:
                    self._writer.outdated.add(session_id)
        return self._ledgers.get(session_id)

    def _load_all(self) -> None:
        """Load all sessions. Only this process writes the folder, so it is read once."""
        if self._all_loaded:
            return
        for folder in sorted((self._folder / "sessions").iterdir()):
            self._load(folder.name)
        self._all_loaded = True

    def _is_session(self, session_id: str) -> bool:
        return is_ulid(session_id) and disk.exists(self._writer.session_folder(session_id) / "session.json")

    @contextmanager
    def _change(self, session_id: str) -> Iterator[Ledger]:
        """Change a session. If the write fails, read the session again from the disk.

        If the session does not exist, the change must raise the error before it uses the ledger.
        """
        ledger = self._load(session_id)
        leases = {} if ledger is None else ledger.open_leases()
        try:
            yield cast(Ledger, ledger)
        except SashError:
            raise  # the rules raised it before any change
        except Exception:
            if failed := self._ledgers.pop(session_id, None):
                self._names.remove(failed.session)
            self._all_loaded = False
            if again := self._load(session_id):
                again.restore_leases(leases)
            raise

    @contextmanager
    def _change_if_writable(self, session_id: str) -> Iterator[None]:
        """Change a session. If one of its files cannot be used, report it and leave the session unchanged."""
        folder = self._writer.session_folder(session_id)
        try:
            with disk.use_file(folder), self._change(session_id):
                yield
        except disk.UnusableFile as error:
            self.damage.add(folder, f"the session cannot be written: {error}")

    def _check_layout(self) -> None:
        file = self._folder / LAYOUT_FILE
        layout = self._read_layout(file)
        if layout.version > LAYOUT_VERSION:
            self._lock.release()
            raise StoreUnavailable(
                f"the folder was written by a newer Sash (layout {layout.version}): install the newer Sash"
            )
        self._export_key = bytes.fromhex(layout.export_key) or self._export_key
        if layout.index_version != INDEX_VERSION:
            for vectors in (self._folder / "sessions").glob(f"*/{Path(VECTORS_FILE).stem}.*"):
                vectors.unlink()
        meta = LayoutFile(LAYOUT_VERSION, self._export_key.hex(), INDEX_VERSION)
        disk.replace(file, encode(meta), sync=True)

    def _read_layout(self, file: Path) -> LayoutFile:
        """Read the version of the layout. A damaged file is replaced, and a copy of it is kept."""
        try:
            return decode(LayoutFile, file.read_bytes())
        except FileNotFoundError:
            return LayoutFile(LAYOUT_VERSION)
        except SashError as error:
            keep_copy(file)
            self.damage.add(file, f"the file is replaced, and older exports get new ids: {error}")
            return LayoutFile(LAYOUT_VERSION)

    def _explain(self, error: Exception) -> str:
        """Return an error message for users, with the cause and the remedy."""
        return (
            f"the folder {self._folder.name} cannot be used: {error}. Check that the disk has room and that "
            "the folder may be written"
        )


def _final_turns(ledger: Ledger) -> set[str]:
    return {key for key, entry in ledger.entries.items() if entry.continuation.is_final}
