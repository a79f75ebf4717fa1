"""The notes of owners as rows of SQLite."""

import sqlite3
from dataclasses import replace
from typing import Any, NamedTuple

from sash.errors import StoreUnavailable
from sash.stores.rules.note_rules import save_owner_notes
from sash.stores.sqlite.columns import read_columns
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Natural
from sash.values.codec import decode, encode
from sash.values.owner_notes import OwnerNotes


class _NotesColumns(NamedTuple):
    """The columns of the query `owner_notes`."""

    version: Natural
    body: Any


def get_notes(db: sqlite3.Connection, owner: str) -> OwnerNotes:
    row = db.execute(SQL["owner_notes"], (owner,)).fetchone()
    if row is None:
        return OwnerNotes(owner)
    found = read_columns(_NotesColumns, row)
    notes = decode(OwnerNotes, found.body)
    if notes.owner != owner:
        raise StoreUnavailable("your notes are damaged, `sash doctor` names them")
    return replace(notes, version=found.version)


def save_notes(db: sqlite3.Connection, notes: OwnerNotes) -> OwnerNotes:
    saved = save_owner_notes(get_notes(db, notes.owner), notes)
    db.execute(SQL["save_owner_notes"], (saved.owner, saved.version, encode(saved)))
    return saved


def erase_notes(db: sqlite3.Connection, owner: str) -> None:
    db.execute(SQL["erase_owner_notes"], (owner,))
