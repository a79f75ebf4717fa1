"""Reads the database of a config entry for all owners together: their names, and counts of records."""

import sqlite3
from typing import NamedTuple

from sash.stores.sqlite.database import ALL_OWNERS
from sash.stores.sqlite.store import SqliteStore

# The two partial indexes have the few turns that are open, so that this reads no other rows.
_OPEN_TURNS = """
SELECT
    (SELECT count(*) FROM continuations INDEXED BY holders WHERE status IN ('running', 'awaiting_approval'))
    + (SELECT count(*) FROM continuations INDEXED BY waiting WHERE status IN ('pending', 'interrupted'))
"""
_PAUSED_TURNS = """
SELECT owner, id FROM continuations INDEXED BY holders
    WHERE status IN ('running', 'awaiting_approval') AND status <> 'running'
UNION ALL SELECT owner, id FROM continuations INDEXED BY waiting
    WHERE status IN ('pending', 'interrupted') AND status <> 'pending'
"""
# Ids are in the order of time.
_LAST_TURN = """
SELECT owner, id FROM continuations WHERE status IN ('completed', 'failed') ORDER BY id DESC LIMIT 1
"""
_RECORDS = """
SELECT (SELECT count(DISTINCT owner) FROM sessions WHERE status <> 'hidden'),
    (SELECT count(*) FROM sessions WHERE status <> 'hidden'),
    (SELECT count(*) FROM sessions WHERE status = 'active'),
    (SELECT count(*) FROM continuations),
    (SELECT count(*) FROM messages),
    (SELECT count(*) FROM owner_notes)
"""
_OWNERS = "SELECT DISTINCT owner FROM sessions WHERE status <> 'hidden'"


class StoreCounts(NamedTuple):
    """The number of owners, sessions, active sessions, turns, messages, and owners with notes."""

    owners: int
    sessions: int
    active_sessions: int
    turns: int
    messages: int
    owners_with_notes: int


class TurnKey(NamedTuple):
    """The owner and the id of a turn, by which the store finds it."""

    owner: str
    id: str


async def list_owners(store: SqliteStore) -> list[str]:
    """Return the owners of all sessions."""
    return await store.database.read(lambda db: [str(owner) for (owner,) in db.execute(_OWNERS)], ALL_OWNERS)


async def count_open_turns(store: SqliteStore) -> int:
    """Return the number of turns that run, wait for an approval, were interrupted, or are queued."""
    return await store.database.read(lambda db: int(db.execute(_OPEN_TURNS).fetchone()[0]), ALL_OWNERS)


async def list_paused_turns(store: SqliteStore) -> list[TurnKey]:
    """Return the turns that wait for an approval or were interrupted."""
    return await store.database.read(
        lambda db: [TurnKey(*row) for row in db.execute(_PAUSED_TURNS)], ALL_OWNERS
    )


async def find_last_turn(store: SqliteStore) -> TurnKey | None:
    """Return the newest turn that was completed or failed, or None."""

    def read(db: sqlite3.Connection) -> TurnKey | None:
        row = db.execute(_LAST_TURN).fetchone()
        return None if row is None else TurnKey(*row)

    return await store.database.read(read, ALL_OWNERS)


async def count_records(store: SqliteStore) -> StoreCounts:
    """Return the counts of the store. This reads indexes only, but may take a second in a large store."""
    return await store.database.read(lambda db: StoreCounts(*db.execute(_RECORDS).fetchone()), ALL_OWNERS)
