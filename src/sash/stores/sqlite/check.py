"""A read-only check of a SQLite file."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sash.stores.backend import NO_STORE_YET, RESTORE_BACKUP, StoreCheck
from sash.stores.sqlite.database import SCHEMA_VERSION, read_text
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.table_checks import DamagedRow, find_damaged, is_index_sound

MAX_CHECK_S = 10.0
MAX_NAMED = 5
MAX_REMEDIES = 10


def check_file(path: Path) -> StoreCheck:
    """Check that the file is intact, and that this version of Sash knows its schema."""
    if not path.exists():
        return NO_STORE_YET
    # Without a -wal file no process has the database open. `immutable` then avoids creating one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as db:
            db.text_factory = read_text
            [version] = db.execute("PRAGMA user_version").fetchone()
            deadline_s = time.monotonic() + MAX_CHECK_S
            db.set_progress_handler(lambda: int(time.monotonic() > deadline_s), 10_000)
            problems = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
            is_known = version == SCHEMA_VERSION
            damaged = find_damaged(db, deadline_s) if is_known else []
            has_index = is_index_sound(db) if is_known else True
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            return _describe_incomplete(path)
        return StoreCheck("wrong", f"{path} cannot be read: {error}", RESTORE_BACKUP)
    if version > SCHEMA_VERSION:
        found = f"{path} was written by a newer Sash (schema {version}, this Sash knows {SCHEMA_VERSION})"
        return StoreCheck("wrong", found, "install the newer Sash")
    if damaged is None:
        return _describe_incomplete(path)
    if damaged:
        return _describe_damaged(path, damaged)
    if not has_index:
        found = f"{path} can be read, but its full-text index is damaged"
        return StoreCheck("wrong", found, "search once (`sash search hello`): this makes a new index")
    if problems != "ok":
        return StoreCheck("wrong", f"{path} is damaged: {problems:.200}", RESTORE_BACKUP)
    upgrade = f" (will be upgraded to schema {SCHEMA_VERSION})" if version < SCHEMA_VERSION else ""
    return StoreCheck("ok", f"{path} is intact, schema {version}{upgrade}")


def _describe_incomplete(path: Path) -> StoreCheck:
    size = f"{path.stat().st_size / (1 << 20):,.0f} MB"
    found = f"{path}, {size}: the check stopped after {MAX_CHECK_S:g} s and is incomplete"
    return StoreCheck("note", found)


def _describe_damaged(path: Path, damaged: list[DamagedRow]) -> StoreCheck:
    """Name some damaged records, with remedies that work for them."""
    remedies = list(dict.fromkeys(row.remedy for row in damaged))[:MAX_REMEDIES]
    named = ", ".join(row.name for row in damaged[:MAX_NAMED]) + (" …" if len(damaged) > MAX_NAMED else "")
    found = f"{path}: {len(damaged)} records cannot be read, all others can: {named}"
    deletions = [remedy for remedy in remedies if not remedy.endswith(";")]
    if sql := " ".join(remedy for remedy in remedies if remedy.endswith(";")):
        sql = f"PRAGMA foreign_keys = ON; {sql} {SQL['indexed_after_delete'].splitlines()[-1]};"
        deletions.append(f'stop Sash and run sqlite3 {path} "{sql}"')
    return StoreCheck("wrong", found, f"{', '.join(deletions)}, or put a backup in place of the file")
