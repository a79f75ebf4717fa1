"""Checks the data folder and the store in it, read-only."""

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.stores.files.records import LAYOUT_VERSION
from sash.stores.lock import FileLock
from sash.stores.sqlite.database import SCHEMA_VERSION

MIN_FREE_BYTES = 100 << 20
MAX_SQLITE_CHECK_S = 10.0
_GROUP_AND_OTHERS = 0o077
_RESTORE = "restore it from a backup"
_NO_STORE = Finding("store", "ok", "there is no store yet: it will be created")


def check_folder(settings: Settings) -> Finding:
    """Check that the data folder is writable and private, and has free space."""
    if settings.store == "memory":
        return Finding("data", "ok", "not needed: the store is in memory")
    folder = settings.folder
    existing = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    if not existing.is_dir():
        advice = "choose another folder with --data or SASH_DATA"
        return Finding("data", "wrong", f"{existing} is not a folder", advice)
    if not os.access(existing, os.W_OK | os.X_OK):
        advice = "choose another folder with --data, or change its permissions"
        return Finding("data", "wrong", f"{existing} cannot be written", advice)
    free_bytes = shutil.disk_usage(existing).free
    space = f"{free_bytes / (1 << 30):.1f} GB free"
    if free_bytes < MIN_FREE_BYTES:
        advice = "free some space: a store that cannot write refuses turns"
        return Finding("data", "wrong", f"{folder}, {space}", advice)
    if existing != folder:
        return Finding("data", "ok", f"{folder} will be created, {space}")
    if os.name == "posix" and folder.stat().st_mode & _GROUP_AND_OTHERS:
        return Finding("data", "note", f"other users can read {folder}, {space}", f"chmod 700 {folder}")
    return Finding("data", "ok", f"{folder}, {space}")


def check_store(settings: Settings) -> Finding:
    """Check that this version of Sash can read the store."""
    if settings.store == "memory":
        advice = "everything is lost when the program ends: choose sqlite to keep it"
        return Finding("store", "note", "memory", advice)
    if settings.store == "sqlite":
        return _check_sqlite(settings.folder / "sash.db")
    if settings.store == "files":
        return _check_files(settings.folder)
    return Finding("store", "wrong", "unknown kind of store", "choose sqlite, files or memory")


def _check_sqlite(path: Path) -> Finding:
    if not path.exists():
        return _NO_STORE
    # Without a -wal file no process has the database open. `immutable` then avoids creating one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as db:
            [version] = db.execute("PRAGMA user_version").fetchone()
            problems = _run_quick_check(db)
    except sqlite3.Error as error:
        return Finding("store", "wrong", f"{path} cannot be read: {error}", _RESTORE)
    if version > SCHEMA_VERSION:
        found = f"{path} was written by a newer Sash (schema {version}, this Sash knows {SCHEMA_VERSION})"
        return Finding("store", "wrong", found, "install the newer Sash")
    if problems is None:
        size = f"{path.stat().st_size / (1 << 20):,.0f} MB"
        found = f"{path}, {size}: the check stopped after {MAX_SQLITE_CHECK_S:g} s and is incomplete"
        return Finding("store", "note", found)
    if problems != "ok":
        return Finding("store", "wrong", f"{path} is damaged: {problems:.200}", _RESTORE)
    upgrade = f" (will be upgraded to schema {SCHEMA_VERSION})" if version < SCHEMA_VERSION else ""
    return Finding("store", "ok", f"{path} is intact, schema {version}{upgrade}")


def _run_quick_check(db: sqlite3.Connection) -> str | None:
    """Return the result of SQLite's quick check, or None if it takes too long."""
    deadline = time.monotonic() + MAX_SQLITE_CHECK_S
    db.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
    try:
        return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None


def _check_files(folder: Path) -> Finding:
    meta = folder / "index" / "meta.json"
    if not meta.exists():
        return _NO_STORE
    try:
        version = json.loads(meta.read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding("store", "wrong", f"{meta} cannot be read: {error!s:.200}", _RESTORE)
    if version != LAYOUT_VERSION:
        found = f"{folder} has layout {version}, this Sash knows {LAYOUT_VERSION}"
        return Finding("store", "wrong", found, "install the version of Sash that wrote it")
    if _is_locked(folder / "lock"):
        advice = (
            "a files store allows one program at a time: stop that program before you run another command"
        )
        return Finding("store", "note", f"{folder} is open in another program", advice)
    if damaged := next(filter(_is_damaged, folder.glob("sessions/*/session.json")), None):
        return Finding("store", "wrong", f"{damaged} cannot be read", _RESTORE)
    return Finding("store", "ok", f"{folder} can be read, layout {version}")


def _is_damaged(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return True
    return False


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return not lock.acquire()
    except OSError:
        return False
    finally:
        lock.release()
