"""Reads a session from its files and replays its logs.

The logs may have later changes than the other files, and any file may be damaged. If the file of a turn is
damaged or lacks the end of the turn, its log is used. A turn that has ended according to its file has ended,
even if the last lines of its log are lost.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sash.errors import SashError
from sash.ports.turns import TurnEnd
from sash.stores import disk
from sash.stores.disk import UnusableFile
from sash.stores.files.damage import DamageReport, keep_copy
from sash.stores.files.records import (
    IMPORTED_FILE,
    OWNER_FILE,
    SYNCED_FILE,
    VECTORS_FILE,
    WAITING_FILE,
    LogLine,
    OwnerFile,
    SessionFile,
    TurnFile,
    WaitingFile,
    decode_line,
    read_session_file,
    read_turn_file,
    read_vector_file,
)
from sash.stores.ledger.entry import Entry
from sash.stores.ledger.session_ledger import Ledger
from sash.stores.rules import session_versions
from sash.values.codec import decode
from sash.values.messages import MessageEntry
from sash.values.prompts import SentPrompts
from sash.values.sessions import Session
from sash.values.stats import NO_STATS
from sash.values.steps import Step
from sash.values.waiting_turns import WaitingTurn

# The errors of files that are damaged, or contradict each other.
_UNREADABLE = (SashError, UnusableFile, ValueError, TypeError, LookupError, OverflowError, AssertionError)


class LoadedSession(NamedTuple):
    """A session, and whether its logs had later changes than its files, or a file was not synced."""

    ledger: Ledger
    is_outdated: bool


class _LateChange(NamedTuple):
    """The end or amended answer of a turn, if it is newer than `session.json` or than the turn's file."""

    cursor: int
    turn_id: str
    change: TurnEnd | MessageEntry
    at: datetime


