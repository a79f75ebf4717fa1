"""Searches by words in SQLite: in the full-text index, and in the messages that it lacks so far."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from time import monotonic
from typing import Any, NamedTuple, NoReturn

from pydantic import Json

from sash.errors import InvalidInput, StoreUnavailable
from sash.memory.asked_words import AskedWord, list_words_among
from sash.memory.recall_ranking import Place, Spot, WordHits, choose_candidates
from sash.memory.similar_words import add_similar, choose_similar, list_known_words
from sash.memory.words import ends_with_question_mark, split_index_words
from sash.stores.sqlite.columns import read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.full_text_index import check_indexed_row, quote_search, read_text
from sash.stores.sqlite.known_words import find_candidates
from sash.stores.sqlite.queries import SQL
from sash.values.bounds import Natural

MAX_SEARCH_S = 5.0
# A turn waits for what it recalls.
MAX_RECALL_S = 2.0
# SQLite's virtual machine executes this many instructions between two checks of the time.
STEPS_PER_CHECK = 10_000
# No message has a row with so high a number.
_NO_ROW = 2**63 - 1


def find_words(db: sqlite3.Connection, owner: str, key: int, words: Sequence[AskedWord]) -> WordHits[int]:
    """Find the evicted messages with some words. Messages that the index lacks are read.

    Raise `InvalidInput` if this takes too long.
    """
    check_indexed_row(db)
    window = _find_window(db, key)
    texts = dict(_read_unindexed(db, key))
    unindexed = {row: set(split_index_words(text)) for row, text in texts.items()}
    kept_at = {"session": key, "positions": json.dumps(sorted(window.kept))}
    kept = {row for (row,) in db.execute(SQL["rows_at"], kept_at)} if window.kept else set()

    def list_rows(forms: Collection[str]) -> set[int]:
        where = {"words": quote_search(key, forms), "until": window.first_row}
        return {row for (row,) in db.execute(SQL["rows_with_words"], where)} - kept if forms else set()

    @cache
    def list_unindexed_words() -> set[str]:
        return {word for text in texts.values() for word in list_known_words(text)}

    def list_similar(word: str) -> set[int]:
        known = list_unindexed_words().union(find_candidates(db, key, owner, word))
        similar = {*choose_similar(word, known)}
        return list_rows(similar) | {row for row, said in unindexed.items() if not similar.isdisjoint(said)}

    with _stop_long_search(db, MAX_RECALL_S):
        lists = [list_rows(word.forms) for word in words]
        for row, said in unindexed.items():
            for n in list_words_among(said, words):
                lists[n].add(row)
        guessed = add_similar(lists, words, list_similar)
        hits = choose_candidates(lists, window.first_position - 1 - len(window.kept), guessed)
        found = _find_places(db, owner, hits.found)
    words_at = {spot.position: hits.found[row] for row, spot, _ in found}
    places = {spot.position: place for _, spot, place in found}
    return WordHits(hits.weights, words_at, hits.message_count, places)


def search_words(
    db: sqlite3.Connection, owner: str, session_id: str | None, words: Sequence[AskedWord], count: int
) -> WordHits[Spot]:
    """Find the indexed messages with some words. Raise `InvalidInput` if the search takes too long."""
    key: int | None = None
    if session_id is not None:
        row = db.execute(SQL["key"], {"session_id": session_id, "owner": owner}).fetchone()
        if row is None:
            return WordHits((0.0,) * len(words), {}, 0)
        key = int(row[0])

    def list_rows(forms: Collection[str]) -> set[int]:
        name = "owner_rows_with_words" if key is None else "rows_with_words"
        where = {"words": quote_search(key, forms), "owner": owner, "until": _NO_ROW}
        return {row for (row,) in db.execute(SQL[name], where)} if forms else set()

    def list_similar(word: str) -> set[int]:
        return list_rows(choose_similar(word, find_candidates(db, key, owner, word)))

    with _stop_long_search(db, MAX_SEARCH_S):
        lists = [list_rows(word.forms) for word in words]
        guessed = add_similar(lists, words, list_similar)
        [total] = db.execute(
            SQL["count_owner_messages"], {"owner": owner, "session_id": session_id}
        ).fetchone()
        hits = choose_candidates(lists, total, guessed, count)
        found = _find_places(db, owner, hits.found)
    words_at = {spot: hits.found[row] for row, spot, _ in found}
    return WordHits(hits.weights, words_at, total, {spot: place for _, spot, place in found})


@contextmanager
def _stop_long_search(db: sqlite3.Connection, max_s: float) -> Iterator[None]:
    until = monotonic() + max_s
    db.set_progress_handler(lambda: monotonic() >= until, STEPS_PER_CHECK)
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        raise_too_long(max_s, error)
    finally:
        db.set_progress_handler(None, 0)


def raise_too_long(max_s: float, cause: Exception) -> NoReturn:
    raise InvalidInput(
        f"the search took longer than {max_s:.0f} seconds: search for fewer or rarer words"
    ) from cause


def read_places(
    db: sqlite3.Connection, key: int, positions: Collection[int], *, with_window: bool
) -> list[Place]:
    """Return the places of those messages at some positions that were said, and not by tools."""
    wanted = sorted(positions)
    if not with_window:
        window = _find_window(db, key)
        wanted = [at for at in wanted if 0 < at < window.first_position and at not in window.kept]
    found = db.execute(SQL["places"], {"session": key, "positions": json.dumps(wanted)})
    return read_sound(_read_place, found)


def _find_places(db: sqlite3.Connection, owner: str, rows: Collection[int]) -> list[tuple[int, Spot, Place]]:
    """Return the rows of those messages that were said, with their sessions and places."""

    def read(columns: Sequence[Any]) -> tuple[int, Spot, Place]:
        row, session_id, *others = columns
        place = _read_place(others)
        return row, Spot(str(session_id), place.position), place

    where = {"owner": owner, "rows": json.dumps(list(rows))}
    return read_sound(read, db.execute(SQL["places_of_rows"], where))


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
    for row, role, text, body in db.execute(SQL["evicted_messages"], {"session": key}):
        if row <= last_indexed:
            return
        if role != "tool":
            yield row, read_text(text, body)


def _read_place(row: Sequence[Any]) -> Place:
    position, role, speaker, timestamp, length, end = row
    try:
        at = datetime.fromisoformat(timestamp).timestamp()
        is_question = ends_with_question_mark(str(end))
        return Place(int(position), str(role), str(speaker), at, int(length), is_question)
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreUnavailable("a stored row is damaged, `sash doctor` names it") from error
