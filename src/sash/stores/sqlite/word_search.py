"""Evicted messages by their words, in SQLite: from the full-text index, and those that it lacks so far."""

import sqlite3
from collections.abc import Sequence

from sash.memory.words import normalize, split_words
from sash.ports.store import StoredMessage
from sash.stores.sqlite import rows

# So many matches are looked at at once, most of the time all there are.
_LOOKED_AT = 32
# The letters by which the index has a list of words.
_PREFIX = 4


class _Match:
    """A message with its words, and the letters that they begin with."""

    __slots__ = ("body", "continuation_id", "firsts", "position", "words")

    def __init__(self, position: int, continuation_id: str | None, body: str, text: str | None) -> None:
        self.position = position
        self.continuation_id = continuation_id
        self.body = body
        self.words = split_words(text or "")
        self.firsts = {word[:_PREFIX] for word in self.words}


def recall_messages(
    db: sqlite3.Connection, key: int, session_id: str, beginnings: Sequence[str], limit: int, said: bool
) -> list[StoredMessage]:
    """Find evicted messages with words that begin so, for each beginning the newest.

    What the index does not have yet is read. In it all beginnings are looked up at once, as that costs little
    more than one; if the newest matches are too many to be all of them, they are those of the beginnings that
    have enough, and the others are looked up again.
    """
    unindexed = _unindexed(db, key, said)
    of = {b: _matching(unindexed, b, limit) for b in dict.fromkeys(beginnings)}
    waiting = [b for b in of if len(of[b]) < limit]
    while waiting:
        most = max(limit * len(waiting), _LOOKED_AT)
        newest = _newest_matches(db, key, waiting, most, said)
        found = {b: _matching(newest, b, limit) for b in waiting}
        settled = waiting if len(newest) < most else [b for b in waiting if len(found[b]) == limit]
        if not settled:
            settled = waiting[:1]
            newest = _newest_matches(db, key, settled, limit * _LOOKED_AT, said)
            found = {settled[0]: _matching(newest, settled[0], limit)}
        of |= {b: (of[b] + found[b])[:limit] for b in settled}
        waiting = [b for b in waiting if b not in settled]
    chosen = {match.position: match for matches in of.values() for match in matches}
    return [
        rows.read_message(session_id, position, m.continuation_id, m.body, in_window=False)
        for position, m in sorted(chosen.items())
    ]


def _matching(matches: Sequence[_Match], beginning: str, limit: int) -> list[_Match]:
    wanted = normalize(beginning)
    first = wanted[:_PREFIX]
    return [
        m
        for m in matches
        if (first in m.firsts or len(first) < _PREFIX) and any(word.startswith(wanted) for word in m.words)
    ][:limit]


def _unindexed(db: sqlite3.Connection, key: int, said: bool) -> list[_Match]:
    """Read the evicted messages that the index does not have yet, newest first."""
    [indexed] = db.execute(rows.SQL["indexed"]).fetchone()
    found = []
    evicted = db.execute(rows.SQL["evicted_messages"], {"session": key})
    for row, role, position, continuation_id, body, text in evicted:
        if row <= indexed:
            break
        if not (said and role == "tool"):
            found.append(_Match(position, continuation_id, body, text))
    return found


def _newest_matches(
    db: sqlite3.Connection, key: int, beginnings: Sequence[str], limit: int, said: bool
) -> list[_Match]:
    place = f'"{key}said"' if said else f'("{key}said" OR "{key}tool")'
    letters = dict.fromkeys(normalize(beginning)[:_PREFIX].replace('"', "") for beginning in beginnings)
    any_of = " OR ".join(f'"{first}" *' for first in letters)
    where = {"session": key, "words": f"place : {place} AND text : ({any_of})", "limit": limit}
    return [
        _Match(position, continuation_id, body, text)
        for position, continuation_id, body, text in db.execute(rows.SQL["recall"], where)
    ]