class SessionReader:
    """Reads sessions, and reports the files that are damaged."""

    def __init__(self, report: DamageReport) -> None:
        self._report = report

    def read(self, folder: Path) -> LoadedSession | None:
        """Read a session from its folder. If `session.json` is damaged, report it and use the other files.

        Return None if they do not tell the owner.
        """
        path = folder / "session.json"
        try:
            ledger, has_late_changes = self._read_session(folder, read_session_file(path, disk.read(path)))
            return LoadedSession(ledger, has_late_changes or disk.exists(folder / SYNCED_FILE))
        except UnusableFile as error:
            self._report.add(path, f"the session cannot be read: {error}")
            return None
        except _UNREADABLE as error:
            loaded = self._read_synced(folder)
            if loaded is not None:
                keep_copy(path)
                self._report.add(path, f"the file that was written before it is used: {error}")
                return loaded
            try:
                loaded = self._rebuild_session(folder)
                if loaded:
                    keep_copy(path)
            except _UNREADABLE:
                loaded = None
            how = "is rebuilt from its turns, with the default settings" if loaded else "cannot be read"
            self._report.add(path, f"the session {how}: {error}")
            return loaded

    def _read_synced(self, folder: Path) -> LoadedSession | None:
        """Read the last `session.json` that was synced, with the logs since. None if that is impossible."""
        path = folder / SYNCED_FILE
        try:
            if not disk.exists(path):
                return None
            loaded = self._read_session(folder, read_session_file(path, disk.read(path)))
            return loaded._replace(is_outdated=True)
        except _UNREADABLE:
            return None

    def _rebuild_session(self, folder: Path) -> LoadedSession | None:
        """Return a session with the messages of its turns and imports; None if its owner is unknown.

        Its policy, notes and preferences are lost. With the default policy the agent performs no actions.
        """
        files = list(filter(None, map(self._read_turn, disk.list_files(folder / "turns", ".json"))))
        logs = [lines for path in disk.list_files(folder / "logs", ".log") if (lines := self._read_log(path))]
        commits = [lines[-1].commit for lines in logs]
        turns = [file.continuation for file in files] + [c.continuation for c in commits if c is not None]
        messages = [*self._read_imported(folder), *(message for file in files for message in file.messages)]
        owner = turns[0].owner if turns else _read_owner(folder)
        times = [t for turn in turns for t in (turn.created_at, turn.updated_at)]
        times += [message.timestamp for message in messages]
        if owner is None or not times:
            return None
        session = Session(folder.name, owner, min(times), max(times))
        in_window = tuple(message.id for message in messages)
        return self._read_session(folder, SessionFile(session, cursor=0, in_window=in_window))

    def _read_session(self, folder: Path, record: SessionFile) -> LoadedSession:
        ledger = Ledger(record.session)
        ledger.turn_starts = record.turn_starts
        ledger.evicted, ledger.evicted_count = record.evicted, record.evicted_count
        readable = filter(None, map(self._read_turn, disk.list_files(folder / "turns", ".json")))
        files = {file.continuation.id: file for file in readable}
        entries = {
            key: Entry(file.continuation, end_cursor=file.ended, kept_parts=file.kept_parts)
            for key, file in files.items()
        }
        late: list[_LateChange] = []
        for path in disk.list_files(folder / "logs", ".log"):
            late += self._replay(entries, files, path, record.cursor)
        late += _find_ends_without_log(files, late, record.cursor)
        ledger.cursor = max((record.cursor, *(file.cursor for file in files.values())))
        for _, entry in sorted(entries.items()):
            ledger.add(entry)
            ledger.cursor = max(ledger.cursor, *(step.cursor for step in entry.steps), 0)
        imported = self._read_imported(folder)
        _add_transcript(ledger, record, imported, files, _turns_ended_late(late))
        for item in sorted(late):
            _apply_late(ledger, item, record.cursor)
        self._read_vectors(ledger, folder / VECTORS_FILE)
        ledger.waiting_turns = self._read_waiting_turns(folder / WAITING_FILE)
        ledger.drop_fired()
        return LoadedSession(ledger, bool(late))

    def _replay(
        self, entries: dict[str, Entry], files: dict[str, TurnFile], path: Path, cursor: int
    ) -> list[_LateChange]:
        """Add the steps of a log to the entry of its turn. Return the changes that the other files lack.

        `cursor` is the cursor of `session.json`. A turn that has ended according to its file stays ended,
        even if the last lines of its log are lost.
        """
        lines, late, file = self._read_log(path), [], files.get(path.stem)
        if not lines:
            return []
        last, commit = lines[-1]
        assert commit is not None
        entry = entries.setdefault(path.stem, Entry(commit.continuation))
        if file is None or not entry.continuation.is_final or last.cursor > file.cursor:
            entry.continuation = commit.continuation
        entry.prompts = _list_prompts(lines)
        for step, commit in lines:
            if isinstance(step, Step):
                entry.steps.append(step)
            if commit is not None and commit.finish is not None:
                entry.end_cursor = step.cursor
                if step.cursor > cursor:
                    late.append(_LateChange(step.cursor, path.stem, commit.finish, step.ts))
                elif file is None or file.ended < step.cursor:
                    messages, end = commit.finish.messages, step.cursor
                    file = TurnFile(commit.continuation, messages, commit.position, end, end)
                    files[path.stem] = file
            elif commit is not None and commit.amended is not None:
                is_newer = file is None or step.cursor > file.cursor
                if is_newer or step.cursor > cursor:
                    answer = file.messages[-1] if file and not is_newer else commit.amended
                    late.append(_LateChange(step.cursor, path.stem, answer, step.ts))
        return late

    def _read_turn(self, path: Path) -> TurnFile | None:
        try:
            return read_turn_file(path, disk.read(path))
        except (SashError, UnusableFile) as error:
            self._report.add(path, f"the turn's file is damaged, its log is used instead: {error}")
            return None

    def _read_imported(self, folder: Path) -> list[MessageEntry]:
        """Read the imported messages. A damaged line is left out, and stays in the file."""
        path, messages = folder / "turns" / IMPORTED_FILE, []
        for line in disk.read(path).splitlines() if disk.exists(path) else ():
            try:
                messages.append(decode(MessageEntry, line))
            except SashError as error:
                self._report.add(path, f"an imported message cannot be read: {error}")
        return messages

    def _read_vectors(self, ledger: Ledger, path: Path) -> None:
        """Add the vectors of a file to a ledger, and remove an incomplete write from the end of the file.

        A damaged line may have dropped vectors that are outdated, so no vectors of such a file are used.
        """
        if not disk.exists(path):
            return
        try:
            data = disk.read(path)
            for line in read_vector_file(data):
                ledger.drop_vectors(line.dropped)
                ledger.add_vectors(line.vectors, line.keep, replace_all=False)
        except (SashError, UnusableFile) as error:
            self._report.add(path, f"the vectors cannot be read and are computed again: {error}")
            ledger.vectors.clear()
            return
        if not data.endswith(b"\n"):
            self._report.add(
                path, "a crash left an incomplete write at the end of the vectors: it is removed"
            )
            with disk.use_file(path):
                os.truncate(path, data.rfind(b"\n") + 1)

    def _read_waiting_turns(self, path: Path) -> dict[str, WaitingTurn]:
        try:
            turns = decode(WaitingFile, disk.read(path)).waiting_turns if disk.exists(path) else ()
        except (SashError, UnusableFile) as error:
            keep_copy(path)
            self._report.add(path, f"what the session waits for is lost, and a copy of it is kept: {error}")
            turns = ()
        return {turn.id: turn for turn in turns}

    def _read_log(self, path: Path) -> list[LogLine]:
        """Read a log up to its last commit, and remove the rest of the file.

        The rest is one incomplete write. The file is damaged if the rest has a complete line, or if there is
        no commit. Then a copy is kept.
        """
        try:
            data = disk.read(path)
        except UnusableFile as error:
            self._report.add(path, f"the log cannot be read, the turn's file is used instead: {error}")
            return []
        lines: list[LogLine] = []
        readable_size = committed_size = committed_count = 0
        for raw in data.splitlines(keepends=True):
            try:
                lines.append(decode_line(path, raw))
            except (ValueError, SashError):
                break
            readable_size += len(raw)
            if lines[-1].commit is not None:
                committed_count, committed_size = len(lines), readable_size
        if committed_size < len(data):
            if b"\n" in data[readable_size:] or not committed_size:
                keep_copy(path)
                self._report.add(
                    path,
                    "the log is damaged: the lines before the damage are used, and a copy of it is kept",
                )
            else:
                self._report.add(
                    path, "a crash left an incomplete write at the end of the log: it is removed"
                )
            with disk.use_file(path):
                os.truncate(path, committed_size)
        return lines[:committed_count]


