"""Damages single columns of a SQLite file, past its constraints and triggers."""

import sqlite3
from contextlib import closing

# A text that is no UTF-8 needs SQL.
NOT_UTF8 = ("CAST(x'fffe41' AS TEXT)",)
NUMBERS = {"null": None, "negative": -1, "huge": 2**63 - 1, "text": "garbage"}
TEXTS = {"null": None, "brace": "{", "blob": b"\xff\x00", "not utf-8": NOT_UTF8}

_OF_TALK = "SELECT :talk, 'rowid = ' || max(rowid) FROM {} WHERE session = (SELECT key FROM sessions WHERE id = :talk)"
_TURN = (
    "SELECT s.id, 'rowid = ' || c.rowid FROM continuations AS c JOIN sessions AS s ON s.key = c.session "
    "WHERE s.id IN (:talk, :asks) AND c.status = '{}' ORDER BY c.id DESC"
)
# Queries for the rows to damage: the session of the row, and a condition that selects it.
_ROWS = {
    "sessions": [
        f"SELECT id, 'key = ' || key FROM sessions WHERE id = :{name}" for name in ("talk", "named")
    ],
    "continuations": [
        _TURN.format(status) for status in ("completed", "running", "pending", "awaiting_approval")
    ],
    **{table: [_OF_TALK.format(table)] for table in ("cuts", "steps", "messages", "artifacts")},
    "vectors": ["SELECT :talk, 'true'"],
    "spent": ["SELECT NULL, 'true'"],
    "said_data": ["SELECT NULL, 'id = ' || max(id) FROM said_data", "SELECT NULL, 'id = 10'"],
    "said_idx": ["SELECT NULL, 'true'"],
    "word_parts": ["SELECT NULL, 'true'"],
    "said_config": ["SELECT NULL, 'k = ''version'''"],
}
_ANY_ROW = ["SELECT NULL, 'rowid = ' || max(rowid) FROM {}"]


def connect(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def list_columns(db):
    """Return the table, the column and its type for each column of the schema."""
    tables = [name for [name] in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (table, column, kind)
        for table in tables
        if table != "said"  # its columns are those of a view
        for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})")
    ]


def find_rows(path, table, world):
    """Return pairs of the id of a session and a condition that selects a row of the table."""
    ids = {"talk": world.talk, "named": world.named, "asks": world.asks}
    with connect(path) as db:
        return [
            db.execute(
                query.format(table), {name: id for name, id in ids.items() if f":{name}" in query}
            ).fetchone()
            for query in _ROWS.get(table, _ANY_ROW)
        ]


def damage(path, table, column, where, value):
    """Write a value into a column. Return False if SQLite cannot store it there at all."""
    with connect(path) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        [schema] = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        _write_schema(db, table, schema.replace(" NOT NULL", ""))
    with connect(path) as db:
        text, values = (value[0], ()) if isinstance(value, tuple) else ("?", (value,))
        try:
            db.execute(f"UPDATE {table} SET {column} = {text} WHERE {where}", values)
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            return False
        _write_schema(db, table, schema)
    with connect(path) as db:
        for _, sql in triggers:
            db.execute(sql)
    return True


def _write_schema(db, table, sql):
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?", (sql, table))
