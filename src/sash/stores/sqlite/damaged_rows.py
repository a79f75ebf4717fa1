"""Rows that cannot be read. A list leaves them out, so that one damaged record does not stop the store."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sash.errors import StoreUnavailable
from sash.values.codec import decode
from sash.values.continuations import Continuation
from sash.values.ids import LATEST_ID, is_ulid
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
from sash.values.stats import Stats
from sash.values.steps import Step

T = TypeVar("T")

_UNREADABLE = (StoreUnavailable, ValueError, OverflowError, TypeError)
_KINDS: tuple[tuple[str, type[Any], str], ...] = (
    ("session", Session, "SELECT id, body FROM sessions"),
    ("session", Stats, "SELECT id, stats FROM sessions"),
    ("turn", Continuation, "SELECT id, body FROM continuations"),
    ("turn", Step, "SELECT continuation_id, body FROM steps"),
    ("session", MessageEntry, "SELECT id, m.body FROM messages AS m JOIN sessions AS s ON s.key = session"),
)

_logger = logging.getLogger(__name__)


def read_sound(read: Callable[[Any], T], rows: Iterable[Any]) -> list[T]:
    """Return the values of the rows that can be read. The others are logged."""
    return list(_iterate_sound(read, rows))


def _iterate_sound(read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
    for row in rows:
        try:
            yield read(row)
        except _UNREADABLE as error:
            _logger.error("a damaged record is left out; `sash doctor` names it: %.300s", error)


def find_damaged(db: sqlite3.Connection, deadline_s: float) -> list[str] | None:
    """Return the names of the records that cannot be read, or None after `deadline_s` (monotonic time)."""
    damaged: dict[str, None] = {}
    for what, kind, query in _KINDS:
        for record_id, body in db.execute(query):
            if time.monotonic() > deadline_s:
                return None
            try:
                decode(kind, body)
                is_sound = is_ulid(record_id) and record_id < LATEST_ID
            except _UNREADABLE:
                is_sound = False
            if not is_sound:
                damaged[f"{what} {record_id}"] = None
    return list(damaged)
