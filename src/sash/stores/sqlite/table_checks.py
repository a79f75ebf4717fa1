"""Finds the damaged rows of every table, for `sash doctor`. Each table has a class with all its columns.

Its `is_sound` compares them with each other, if there is something to compare.
"""

import sqlite3
import time
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Len
from pydantic import Json, PlainValidator, Strict

from sash.errors import SashError
from sash.memory.window import Reason
from sash.stores.sqlite.columns import StoredTime, Text, read_columns
from sash.stores.sqlite.continuation_rows import Ending
from sash.stores.sqlite.full_text_index import DamagedIndex, check_index
from sash.stores.sqlite.queries import read_queries
from sash.values.bounds import Cost, Natural
from sash.values.codec import decode
from sash.values.continuations import ArtifactRef, Continuation, Status
from sash.values.ids import LATEST_ID, is_ulid
from sash.values.messages import MessageEntry
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import Label, Session, SessionStatus
from sash.values.stats import Stats
from sash.values.steps import Step
from sash.values.waiting_turns import WaitingTurn

Data = Annotated[bytes, Strict()]


class DamagedRow(NamedTuple):
    """A row that cannot be used. The remedy deletes its session, or is SQL if no owner can do that."""

    name: str
    remedy: str
    session_id: str | None = None


class _SessionRow(NamedTuple):
    id: Text
    owner: Label
    name: Label | None
    status: SessionStatus
    updated_at: StoredTime
    version: Natural
    cursor: Natural
    positions: Natural
    last_position: Natural
    has_cut: Literal[1]
    stats: Annotated[Stats, PlainValidator(partial(decode, Stats))]
    body: Annotated[Session, PlainValidator(partial(decode, Session))]

    def is_sound(self) -> bool:
        same = (self.id, self.owner, self.name) == (self.body.id, self.body.owner, self.body.name)
        return same and is_ulid(self.id) and self.id < LATEST_ID and self.last_position <= self.positions


class _CutRow(NamedTuple):
    window_from: Natural
    kept: Json[tuple[Natural, ...]]
    turn_starts: Json[tuple[str, ...]]
    evicted: Json[tuple[tuple[str, Reason], ...]]
    evicted_count: Natural
    digest: Text
    cut_at: StoredTime | None


class _ContinuationRow(NamedTuple):
    id: Text
    owner: Label
    session_id: Text
    status: Status
    updated_at: StoredTime
    idempotency_key: Label | None
    worker: Text | None
    lease_until: StoredTime | None
    epoch: Natural
    first_cursor: Natural
    answer_at: Natural | None
    swept: Literal[0, 1]
    body: Annotated[Continuation, PlainValidator(partial(decode, Continuation))]
    ending: Annotated[Ending, PlainValidator(partial(decode, Ending))] | None

    def is_sound(self) -> bool:
        body = self.body
        stored = (self.id, self.owner, self.session_id, self.idempotency_key)
        is_same = stored == (body.id, body.owner, body.session_id, body.request.idempotency_key)
        is_complete = self.ending is not None or self.status != "completed"
        return is_same and is_complete and is_ulid(self.id) and self.id < LATEST_ID


class _StepRow(NamedTuple):
    cursor: Natural
    continuation_id: Text
    body: Annotated[Step, PlainValidator(partial(decode, Step))]
    has_continuation: Literal[1]

    def is_sound(self) -> bool:
        return self.body.cursor == self.cursor


class _MessageRow(NamedTuple):
    row: Annotated[Natural, Strict()]
    position: Natural
    continuation_id: Text | None
    body: Annotated[MessageEntry, PlainValidator(partial(decode, MessageEntry))]
    has_continuation: Literal[1]


class _VectorRow(NamedTuple):
    position: Natural
    model: Label
    data: Data


class _ArtifactRow(NamedTuple):
    id: Text
    owner: Label
    session_owner: Label
    ref: Annotated[ArtifactRef, PlainValidator(partial(decode, ArtifactRef))]
    data: Data

    def is_sound(self) -> bool:
        return self.ref.id == self.id and self.owner == self.session_owner


class _SpentRow(NamedTuple):
    owner: Label
    at: StoredTime
    usd: Cost


class _KeyRow(NamedTuple):
    value: Annotated[Data, Len(32, 32)]


class _NotesRow(NamedTuple):
    owner: Label
    version: Natural
    body: Annotated[OwnerNotes, PlainValidator(partial(decode, OwnerNotes))]

    def is_sound(self) -> bool:
        return self.owner == self.body.owner


class _WaitingRow(NamedTuple):
    id: Text
    owner: Label
    session_id: Text
    body: Annotated[WaitingTurn, PlainValidator(partial(decode, WaitingTurn))]

    def is_sound(self) -> bool:
        return (self.id, self.owner, self.session_id) == (
            self.body.id,
            self.body.owner,
            self.body.session_id,
        )


_TABLES: dict[str, Any] = {
    "sessions": _SessionRow,
    "cuts": _CutRow,
    "continuations": _ContinuationRow,
    "steps": _StepRow,
    "messages": _MessageRow,
    "vectors": _VectorRow,
    "artifacts": _ArtifactRow,
    "waiting_turns": _WaitingRow,
    "spent": _SpentRow,
    "export_key": _KeyRow,
    "owner_notes": _NotesRow,
}
# The tables whose rows belong to no session.
_OF_STORE = ("spent", "export_key", "owner_notes")
_QUERIES = read_queries("table_checks")


def find_damaged(db: sqlite3.Connection, deadline_s: float) -> list[DamagedRow] | None:
    """Return the rows that cannot be used, or None after `deadline_s` (monotonic time)."""
    damaged: list[DamagedRow] = []
    lost_sessions: set[Any] = set()
    for table in _TABLES:
        for where, session, *columns in db.execute(_QUERIES[table]):
            if time.monotonic() > deadline_s:
                return None
            if _is_sound(table, session, columns):
                continue
            if table == "sessions" and not _can_delete(columns):
                lost_sessions.add(session)
                session = None
            if session not in lost_sessions or table == "sessions":
                damaged.append(_describe(table, where, session))
    return damaged


def is_index_sound(db: sqlite3.Connection) -> bool:
    """Return True if the full-text index can be read."""
    db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, said, 'instance')")
    try:
        db.execute("SELECT count(*) FROM words").fetchone()
        check_index(db)
    except sqlite3.DatabaseError as error:
        if "interrupted" in str(error):
            raise
        return False
    except DamagedIndex:
        return False
    return True


def _is_sound(table: str, session: Any, columns: list[Any]) -> bool:
    if session is None and table not in _OF_STORE:
        return False
    try:
        row = read_columns(_TABLES[table], columns)
    except SashError:
        return False
    return not hasattr(row, "is_sound") or bool(row.is_sound())


def _can_delete(columns: list[Any]) -> bool:
    """Return True if the owner of a damaged session can delete it, because its id and owner are sound."""
    session_id, owner, *_, body = columns
    try:
        session = decode(Session, body)
    except SashError:
        return is_ulid(session_id) and isinstance(owner, str) and owner != ""
    return (session.id, session.owner) == (session_id, owner)


def _describe(table: str, where: str, session: str | None) -> DamagedRow:
    if session is not None:
        name = f"session {session}" if table == "sessions" else f"{table} of session {session}"
        return DamagedRow(f"{name} ({where})", f"delete the session {session}", session)
    if table not in (*_OF_STORE, "sessions"):
        where = "session NOT IN (SELECT key FROM sessions)"
    return DamagedRow(f"{table} ({where})", f"DELETE FROM {table} WHERE {where};")
