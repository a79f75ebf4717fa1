"""The full-text index of all messages. It can be computed again, so a damaged index is emptied and filled."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import accumulate

from sash.errors import SashError, StoreUnavailable
from sash.memory.similar_words import list_known_words
from sash.memory.words import split_index_words
from sash.stores.sqlite.known_words import add_words, drop_words
from sash.stores.sqlite.queries import SQL, read_script
from sash.values.codec import decode
from sash.values.messages import MessageEntry

CHARS_PER_STEP = 1 << 14
MERGED_PAGES = 500
# Of texts with these signs alone SQLite makes the same words as `split_words`: Latin letters and punctuation.
# It takes signs that it does not know, such as most emoji, for letters, and a NUL for the end.
_split_by_sqlite = re.compile(
    r"[\x01-\xb4\xb6-\u017e\u0300-\u0304\u0306-\u030c\u2000-\u2064\u20a0-\u20b9\u2190-\u23f3]*"
)


class DamagedIndex(StoreUnavailable):
    """The full-text index cannot be read. All other data can."""


def is_index_damaged(error: Exception) -> bool:
    """Return True for an error of the full-text index alone."""
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, DamagedIndex)
    # A plain constraint has no table: the index refuses a row that it should have.
    codes = (sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_CONSTRAINT)
    return getattr(error, "sqlite_errorcode", None) in codes or "fts5" in str(error)


def empty_index(db: sqlite3.Connection) -> None:
    """Replace the tables of the index by those of an empty index. SQLite cannot drop a damaged one."""
    db.executescript(read_script("empty_index"))


def index_messages(db: sqlite3.Connection) -> Iterator[None]:
    """Add all messages that the full-text index lacks to the index, in steps."""
    check_index(db)
    while rows := db.execute(SQL["unindexed"]).fetchall():
        sizes = accumulate(size or 0 for _, size in rows)
        count = sum(total <= CHARS_PER_STEP for total in sizes)
        last = rows[max(1, count) - 1][0]
        _prepare_texts(db, last)
        db.execute(SQL["index_messages"], (last,))
        db.execute(SQL["set_indexed"], (last,))
        yield


def count_unindexed(db: sqlite3.Connection) -> int:
    """Return about how many messages the index lacks."""
    [count] = db.execute(SQL["count_unindexed"]).fetchone()
    return count if isinstance(count, int) else 0


def make_index_text(text: str) -> str | None:
    """Return the text that the index stores for another one, or None for the text itself."""
    return None if _split_by_sqlite.fullmatch(text) else " ".join(split_index_words(text))


def read_text(text: str | None, body: str | None) -> str:
    """Return the text of a message. `body` is the whole message if it may have a NUL, where `text` ends."""
    if body is None:
        return text or ""
    try:
        return decode(MessageEntry, body).text
    except SashError:
        return text or ""


def replace_known_words(db: sqlite3.Connection, session: int, row: int, old: str, new: str) -> None:
    """Replace the words that can be found as similar words, after the text of a message has changed.

    A word stays if another message of the session has it. If the index lacks the message, its words are not
    known yet.
    """
    if not db.execute(SQL["has_known_words"], (row,)).fetchone():
        return
    known = {*list_known_words(new)}
    add_words(db, session, known)
    queries = {word: quote_search(session, [word]) for word in list_known_words(old) if word not in known}
    drop_words(
        db,
        session,
        [w for w, query in queries.items() if not db.execute(SQL["has_words"], (query,)).fetchone()],
    )


def quote_search(key: int | None, forms: Collection[str]) -> str:
    """Return a full-text query for the forms of a word in a session, or in all sessions."""
    any_of = " OR ".join(map(_quote_form, forms))
    return f'place : "{"" if key is None else key}said" AND text : ({any_of})'


def _quote_form(form: str) -> str:
    """Return a full-text query for a form of a word: "boil*" is the beginning of a word."""
    word = form.rstrip("*").replace('"', "").replace("\0", "")
    return f'"{word}" *' if form.endswith("*") else f'"{word}"'


def _prepare_texts(db: sqlite3.Connection, last: int) -> None:
    """Write what the index needs of the messages up to a row: texts of other scripts, and new words."""
    words: defaultdict[int, set[str]] = defaultdict(set)
    for row, session, is_said, has_index_text, text, body in db.execute(
        SQL["texts_to_index"], (last,)
    ).fetchall():
        whole = read_text(text, body)
        if not has_index_text and (index_text := make_index_text(whole)) is not None:
            db.execute(SQL["set_index_text"], (index_text, row))
        if is_said:
            words[session].update(list_known_words(whole))
    for session, said in words.items():
        add_words(db, session, said)


def check_index(db: sqlite3.Connection) -> None:
    """Raise `DamagedIndex` if the number of the last indexed message is damaged, or if the index lacks it."""
    check_indexed_row(db)
    last = db.execute(SQL["last_indexed"]).fetchone()
    if last is not None and db.execute(SQL["is_indexed"], last).fetchone() is None:
        raise DamagedIndex("the full-text index lacks messages")


def check_indexed_row(db: sqlite3.Connection) -> None:
    """Raise `DamagedIndex` if the number of the last indexed message is damaged. This check is quick."""
    if db.execute(SQL["is_indexed_sound"]).fetchone() != (1,):
        raise DamagedIndex("the number of the last indexed message is damaged")


def merge_index(db: sqlite3.Connection) -> None:
    """Merge some segments of the full-text index, because a search is faster in few segments."""
    db.execute(SQL["merge_index"], (MERGED_PAGES,))
