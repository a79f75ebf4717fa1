"""Deletes the damaged records of a SQLite store, so that a person need not do it by hand."""

import sqlite3
import time
from functools import partial

from sash.errors import StoreUnavailable
from sash.stores.sqlite.database import ALL_OWNERS
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.store import SqliteStore
from sash.stores.sqlite.table_checks import DamagedRow, find_damaged

MAX_SEARCH_S = 60.0


async def delete_damaged(store: SqliteStore) -> int:
    """Delete the records that cannot be used, with their whole sessions, and return the number of records.

    All other records stay. This also empties the full-text index, which later searches fill again.
    """
    deadline_s = time.monotonic() + MAX_SEARCH_S
    damaged = await store.database.read(partial(find_damaged, deadline_s=deadline_s), ALL_OWNERS)
    if damaged is None:
        raise StoreUnavailable(f"the search for damaged records stopped after {MAX_SEARCH_S:g} s")
    for session_id in dict.fromkeys(row.session_id for row in damaged if row.session_id is not None):
        owner = await store.database.read(partial(_find_owner, session_id=session_id), ALL_OWNERS)
        await store.delete_session(owner, session_id)
    await store.database.write(partial(_delete_rows, rows=[row for row in damaged if not row.session_id]))
    await store.database.repair_index()
    return len(damaged)


def _find_owner(db: sqlite3.Connection, session_id: str) -> str:
    [owner] = db.execute("SELECT owner FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(owner)


def _delete_rows(db: sqlite3.Connection, rows: list[DamagedRow]) -> None:
    for row in rows:
        db.execute(row.remedy)
    db.execute(SQL["indexed_after_delete"])
