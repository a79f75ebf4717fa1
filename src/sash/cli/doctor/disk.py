"""The data folder and the store in it, looked at without touching them."""

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

LEAST_FREE = 100 << 20
LONGEST_CHECK_S = 10.0
_OTHERS = 0o077


def check_folder(settings: Settings) -> Finding:
    """Whether the data folder can be written, is private, and has room."""
    if settings.store == "memory":
        return Finding("data", "ok", "not needed: the store is in memory")
    folder = settings.folder
    there = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    if not there.is_dir():
        return Finding("data", "wrong", f"{there} is no folder", "choose another with --data or SASH_DATA")
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            "data",
            "wrong",
            f"{there} cannot be written",
            "choose another with --data, or get the right to it",
        )
    free = shutil.disk_usage(there).free
    room = f"{free / (1 << 30):.1f} GB free"
    if free < LEAST_FREE:
        return Finding(
            "data", "wrong", f"{folder}, {room}", "make room: a store that cannot write refuses turns"
        )
    if there != folder:
        return Finding("data", "ok", f"{folder} will be made, {room}")
    if os.name == "posix" and folder.stat().st_mode & _OTHERS:
        return Finding("data", "note", f"{folder} can be read by others, {room}", f"chmod 700 {folder}")
    return Finding("data", "ok", f"{folder}, {room}")


def check_store(settings: Settings) -> Finding:
    """Whether the store can be read, and by this version."""
    if settings.store == "memory":
        return Finding(
            "store", "note", "memory", "nothing is kept when the program ends: choose sqlite for that"
        )
    if settings.store == "sqlite":
        return _check_sqlite(settings.folder / "sash.db")
    if settings.store == "files":
        return _check_files(settings.folder)
    return Finding(
        "store", "wrong", "a store that this version does not know", "choose sqlite, files or memory"
    )


def _check_sqlite(path: Path) -> Finding:
    if not path.exists():
        return Finding("store", "ok", "there is none yet: it will be made")
    # A file that nobody has open has no log, and is read without making one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as db:
            [version] = db.execute("PRAGMA user_version").fetchone()
            complaints = _quick_check(db)
    except sqlite3.Error as error:
        return Finding("store", "wrong", f"{path} cannot be read: {error}", "bring back a copy of it")
    if version > SCHEMA_VERSION:
        found = f"{path} was written by a newer Sash (schema {version}, this one knows {SCHEMA_VERSION})"
        return Finding("store", "wrong", found, "install the newer one")
    if complaints is None:
        size = f"{path.stat().st_size / (1 << 20):,.0f} MB"
        return Finding(
            "store", "note", f"{path}, {size}: not all of it was checked within {LONGEST_CHECK_S:g} s"
        )
    if complaints != "ok":
        return Finding("store", "wrong", f"{path} is damaged: {complaints:.200}", "bring back a copy of it")
    older = f" (schema {version} will become {SCHEMA_VERSION})" if version < SCHEMA_VERSION else ""
    return Finding("store", "ok", f"{path} is sound, schema {version}{older}")


def _quick_check(db: sqlite3.Connection) -> str | None:
    """Return what SQLite says of the file, or None if that would take too long."""
    until = time.monotonic() + LONGEST_CHECK_S
    db.set_progress_handler(lambda: int(time.monotonic() > until), 10_000)
    try:
        return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None


def _check_files(folder: Path) -> Finding:
    meta = folder / "index" / "meta.json"
    if not meta.exists():
        return Finding("store", "ok", "there is none yet: it will be made")
    try:
        version = json.loads(meta.read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding("store", "wrong", f"{meta} cannot be read: {error!s:.200}", "bring back a copy of it")
    if version != LAYOUT_VERSION:
        found = f"{folder} has layout {version}, this Sash knows {LAYOUT_VERSION}"
        return Finding("store", "wrong", found, "install the Sash that wrote it")
    if _is_held(folder / "lock"):
        advice = "it is for one program at a time: stop that one before you use another command"
        return Finding("store", "note", f"{folder} is open in another program", advice)
    if damaged := next(filter(_is_damaged, folder.glob("sessions/*/session.json")), None):
        return Finding("store", "wrong", f"{damaged} cannot be read", "bring back a copy of it")
    return Finding("store", "ok", f"{folder} can be read, layout {version}")


def _is_damaged(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return True
    return False


def _is_held(path: Path) -> bool:
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return not lock.acquire()
    except OSError:
        return False
    finally:
        lock.release()
