"""Sessions as rows of SQLite."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from sash.ports.store import Page
from sash.stores.rules import record_errors, retention_rules, session_names, session_versions
from sash.stores.sqlite.columns import StoredTime, Text, read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Natural
from sash.values.codec import decode, encode
from sash.values.sessions import Session, SessionStatus
from sash.values.stats import NO_STATS, Stats

# The status of a session that no query shows, in addition to its owner ''.
HIDDEN = "hidden"


class _SessionColumns(NamedTuple):
    """The columns of a session and its cut, in the order of the queries."""

    body: Any
    status: SessionStatus
    updated_at: StoredTime
    version: Natural
    stats: Any
    digest: Text
    cut_at: StoredTime | None


class _CursorColumn(NamedTuple):
    """The column of the query `last_cursor`."""

    cursor: Natural


class _IdleColumns(NamedTuple):
    """The columns of the query `idle_sessions`."""

    key: int
    holder_count: int
    status: SessionStatus
    updated_at: StoredTime
    version: Natural


def find_export_key(db: sqlite3.Connection) -> bytes | None:
    """Return the key that signs exports, or None if it is damaged."""
    row = db.execute(SQL["export_key"]).fetchone()
    return None if row is None else bytes(row[0])


def replace_export_key(db: sqlite3.Connection) -> bytes:
    """Add a new key and return it, unless another process has added one. The damaged key stays stored."""
    db.execute(SQL["replace_export_key"])
    return bytes(db.execute(SQL["export_key"]).fetchone()[0])


def find_key(db: sqlite3.Connection, owner: str, session_id: str) -> int:
    """Return the number by which the other tables refer to a session. Raise `SessionNotFound` if unknown."""
    row = db.execute(SQL["key"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        record_errors.raise_session_not_found(session_id)
    return int(row[0])


def get_session(db: sqlite3.Connection, owner: str, session_id: str) -> Session:
    row = db.execute(SQL["session"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        record_errors.raise_session_not_found(session_id)
    return read_session(row)


def find_session(db: sqlite3.Connection, owner: str, name: str) -> Session | None:
    row = db.execute(SQL["session_of_name"], {"owner": owner, "name": name}).fetchone()
    return None if row is None else read_session(row)


def find_named(db: sqlite3.Connection, session: Session) -> Session | None:
    """Return the session that has the name of `session` now; None if `session` does not need it."""
    name = session_names.get_reserved_name(session)
    return None if name is None else find_session(db, session.owner, name)


def list_sessions(
    db: sqlite3.Connection,
    owner: str,
    status: SessionStatus | None,
    name: str | None,
    limit: int,
    cursor: str | None,
    with_questions: bool,
) -> Page:
    where = {"owner": owner, "status": status, "name": name, "cursor": cursor, "limit": limit + 1}
    where["with_questions"] = with_questions
    found = db.execute(SQL["sessions"], where).fetchall()
    last_id = found[limit - 1][0] if len(found) > limit else None
    return Page(tuple(read_sound(lambda row: read_session(row[1:]), found[:limit])), last_id)


def count_active(db: sqlite3.Connection, owner: str) -> int:
    [count] = db.execute(SQL["count_active"], {"owner": owner}).fetchone()
    return int(count)


def create_session(db: sqlite3.Connection, session: Session) -> None:
    session_names.check_name(session, find_named(db, session))
    insert_session(db, session)


def open_session(db: sqlite3.Connection, session: Session, reopen: bool, now: datetime) -> Session:
    opened, write = session_names.open_session(session, find_named(db, session), reopen)
    if write == "insert":
        insert_session(db, opened)
    return save_session(db, opened, now) if write == "update" else opened


def save_session(db: sqlite3.Connection, session: Session, now: datetime) -> Session:
    stored = get_session(db, session.owner, session.id)
    saved = session_versions.save_session(stored, session, find_named(db, session), now)
    [key] = db.execute(SQL["update_session"], _session_row(saved)).fetchone()
    write_digest(db, key, saved.memory.digest, saved.memory.cut_at)
    if saved.status == "ended":
        db.execute(SQL["delete_waiting_turns"], (key,))
    return saved


def insert_session(db: sqlite3.Connection, session: Session, *, is_hidden: bool = False) -> int:
    """Insert a session and return its key in other tables. Raise `SessionExists` if the id is taken."""
    hidden = {"owner": "", "name": None, "status": HIDDEN} if is_hidden else {}
    row = db.execute(SQL["insert_session"], _session_row(session) | hidden).fetchone()
    if row is None:
        record_errors.raise_session_exists(session.id)
    memory, cut_at = session.memory, session.memory.cut_at
    cut = {"session": row[0], "digest": memory.digest, "cut_at": cut_at and cut_at.timestamp()}
    db.execute(SQL["insert_cut"], cut)
    return int(row[0])


def show_session(db: sqlite3.Connection, session: Session) -> None:
    """Show a session that was inserted as a hidden one."""
    db.execute(SQL["show_session"], _session_row(session))


def write_digest(db: sqlite3.Connection, key: int, digest: str, cut_at: datetime | None) -> None:
    values = {"session": key, "digest": digest, "cut_at": cut_at and cut_at.timestamp()}
    db.execute(SQL["update_digest"], values)


def touch_session(db: sqlite3.Connection, key: int, session: Session) -> None:
    """Write the version of a session, and the time of its last change."""
    db.execute(SQL["touch_session"], (session.updated_at.timestamp(), session.version, key))


def expire_idle_sessions(db: sqlite3.Connection, before: datetime) -> int:
    """Expire the sessions that have not changed since `before`, and return their number."""
    rows = db.execute(SQL["idle_sessions"], {"before": before.timestamp()}).fetchall()
    expired = [
        (*session_versions.expire_session(found.version), found.key)
        for found in read_sound(lambda row: read_columns(_IdleColumns, row), rows)
        if retention_rules.is_idle(found.status, found.updated_at, found.holder_count, before)
    ]
    db.executemany(SQL["expire_session"], expired)
    return len(expired)


def last_cursor(db: sqlite3.Connection, owner: str, session_id: str) -> int:
    row = db.execute(SQL["last_cursor"], {"session_id": session_id, "owner": owner}).fetchone()
    if row is None:
        record_errors.raise_session_not_found(session_id)
    return read_columns(_CursorColumn, row).cursor


def read_session(row: Sequence[Any]) -> Session:
    found = read_columns(_SessionColumns, row)
    session = decode(Session, found.body)
    return replace(
        session,
        status=found.status,
        updated_at=found.updated_at,
        version=found.version,
        stats=decode(Stats, found.stats),
        memory=replace(session.memory, digest=found.digest, cut_at=found.cut_at),
    )


def _session_row(session: Session) -> dict[str, Any]:
    body = replace(session, stats=NO_STATS, memory=replace(session.memory, digest="", cut_at=None))
    return {
        "id": session.id,
        "owner": session.owner,
        "name": session.name,
        "status": session.status,
        "updated_at": session.updated_at.timestamp(),
        "version": session.version,
        "stats": encode(session.stats),
        "body": encode(body),
    }
