"""Removes the folders of deleted sessions, and keeps the money that was spent in them.

The rename of a folder deletes its session. The money is written next, then the folder is removed. After a
crash, the next process that opens the store continues with the missing step.
"""

import shutil
from datetime import datetime
from pathlib import Path

from sash.errors import SashError
from sash.stores import disk
from sash.stores.files.damage import DamageReport, keep_copy
from sash.stores.files.records import SPENT_FILE, Spent, SpentFile, get_session_id
from sash.stores.files.session_reader import SessionReader
from sash.stores.ledger.spent_money import SpentMoney
from sash.values.codec import decode, encode


class DeletedSessions:
    """The folders of deleted sessions, and the file of spent money."""

    def __init__(self, folder: Path, report: DamageReport) -> None:
        self._sessions = folder / "sessions"
        self._path = folder / SPENT_FILE
        self._report = report
        self._written: dict[tuple[str, datetime], float] = {}

    def open(self, spent: SpentMoney, reader: SessionReader, now: datetime) -> None:
        """Read the file of spent money into `spent`, and finish deletions that a crash interrupted."""
        record = self._read()
        for row in record.spent:
            spent.add(row.owner, row.at, row.usd)
        self._written = dict(spent.usd)
        leftovers = self._find_leftovers()
        for folder in leftovers:
            is_counted = get_session_id(folder) in record.counted
            if not is_counted and disk.exists(folder / "session.json") and (loaded := reader.read(folder)):
                spent.add_turns(loaded.ledger, now)
        self.write(spent)
        for folder in leftovers:
            try:
                with disk.use_file(folder):
                    shutil.rmtree(folder)
            except disk.UnusableFile as error:
                self._report.add(folder, f"the folder of a deleted session cannot be removed: {error}")

    def remove(self, folder: Path, spent: SpentMoney) -> None:
        """Remove the folder of a deleted session. `spent` has its money."""
        deleted = folder.rename(folder.with_name(f".{folder.name}.deleted"))
        disk.sync_folder(self._sessions)
        self.write(spent)
        shutil.rmtree(deleted)

    def write(self, spent: SpentMoney) -> None:
        """Write the file if the money has changed since it was written."""
        if spent.usd != self._written:
            counted = tuple(map(get_session_id, self._find_leftovers()))
            rows = tuple(Spent(owner, at, usd) for (owner, at), usd in sorted(spent.usd.items()))
            disk.replace(self._path, encode(SpentFile(rows, counted)), sync=True)
            self._written = dict(spent.usd)

    def _read(self) -> SpentFile:
        try:
            return decode(SpentFile, disk.read(self._path))
        except FileNotFoundError:
            return SpentFile()
        except (SashError, disk.UnusableFile) as error:
            self._report.add(self._path, f"the money of deleted sessions is not counted: {error}")
            if not isinstance(error, disk.UnusableFile):
                keep_copy(self._path)
                self._path.unlink()
            return SpentFile()

    def _find_leftovers(self) -> list[Path]:
        return sorted(self._sessions.glob(".*.deleted"))