def _list_prompts(lines: Iterable[LogLine]) -> list[SentPrompts]:
    """Return the prompts in the lines of a log."""
    commits = [line.commit for line in lines if line.commit is not None]
    found = [commit.finish.prompts if commit.finish else commit.prompts for commit in commits]
    return [prompts for prompts in found if prompts]


def _find_ends_without_log(
    files: dict[str, TurnFile], late: list[_LateChange], cursor: int
) -> Iterator[_LateChange]:
    """Yield the ends of turns that are in the turn's file, but neither in `session.json` nor in a log."""
    known = _turns_ended_late(late)
    for file in files.values():
        turn = file.continuation
        if turn.is_final and file.ended > cursor and file.messages and turn.id not in known:
            end = TurnEnd(turn.status, (), messages=file.messages, stats=turn.stats or NO_STATS)
            yield _LateChange(file.ended, turn.id, end, turn.updated_at)


def _turns_ended_late(late: Iterable[_LateChange]) -> set[str]:
    return {item.turn_id for item in late if isinstance(item.change, TurnEnd)}


def _apply_late(ledger: Ledger, item: _LateChange, cursor: int) -> None:
    """Apply a change that is newer than `session.json`, whose cursor is `cursor`, or than the turn's file."""
    if isinstance(item.change, TurnEnd):
        ledger.apply_end(item.turn_id, item.change, item.at)
        return
    entry = ledger.entries[item.turn_id]
    if entry.messages:
        ledger.replace_answer(entry, item.change)
    if item.cursor > cursor:
        ledger.session = session_versions.touch_session(ledger.session, item.at)


def _read_owner(folder: Path) -> str | None:
    """Return the owner of imported messages; None for a folder that an older version wrote."""
    path = folder / OWNER_FILE
    return decode(OwnerFile, disk.read(path)).owner if disk.exists(path) else None


def _add_transcript(
    ledger: Ledger,
    record: SessionFile,
    imported: Iterable[MessageEntry],
    files: dict[str, TurnFile],
    late_turns: set[str],
) -> None:
    """Add the imported messages, then the messages of the turns in the order of their positions.

    The messages of `late_turns` are left out here; `_apply_late` adds them.
    """
    for message in imported:
        ledger.add_message(message, None)
    for file in sorted(files.values(), key=lambda f: f.position):
        if file.continuation.id not in late_turns:
            for message in file.messages:
                ledger.add_message(message, file.continuation.id)
    kept = set(record.in_window)
    ledger.in_window = {m.id: m for m in ledger.transcript if m.id in kept}
