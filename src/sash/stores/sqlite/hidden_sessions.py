"""Sessions that no query shows, because they are being imported or deleted.

Both take long for a large session, and run in slices. A hidden session has the owner ''. If the process ends
before the work does, the session stays hidden, and the next process that opens the file alone deletes it.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from sash.stores.rules import record_errors
from sash.stores.sqlite.full_text_index import check_index
from sash.stores.sqlite.queries import SQL

# Small numbers, because a message may have a megabyte.
ROWS_PER_STEP = 4
PAGES_PER_STEP = 16

_TABLES = ("messages", "steps", "continuations", "artifacts", "waiting_turns")
_DELETE_ROWS = (
    "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE session = ? "
    f"LIMIT {ROWS_PER_STEP})"
)


def hide_session(db: sqlite3.Connection, owner: str, session_id: str) -> list[int]:
    """Hide a session and return its key. Raise `SessionNotFound` if the owner has no such session."""
    keys = _hide(db, owner, session_id)
    if not keys:
        record_errors.raise_session_not_found(session_id)
    return keys


def hide_sessions(db: sqlite3.Connection, owner: str) -> list[int]:
    """Hide all sessions of an owner, and return their keys."""
    return _hide(db, owner, None)


def list_hidden(db: sqlite3.Connection) -> list[int]:
    """Return the keys of all hidden sessions."""
    return [key for [key] in db.execute(SQL["hidden_sessions"])]


def delete_hidden(db: sqlite3.Connection, keys: Sequence[int], *, is_indexed: bool = False) -> Iterator[None]:
    """Delete those of these sessions that are hidden, and their words in the full-text index, in steps.

    With `is_indexed`, the index may have words of messages that were deleted before.
    """
    check_index(db)
    hidden = sorted({*keys}.intersection(list_hidden(db)))
    for key in hidden:
        is_indexed |= bool(db.execute(SQL["has_indexed_messages"], (key,)).fetchone()[0])
        for table in _TABLES:
            while db.execute(_DELETE_ROWS.format(table=table), (key,)).rowcount:
                db.execute(SQL["indexed_after_delete"])
                yield
        while db.execute(SQL["drop_word_parts"], (key,)).rowcount:
            yield
    if is_indexed:
        yield from _clean_index(db)
    # The sessions are last: after a crash they show that something is left to do.
    for key in hidden:
        db.execute(SQL["delete_session"], (key,))
        yield


def _hide(db: sqlite3.Connection, owner: str, session_id: str | None) -> list[int]:
    where = {"owner": owner, "session_id": session_id}
    keys = [key for [key] in db.execute(SQL["hide_sessions"], where).fetchall()]
    # Without their continuations, the workers of running turns cannot write any more.
    db.executemany(SQL["drop_open_turns"], [(key,) for key in keys])
    return keys


def _clean_index(db: sqlite3.Connection) -> Iterator[None]:
    """Merge the whole full-text index, in steps. It keeps the words of deleted messages until then."""
    pages, changes = -PAGES_PER_STEP, 2
    while changes >= 2:
        before = db.total_changes
        db.execute(SQL["merge_index"], (pages,))
        pages, changes = PAGES_PER_STEP, db.total_changes - before
        yield
