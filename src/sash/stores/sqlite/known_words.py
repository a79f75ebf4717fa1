"""The words of each session by their parts. They find the words that are written like another one."""

import json
import sqlite3
from collections.abc import Collection

from sash.memory.similar_words import MAX_COMPARED, list_parts
from sash.stores.sqlite.queries import SQL


def add_words(db: sqlite3.Connection, session: int, words: Collection[str]) -> None:
    """Add the words of a session that it does not have yet."""
    by_word = {word: parts for word in words if (parts := list_parts(word))}
    first = {word: parts[0] for word, parts in by_word.items()}
    where = {"session": session, "first_parts": json.dumps(first)}
    for (word,) in db.execute(SQL["unknown_words"], where).fetchall():
        rows = [(session, part, word) for part in by_word[word]]
        db.executemany(SQL["add_word_part"], rows)


def drop_words(db: sqlite3.Connection, session: int, words: Collection[str]) -> None:
    """Remove words of a session."""
    db.executemany(
        SQL["drop_word_part"], [(session, part, word) for word in words for part in list_parts(word)]
    )


def find_candidates(db: sqlite3.Connection, session: int | None, owner: str, word: str) -> list[str]:
    """Return the words that share the most parts with one: of a session, or of all sessions of an owner."""
    parts = list_parts(word)
    if not parts:
        return []
    where = {"session": session, "owner": owner, "parts": json.dumps(parts), "limit": MAX_COMPARED}
    name = "words_with_parts" if session is not None else "owner_words_with_parts"
    return [other for (other,) in db.execute(SQL[name], where)]
