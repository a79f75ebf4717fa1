"""Searches by words in SQLite: in the full-text index, and in the messages that it lacks so far."""

import sqlite3
from collections.abc import Sequence
from time import monotonic

from sash.errors import InvalidInput
from sash.memory.words import normalize, split_words
from sash.ports.store import StoredMessage
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.full_text_index import check_index
from sash.stores.sqlite.message_rows import read_message
from sash.stores.sqlite.queries import SQL

MAX_SEARCH_S = 5.0
MAX_FOUND_CHARS = 4 << 20
_BODY = 3
# SQLite's virtual machine executes this many instructions between two checks of the time.
STEPS_PER_CHECK = 1000

# The number of matches to read at once. Most often there are not more.
_BATCH = 32
# The index has a list of words by their first letters. This is the number of letters.
_PREFIX_LENGTH = 4


class _Match:
    """A message with its words, and the first letters of these words."""

    __slots__ = ("body", "continuation_id", "first_letters", "position", "words")

    def __init__(self, position: int, continuation_id: str | None, body: str, text: str | None) -> None:
        self.position = position
        self.continuation_id = continuation_id
        self.body = body
        self.words = split_words(text or "")
        self.first_letters = {word[:_PREFIX_LENGTH] for word in self.words}


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


def recall_messages(
    db: sqlite3.Connection, key: int, session_id: str, prefixes: Sequence[str], limit: int, skip_tools: bool
) -> list[StoredMessage]:
    """Find evicted messages by prefixes of their words: for each prefix the newest `limit`.

    Messages that the index lacks are read. The index is asked for all prefixes at once, which costs little
    more than one prefix. If there are more matches than the query returned, only the prefixes with `limit`
    matches are complete, and the index is asked again for the others.
    """
    check_index(db)
    unindexed = _read_unindexed(db, key, skip_tools)
    matches = {p: _filter_matches(unindexed, p, limit) for p in dict.fromkeys(prefixes)}
    remaining = [p for p in matches if len(matches[p]) < limit]
    while remaining:
        batch = max(limit * len(remaining), _BATCH)
        newest = _query_index(db, key, remaining, batch, skip_tools)
        found = {p: _filter_matches(newest, p, limit) for p in remaining}
        complete = remaining if len(newest) < batch else [p for p in remaining if len(found[p]) == limit]
        if not complete:
            complete = remaining[:1]
            newest = _query_index(db, key, complete, limit * _BATCH, skip_tools)
            found = {complete[0]: _filter_matches(newest, complete[0], limit)}
        matches |= {p: (matches[p] + found[p])[:limit] for p in complete}
        remaining = [p for p in remaining if p not in complete]
    chosen = {match.position: match for of_prefix in matches.values() for match in of_prefix}
    rows = [
        (session_id, position, m.continuation_id, m.body, False) for position, m in sorted(chosen.items())
    ]
    return read_sound(lambda row: read_message(*row), rows)


def _filter_matches(matches: Sequence[_Match], prefix: str, limit: int) -> list[_Match]:
    wanted = normalize(prefix)
    first = wanted[:_PREFIX_LENGTH]
    is_short = len(first) < _PREFIX_LENGTH
    return [
        m
        for m in matches
        if (first in m.first_letters or is_short) and any(word.startswith(wanted) for word in m.words)
    ][:limit]


def _read_unindexed(db: sqlite3.Connection, key: int, skip_tools: bool) -> list[_Match]:
    """Return the evicted messages that the full-text index lacks, newest first."""
    [last_indexed] = db.execute(SQL["indexed"]).fetchone()
    found = []
    evicted = db.execute(SQL["evicted_messages"], {"session": key})
    for row, role, position, continuation_id, body, text in evicted:
        if row <= last_indexed:
            break
        if not (skip_tools and role == "tool"):
            found.append(_Match(position, continuation_id, body, text))
    return found


def _quote_place(key: int) -> str:
    """Return a full-text query for all messages of a session."""
    return f'("{key}said" OR "{key}tool")'


def _query_index(
    db: sqlite3.Connection, key: int, prefixes: Sequence[str], limit: int, skip_tools: bool
) -> list[_Match]:
    place = f'"{key}said"' if skip_tools else _quote_place(key)
    letters = dict.fromkeys(normalize(prefix)[:_PREFIX_LENGTH].replace('"', "") for prefix in prefixes)
    any_of = " OR ".join(f'"{first}" *' for first in letters)
    where = {"session": key, "words": f"place : {place} AND text : ({any_of})", "limit": limit}
    return [
        _Match(position, continuation_id, body, text)
        for position, continuation_id, body, text in db.execute(SQL["recall"], where)
    ]
