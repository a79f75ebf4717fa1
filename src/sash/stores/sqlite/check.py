"""A read-only check of a SQLite file."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sash.stores.backend import NO_STORE_YET, RESTORE_BACKUP, StoreCheck
from sash.stores.sqlite.damaged_rows import find_damaged
from sash.stores.sqlite.database import SCHEMA_VERSION

MAX_CHECK_S = 10.0
MAX_NAMED = 5


def check_file(path: Path) -> StoreCheck:
    """Check that the file is intact, and that this version of Sash knows its schema."""
    if not path.exists():
        return NO_STORE_YET
    # Without a -wal file no process has the database open. `immutable` then avoids creating one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as db:
            [version] = db.execute("PRAGMA user_version").fetchone()
            problems = _run_quick_check(db)
            is_readable = problems == "ok" and version == SCHEMA_VERSION
            damaged = find_damaged(db, time.monotonic() + MAX_CHECK_S) if is_readable else []
    except sqlite3.Error as error:
        return StoreCheck("wrong", f"{path} cannot be read: {error}", RESTORE_BACKUP)
    if version > SCHEMA_VERSION:
        found = f"{path} was written by a newer Sash (schema {version}, this Sash knows {SCHEMA_VERSION})"
        return StoreCheck("wrong", found, "install the newer Sash")
    if problems is None or damaged is None:
        size = f"{path.stat().st_size / (1 << 20):,.0f} MB"
        found = f"{path}, {size}: the check stopped after {MAX_CHECK_S:g} s and is incomplete"
        return StoreCheck("note", found)
    if problems != "ok":
        return StoreCheck("wrong", f"{path} is damaged: {problems:.200}", RESTORE_BACKUP)
    if damaged:
        named = ", ".join(damaged[:MAX_NAMED]) + (" …" if len(damaged) > MAX_NAMED else "")
        found = f"{path}: {len(damaged)} records cannot be read, all others can: {named}"
        return StoreCheck("wrong", found, "delete these sessions, or put a backup in place of the file")
    upgrade = f" (will be upgraded to schema {SCHEMA_VERSION})" if version < SCHEMA_VERSION else ""
    return StoreCheck("ok", f"{path} is intact, schema {version}{upgrade}")


def _run_quick_check(db: sqlite3.Connection) -> str | None:
    """Return the result of SQLite's quick check, or None if it takes too long."""
    deadline = time.monotonic() + MAX_CHECK_S
    db.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
    try:
        return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None
