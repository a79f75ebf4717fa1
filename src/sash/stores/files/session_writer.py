"""Writes the files of a session."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from sash.ports.store import Vector
from sash.ports.turns import TurnEnd
from sash.stores import disk
from sash.stores.files.records import (
    IMPORTED_FILE,
    OWNER_FILE,
    SYNCED_FILE,
    VECTORS_FILE,
    WAITING_FILE,
    Commit,
    OwnerFile,
    SessionFile,
    TurnFile,
    VectorLine,
    WaitingFile,
    encode_commit,
    encode_status,
    encode_step,
)
from sash.stores.ledger.entry import Entry
from sash.stores.ledger.session_ledger import Ledger
from sash.values.codec import encode
from sash.values.messages import MessageEntry
from sash.values.prompts import NO_PROMPTS, SentPrompts

VECTORS_PER_LINE = 64
# A file of vectors is written anew when it has so many times the bytes that it needs, and so many bytes more.
MAX_OUTDATED, MIN_OUTDATED_BYTES = 2, 1 << 16


class SessionWriter:
    """Writes ledgers below a folder. `outdated` has the ids of sessions with logs newer than their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.outdated: set[str] = set()

    def session_folder(self, session_id: str) -> Path:
        return self._folder / session_id

    def log(
        self,
        ledger: Ledger,
        entry: Entry,
        count: int,
        end: TurnEnd | None = None,
        *,
        amended: MessageEntry | None = None,
        prompts: SentPrompts = NO_PROMPTS,
        new: bool = False,
    ) -> None:
        """Append the last `count` steps of an entry to its log, as one commit. With 0, write the status."""
        self.outdated.add(ledger.session.id)
        continuation = entry.continuation
        if count:
            lines = [encode_step(step) for step in entry.steps[-count:]]
        else:
            lines = [encode_status(continuation.updated_at, ledger.cursor)]
        lines[-1]["commit"] = encode_commit(Commit(continuation, end, entry.first_position, amended, prompts))
        disk.append(self._log_path(ledger, entry), lines, new=new)

    def try_write_turn(self, ledger: Ledger, entry: Entry) -> None:
        """Write a turn's file. Ignore a failure: the log has the same data, and a sweep tries again."""
        with suppress(OSError):
            self.write_turn(ledger, entry)

    def write_turn(self, ledger: Ledger, entry: Entry, *, sync: bool = False) -> None:
        cursor = entry.steps[-1].cursor if entry.steps else ledger.cursor
        record = TurnFile(
            entry.continuation,
            tuple(entry.messages),
            entry.first_position,
            cursor,
            entry.end_cursor,
            entry.kept_parts,
        )
        path = self.session_folder(ledger.session.id) / "turns" / f"{entry.continuation.id}.json"
        disk.replace(path, encode(record), sync=sync)

    def try_write_session(self, ledger: Ledger) -> None:
        """Write `session.json` without waiting for the disk, after the end of a turn. Ignore a failure.

        A power cut may damage the new file, and no log has the policy and the notes. So the last synced file
        stays under another name until `session.json` is synced again.
        """
        path = self.session_folder(ledger.session.id) / "session.json"
        with suppress(OSError):
            if not disk.exists(path.with_name(SYNCED_FILE)):
                path.with_name(SYNCED_FILE).hardlink_to(path)
            disk.replace(path, self._encode_session(ledger), sync=False)

    def write_session(self, ledger: Ledger) -> None:
        folder = self._make_folders(ledger)
        disk.replace(folder / "session.json", self._encode_session(ledger), sync=True)
        (folder / SYNCED_FILE).unlink(missing_ok=True)
        self.outdated.discard(ledger.session.id)

    def _encode_session(self, ledger: Ledger) -> str:
        record = SessionFile(
            ledger.session,
            ledger.cursor,
            tuple(ledger.in_window),
            ledger.turn_starts,
            ledger.evicted,
            ledger.evicted_count,
        )
        return encode(record)

    def add_vectors(self, ledger: Ledger, vectors: Sequence[Vector], keep: int) -> None:
        """Append the vectors that the ledger has got. If most of the file is outdated, write it anew.

        So all batches together cost a few times the size of the file, and a batch alone costs little.
        """
        path = self._vectors_path(ledger)
        line = encode(VectorLine(tuple(vectors), keep))
        needed = len(line) * len(ledger.vectors) // max(1, len(vectors))
        is_new = len(ledger.vectors) <= len(vectors) or not path.exists()
        if is_new or path.stat().st_size > MAX_OUTDATED * needed + MIN_OUTDATED_BYTES:
            self._write_vectors(ledger)
        else:
            disk.append(path, [line])

    def drop_vectors(self, ledger: Ledger, positions: Iterable[int]) -> None:
        """Append that the ledger has lost vectors."""
        line = VectorLine(keep=len(ledger.vectors), dropped=tuple(positions))
        disk.append(self._vectors_path(ledger), [encode(line)])

    def _write_vectors(self, ledger: Ledger) -> None:
        """Write all vectors anew, in many lines: one call that encodes all would stop the event loop."""
        vectors, keep = tuple(ledger.vectors.values()), len(ledger.vectors)
        batches = (vectors[n : n + VECTORS_PER_LINE] for n in range(0, keep or 1, VECTORS_PER_LINE))
        text = b"".join(f"{encode(VectorLine(batch, keep))}\n".encode() for batch in batches)
        disk.replace(self._vectors_path(ledger), text, sync=True)

    def write_waiting_turns(self, ledger: Ledger) -> None:
        text = encode(WaitingFile(tuple(ledger.waiting_turns.values())))
        disk.replace(self.session_folder(ledger.session.id) / WAITING_FILE, text, sync=True)

    def try_write_waiting_turns(self, ledger: Ledger) -> None:
        """Write the waiting turns after one has fired. Ignore a failure: the log tells that it has fired."""
        with suppress(OSError):
            self.write_waiting_turns(ledger)

    def write_all(self, ledger: Ledger) -> None:
        """Write all files of an imported session. `session.json` comes last and makes it visible."""
        folder = self._make_folders(ledger)
        if self._write_imported(ledger):
            disk.replace(folder / OWNER_FILE, encode(OwnerFile(ledger.session.owner)), sync=True)
        for entry in ledger.entries.values():
            self.write_turn(ledger, entry, sync=True)
            if entry.steps:
                lines = [encode_step(step) for step in entry.steps]
                lines[-1]["commit"] = encode_commit(Commit(entry.continuation))
                disk.append(self._log_path(ledger, entry), lines, new=True)
        if ledger.waiting_turns:
            self.write_waiting_turns(ledger)
        self.write_session(ledger)

    def write_outdated_session(self, ledger: Ledger) -> None:
        """Write `session.json` if the session's logs are newer than it."""
        if ledger.session.id in self.outdated:
            self.write_session(ledger)

    def drop_swept_logs(self, ledger: Ledger) -> None:
        """Delete the logs of ended turns whose steps a sweep has dropped."""
        for entry in ledger.entries.values():
            if entry.continuation.is_final and not entry.steps:
                self._log_path(ledger, entry).unlink(missing_ok=True)

    def write_message(self, ledger: Ledger, message_id: str) -> None:
        """Write the file that has a message: that of its turn, or that of the imported messages."""
        entry = ledger.entries.get(ledger.turn_of[message_id] or "")
        if entry is None:
            self._write_imported(ledger)
        else:
            self.write_turn(ledger, entry, sync=True)

    def _write_imported(self, ledger: Ledger) -> bool:
        """Write the messages that were imported without turns. Return False if there are none."""
        imported = [m for m in ledger.transcript if ledger.turn_of.get(m.id) is None]
        if imported:
            text = "".join(f"{encode(message)}\n" for message in imported)
            path = self.session_folder(ledger.session.id) / "turns" / IMPORTED_FILE
            disk.replace(path, text, sync=True)
        return bool(imported)

    def _make_folders(self, ledger: Ledger) -> Path:
        folder = self.session_folder(ledger.session.id)
        for name in ("turns", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        return folder

    def _log_path(self, ledger: Ledger, entry: Entry) -> Path:
        return self.session_folder(ledger.session.id) / "logs" / f"{entry.continuation.id}.log"

    def _vectors_path(self, ledger: Ledger) -> Path:
        return self.session_folder(ledger.session.id) / VECTORS_FILE
