"""The files of the database of a config entry."""

import sqlite3
from contextlib import closing
from pathlib import Path

from homeassistant.core import HomeAssistant

FOLDER = "sash"
# Beside its file, a database has a log with its index, and a lock.
_ENDINGS = ("", "-wal", "-shm", ".lock")


def find_database(hass: HomeAssistant, entry_id: str) -> Path:
    """Return the file with all conversations of a config entry."""
    return Path(hass.config.path(FOLDER, f"{entry_id}.db"))


def measure_database(path: Path) -> int:
    """Return the bytes of a database on the disk, with its log. This may block."""
    return sum(file.stat().st_size for file in _list_files(path) if file.exists())


def has_records(path: Path) -> bool:
    """Return True if a database has conversations or facts, or cannot be read. This may block."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            query = "SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM owner_notes)"
            return bool(db.execute(query).fetchone()[0])
    except sqlite3.Error:
        return True


def delete_database(path: Path) -> None:
    """Delete a database that no process has open, and the folder if it is empty then. This may block."""
    for file in _list_files(path):
        file.unlink(missing_ok=True)
    if path.parent.exists() and not any(path.parent.iterdir()):
        path.parent.rmdir()


def _list_files(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{ending}") for ending in _ENDINGS]
