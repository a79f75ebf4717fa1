"""Runs a foreign SQL query over rows in memory. The query can only read these rows, within limits.

The authorizer allows SELECT, the tables of the caller, and harmless functions. SQLite's own limits bound the
length of texts, so that no expression makes a huge one. The progress handler bounds time and memory.
"""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from sash.errors import InvalidInput

MAX_SQL_CHARS = 4000
MAX_SECONDS = 2.0
MAX_RESULT_ROWS = 5000
MAX_COLUMNS = 32
MAX_CELL_CHARS = 16_000
MAX_RESULT_CHARS = 2_000_000
MAX_GROWTH_BYTES = 200 << 20
_STEPS_PER_CHECK = 1000
_PAGES = Path("/proc/self/statm")

_FUNCTION_NAMES = """
abs avg ceil ceiling coalesce count cume_dist date datetime dense_rank exp first_value floor glob
group_concat ifnull iif instr julianday lag last_value lead length like ln log lower ltrim max min
mod nth_value ntile nullif percent_rank pow power rank round row_number rtrim sign sqrt strftime
string_agg substr substring sum time timediff total trim trunc typeof unixepoch upper
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_CHARS,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_SQL_CHARS,
    sqlite3.SQLITE_LIMIT_COLUMN: MAX_COLUMNS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 16,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for a query. The names of the columns come from Sash, not from a user."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query. `is_cut` is True if the query has more rows than are returned."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_cut: bool = False


def run_query(tables: Mapping[str, Table], sql: str) -> QueryResult:
    """Run one SELECT over the tables. Raise `InvalidInput` with the cause and the remedy if it is refused.

    This blocks for up to `MAX_SECONDS`, so it belongs in a thread.
    """
    if len(sql) > MAX_SQL_CHARS:
        raise InvalidInput(f"the SQL is longer than {MAX_SQL_CHARS:,} characters: write a shorter query")
    guard = _Guard(frozenset(tables))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA temp_store = MEMORY")
        for name, table in tables.items():
            db.execute(f"CREATE TABLE {name} ({', '.join(table.columns)})")
            marks = ", ".join("?" * len(table.columns))
            db.executemany(f"INSERT INTO {name} VALUES ({marks})", table.rows)
        for category, limit in _LIMITS.items():
            db.setlimit(category, limit)
        guard.watch(db)
        try:
            return _fetch(db, sql)
        except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
            raise InvalidInput(guard.explain(error)) from error


def _fetch(db: sqlite3.Connection, sql: str) -> QueryResult:
    cursor = db.execute(sql)
    if cursor.description is None:
        raise InvalidInput("the SQL has no result: write one SELECT")
    rows: list[tuple[Any, ...]] = []
    chars = 0
    for row in cursor:
        chars += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) == MAX_RESULT_ROWS or chars > MAX_RESULT_CHARS:
            return QueryResult(_name_columns(cursor), rows, is_cut=True)
        rows.append(tuple(map(_as_json, row)))
    return QueryResult(_name_columns(cursor), rows)


def _as_json(value: Any) -> Any:
    """Return a value that JSON has: bytes become text, and numbers without an end become None."""
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value


def _name_columns(cursor: sqlite3.Cursor) -> tuple[str, ...]:
    return tuple(str(column[0])[:80] for column in cursor.description)


@dataclass(slots=True)
class _Guard:
    """Decides what a query may do, and remembers why it was stopped."""

    tables: frozenset[str]
    refused: str = ""
    until: float = field(default_factory=lambda: monotonic() + MAX_SECONDS)
    memory: int = field(default_factory=lambda: _read_memory())

    def watch(self, db: sqlite3.Connection) -> None:
        db.set_authorizer(self._authorize)
        db.set_progress_handler(self._check, _STEPS_PER_CHECK)

    def explain(self, error: Exception) -> str:
        """Return the reason for a person or a model."""
        if self.refused:
            return self.refused
        if isinstance(error, sqlite3.DataError) or "too big" in str(error):
            return f"the query makes a text of more than {MAX_CELL_CHARS:,} characters, which is not allowed"
        return f"the SQL is wrong: {error}"

    def _authorize(self, action: int, one: str | None, two: str | None, *_: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # A count of rows reads no column. Then the table may be a part of the query itself.
            is_count = not two and not str(one).lower().startswith(("sqlite_", "pragma_"))
            if one in self.tables or is_count:
                return sqlite3.SQLITE_OK
            self.refused = f"there is no table {one}: the tables are {', '.join(sorted(self.tables))}"
        elif action == sqlite3.SQLITE_FUNCTION:
            if (two or "").lower() in _FUNCTIONS:
                return sqlite3.SQLITE_OK
            self.refused = f"the function {two} is not allowed here: use the usual functions of SQLite"
        else:
            self.refused = "only one SELECT that reads the tables is allowed"
        return sqlite3.SQLITE_DENY

    def _check(self) -> bool:
        if monotonic() >= self.until:
            self.refused = f"the query took longer than {MAX_SECONDS:.0f} seconds: read fewer rows"
        elif _read_memory() - self.memory > MAX_GROWTH_BYTES:
            self.refused = "the query needed too much memory: read fewer rows"
        return bool(self.refused)


def _read_memory() -> int:
    """Return the bytes of memory that the process uses. 0 on a system that does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
