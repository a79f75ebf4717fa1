"""Waiting turns as rows of SQLite."""

import sqlite3

from sash.stores.rules import record_errors, waiting_rules
from sash.stores.sqlite import session_rows as sessions
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.queries import SQL
from sash.values.codec import decode, encode
from sash.values.waiting_turns import WaitingTurn


def add_waiting_turn(db: sqlite3.Connection, turn: WaitingTurn) -> WaitingTurn:
    session = sessions.get_session(db, turn.owner, turn.session_id)
    known = list_waiting_turns(db, turn.owner, turn.session_id)
    if same := waiting_rules.find_same(turn, known):
        return same
    waiting_rules.check_room(session, known)
    insert_waiting_turn(db, sessions.find_key(db, turn.owner, turn.session_id), turn)
    return turn


def insert_waiting_turn(db: sqlite3.Connection, key: int, turn: WaitingTurn) -> None:
    """Insert a waiting turn into the session with this key."""
    db.execute(SQL["insert_waiting_turn"], {"id": turn.id, "session": key, "body": encode(turn)})


def change_waiting_turn(db: sqlite3.Connection, turn: WaitingTurn) -> None:
    where = {"id": turn.id, "session_id": turn.session_id, "owner": turn.owner}
    if not db.execute(SQL["update_waiting_turn"], where | {"body": encode(turn)}).rowcount:
        record_errors.raise_waiting_turn_not_found(turn.id)


def cancel_waiting_turn(db: sqlite3.Connection, owner: str, turn_id: str) -> WaitingTurn:
    rows = db.execute(SQL["delete_waiting_turn"], {"id": turn_id, "owner": owner}).fetchall()
    if not rows:
        record_errors.raise_waiting_turn_not_found(turn_id)
    return decode(WaitingTurn, rows[0][0])


def list_waiting_turns(
    db: sqlite3.Connection, owner: str | None, session_id: str | None
) -> list[WaitingTurn]:
    rows = db.execute(SQL["waiting_turns"], {"owner": owner, "session_id": session_id}).fetchall()
    return read_sound(lambda row: decode(WaitingTurn, row[0]), rows)


def is_waiting(db: sqlite3.Connection, key: int, turn_id: str | None) -> bool:
    """Return True if the session with this key has the waiting turn."""
    where = {"id": turn_id, "session": key}
    return turn_id is not None and bool(db.execute(SQL["is_waiting_turn"], where).fetchone()[0])


def remove_fired(db: sqlite3.Connection, owner: str, turn_id: str | None) -> None:
    """Remove a waiting turn that has become a continuation. None removes nothing."""
    if turn_id is not None:
        db.execute(SQL["delete_waiting_turn"], {"id": turn_id, "owner": owner}).fetchall()
