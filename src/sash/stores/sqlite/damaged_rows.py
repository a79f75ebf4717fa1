"""Rows that cannot be read. A list leaves them out, so that one damaged record does not stop the store."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sash.errors import SashError

S = TypeVar("S")
T = TypeVar("T")

# A damaged record may also contradict others. Then a rule or an index of the database refuses the change.
_UNREADABLE = (SashError, sqlite3.IntegrityError)

_logger = logging.getLogger(__name__)


def read_sound(read: Callable[[Any], T], rows: Iterable[Any]) -> list[T]:
    """Return the values of the rows that can be read. The others are logged."""
    return list(_iterate_sound(read, rows))


def change_sound(db: sqlite3.Connection, change: Callable[[S], T], records: Iterable[S]) -> list[T]:
    """Change each record, and return the results. A change that a damaged record makes fail is undone."""

    def change_one(record: S) -> T:
        db.execute("SAVEPOINT record")
        try:
            return change(record)
        except Exception:
            db.execute("ROLLBACK TO record")
            raise
        finally:
            db.execute("RELEASE record")

    return read_sound(change_one, records)


def _iterate_sound(read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
    for row in rows:
        try:
            yield read(row)
        except _UNREADABLE as error:
            _logger.error("a damaged record is left out; `sash doctor` names it: %.300s", error)
