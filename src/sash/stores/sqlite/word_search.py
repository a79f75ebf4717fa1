"""Searches by words in SQLite: in the full-text index, and in the messages that it lacks so far."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from pydantic import Json

from sash.errors import InvalidInput, StoreUnavailable
from sash.memory.recall_ranking import Place, WordHits, choose_candidates, list_words_in
from sash.ports.store import StoredMessage
from sash.stores.sqlite.columns import read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.full_text_index import check_index
from sash.stores.sqlite.message_rows import read_message
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Natural

MAX_SEARCH_S = 5.0
MAX_FOUND_CHARS = 4 << 20
_BODY = 3
# SQLite's virtual machine executes this many instructions between two checks of the time.
STEPS_PER_CHECK = 1000


def quote_words(query: str) -> str:
    """Return a full-text query for texts with all words of `query`; empty if it has no word."""
    quoted = query.replace("\0", " ").replace('"', '""')
    return " ".join(f'"{word}"' for word in quoted.split())


def search_messages(
    db: sqlite3.Connection, owner: str, words: str, session_id: str | None, limit: int
) -> list[StoredMessage]:
    """Find messages by their words, best first. Raise `InvalidInput` if the search takes too long."""
    match = f"text : ({words})"
    if session_id is not None:
        row = db.execute(SQL["key"], {"session_id": session_id, "owner": owner}).fetchone()
        if row is None:
            return []
        match = f"place : {_quote_place(row[0])} AND {match}"
    until = monotonic() + MAX_SEARCH_S
    db.set_progress_handler(lambda: monotonic() >= until, STEPS_PER_CHECK)
    try:
        found, chars = [], 0
        for row in db.execute(SQL["search"], {"words": match, "owner": owner, "limit": limit}):
            sound = read_sound(lambda row: read_message(*row), [row])
            found += sound
            chars += sum(len(row[_BODY]) for _ in sound)
            if chars > MAX_FOUND_CHARS:
                break
        return found
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        raise InvalidInput(
            f"the search took longer than {MAX_SEARCH_S:.0f} seconds: search for fewer or rarer words"
        ) from error
    finally:
        db.set_progress_handler(None, 0)


def find_words(db: sqlite3.Connection, key: int, words: Sequence[Sequence[str]]) -> WordHits:
    """Find the evicted messages with some words, of which each has several forms.

    Messages that the index lacks are read.
    """
    check_index(db)
    window = _find_window(db, key)
    lists: list[set[int]] = [set() for _ in words]
    for row, text in _read_unindexed(db, key):
        for n in list_words_in(text, words):
            lists[n].add(row)
    kept_at = {"session": key, "positions": json.dumps(sorted(window.kept))}
    kept = {row for (row,) in db.execute(SQL["rows_at"], kept_at)} if window.kept else set()
    place = f'place : "{key}said"'
    for rows, forms in zip(lists, words, strict=True):
        any_of = " OR ".join(map(_quote_form, forms))
        where = {"words": f"{place} AND text : ({any_of})", "until": window.first_row}
        rows.update(row for (row,) in db.execute(SQL["rows_with_words"], where))
        rows -= kept
    hits = choose_candidates(lists, window.first_position - 1 - len(window.kept))
    rows_found = json.dumps(list(hits.found))
    positions = dict(db.execute(SQL["positions_of_rows"], {"session": key, "rows": rows_found}))
    return replace(hits, found={positions[row]: bits for row, bits in hits.found.items() if row in positions})


def read_places(db: sqlite3.Connection, key: int, positions: Collection[int]) -> list[Place]:
    """Return the places of those evicted messages at some positions that were said, and not by tools."""
    window = _find_window(db, key)
    wanted = sorted(at for at in positions if 0 < at < window.first_position and at not in window.kept)
    found = db.execute(SQL["places"], {"session": key, "positions": json.dumps(wanted)})
    return read_sound(_read_place, found)


class _Window(NamedTuple):
    """The first message of a window, and the positions before it that the window keeps."""

    first_position: Natural
    kept: Json[frozenset[Natural]]
    first_row: int


def _find_window(db: sqlite3.Connection, key: int) -> _Window:
    return read_columns(_Window, db.execute(SQL["evicted_until"], {"session": key}).fetchone() or ())


def _read_unindexed(db: sqlite3.Connection, key: int) -> Iterator[tuple[int, str]]:
    """Yield the evicted messages that the full-text index lacks, newest first."""
    [last_indexed] = db.execute(SQL["indexed"]).fetchone()
    for row, role, text in db.execute(SQL["evicted_messages"], {"session": key}):
        if row <= last_indexed:
            return
        if role != "tool":
            yield row, text or ""


def _read_place(row: Sequence[Any]) -> Place:
    position, role, speaker, timestamp, length, end = row
    try:
        at = datetime.fromisoformat(timestamp).timestamp()
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreUnavailable("a stored row is damaged, `sash doctor` names it") from error
    return Place(int(position), str(role), str(speaker), at, int(length), str(end).rstrip().endswith("?"))


def _quote_place(key: int) -> str:
    """Return a full-text query for all messages of a session."""
    return f'("{key}said" OR "{key}tool")'


def _quote_form(form: str) -> str:
    """Return a full-text query for a form of a word: "boil*" is the beginning of a word."""
    word = form.rstrip("*").replace('"', "")
    return f'"{word}" *' if form.endswith("*") else f'"{word}"'
