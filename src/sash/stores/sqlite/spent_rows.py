"""Money that no turn has, as rows of SQLite: of deleted turns, and of work outside of turns."""

import sqlite3
from datetime import datetime
from typing import NamedTuple

from sash.stores.rules.spent_rules import round_spent_at
from sash.stores.sqlite.columns import StoredTime, read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Cost
from sash.values.stats import Stats


class _CostColumns(NamedTuple):
    """The columns of the queries `costs` and `spent`."""

    at: StoredTime
    usd: Cost


def spend(db: sqlite3.Connection, owner: str, usd: float, at: datetime) -> None:
    if usd:
        db.execute(SQL["spend"], (owner, round_spent_at(at).timestamp(), usd))


def keep_costs(db: sqlite3.Connection, owner: str, session_id: str | None) -> None:
    """Keep the cost of turns that will be deleted: of one session, or of all of the owner's with None."""
    where = {"owner": owner, "session_id": session_id}
    rows = db.execute(SQL["costs"], where).fetchall()
    for at, usd in read_sound(lambda row: read_columns(_CostColumns, row), rows):
        spend(db, owner, usd, at)


def list_spent(db: sqlite3.Connection, owner: str | None, since: datetime) -> list[tuple[datetime, Stats]]:
    query = "spent_by_all" if owner is None else "spent"
    rows = db.execute(SQL[query], {"owner": owner, "since": since.timestamp()})
    found = read_sound(lambda row: read_columns(_CostColumns, row), rows)
    return [(at, Stats(cost_usd=usd)) for at, usd in found]


def drop_before(db: sqlite3.Connection, before: datetime) -> None:
    db.execute(SQL["drop_spent"], (before.timestamp(),))
