"""Money that no turn has, as rows of SQLite: of deleted turns, and of work outside of turns."""

import sqlite3
from datetime import datetime

from sash.stores.spent_rules import round_spent_at
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.session_rows import read_time
from sash.values.stats import Stats


def spend(db: sqlite3.Connection, owner: str, usd: float, at: datetime) -> None:
    if usd:
        db.execute(SQL["spend"], (owner, round_spent_at(at).timestamp(), usd))


def keep_costs(db: sqlite3.Connection, owner: str, session_id: str | None) -> None:
    """Keep the cost of turns that will be deleted: of one session, or of all of the owner's with None."""
    where = {"owner": owner, "session_id": session_id}
    for updated_at, usd in db.execute(SQL["costs"], where).fetchall():
        spend(db, owner, usd, read_time(updated_at))


def list_spent(db: sqlite3.Connection, owner: str, since: datetime) -> list[tuple[datetime, Stats]]:
    rows = db.execute(SQL["spent"], {"owner": owner, "since": since.timestamp()})
    return [(read_time(at), Stats(cost_usd=usd)) for at, usd in rows]


def drop_before(db: sqlite3.Connection, before: datetime) -> None:
    db.execute(SQL["drop_spent"], (before.timestamp(),))
