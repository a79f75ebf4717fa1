"""The transcript, the window, vectors and artifacts as rows of SQLite."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from sash.ports.store import Artifact, StoredMessage, Vector
from sash.ports.turns import Cut, Evicted
from sash.stores import rules
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.session_rows import find_key, write_digest
from sash.values.codec import decode, encode
from sash.values.continuations import ArtifactRef
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import Session

CHARS_PER_STEP = 1 << 16
MERGED_PAGES = 500

# The ids and positions of the messages in the window.
_WINDOW_IDS = f"SELECT json_extract(body, '$.id'), position FROM ({SQL['window']})"


class WindowCut(NamedTuple):
    """The last cut of a window. `evicted_count` counts the messages that all cuts have evicted.

    The window contains every message from position `window_from` on, and the kept ones before it.
    """

    turn_starts: tuple[str, ...]
    evicted: tuple[Evicted, ...]
    evicted_count: int
    window_from: int


class StoredAnswer(NamedTuple):
    """The last message of a turn, with its row number and its position."""

    row: int
    body: str
    session: int
    position: int


def insert_messages(
    db: sqlite3.Connection,
    key: int,
    continuation_id: str | None,
    messages: Iterable[tuple[int, MessageEntry]],
) -> None:
    """Insert messages, given as pairs of position and message. `key` is the key of the session."""
    rows = [(key, position, continuation_id, encode(message)) for position, message in messages]
    db.executemany(SQL["insert_message"], rows)


def list_messages(
    db: sqlite3.Connection, key: int, session_id: str, after: int, limit: int
) -> list[StoredMessage]:
    rows = db.execute(SQL["messages"], {"session": key, "after": after, "limit": limit})
    return [read_message(session_id, *row) for row in rows]


def read_message(
    session_id: str, position: int, continuation_id: str | None, body: str, in_window: int
) -> StoredMessage:
    message = decode(MessageEntry, body)
    return StoredMessage(session_id, position, message, bool(in_window), continuation_id)


def find_answer(db: sqlite3.Connection, continuation_id: str) -> StoredAnswer | None:
    row = db.execute(SQL["answer"], {"id": continuation_id}).fetchone()
    return None if row is None else StoredAnswer(*row)


def replace_answer(
    db: sqlite3.Connection, stored: StoredAnswer, continuation_id: str, answer: MessageEntry
) -> None:
    """Replace the last message of a turn, and delete the turn's vector, which no longer fits."""
    db.execute(SQL["amend_message"], {"row": stored.row, "body": encode(answer)})
    where = {"session": stored.session, "position": stored.position, "id": continuation_id}
    db.execute(SQL["drop_vector"], where)


def index_messages(db: sqlite3.Connection) -> Iterator[None]:
    """Add all messages that the full-text index lacks to the index, in steps."""
    while rows := db.execute(SQL["unindexed"]).fetchall():
        sizes = accumulate(size for _, size in rows)
        count = sum(total <= CHARS_PER_STEP for total in sizes)
        last = rows[max(1, count) - 1][0]
        db.execute(SQL["index_messages"], (last,))
        db.execute(SQL["set_indexed"], (last,))
        yield


def merge_index(db: sqlite3.Connection) -> None:
    """Merge some segments of the full-text index, because a search is faster in few segments."""
    db.execute(SQL["merge_index"], (MERGED_PAGES,))


def get_window(db: sqlite3.Connection, session: Session) -> ConversationWindow:
    key = find_key(db, session.owner, session.id)
    cut = get_cut(db, key)
    rows = db.execute(SQL["window"], {"session": key})
    found = (decode(MessageEntry, body) for _, body in rows)
    return rules.make_window(session, found, cut.turn_starts, cut.evicted_count)


def get_cut(db: sqlite3.Connection, key: int) -> WindowCut:
    turn_starts, evicted, *counts = db.execute(SQL["cut"], {"session": key}).fetchone()
    last = tuple(Evicted(*item) for item in json.loads(evicted))
    return WindowCut(tuple(json.loads(turn_starts)), last, *counts)


def apply_cut(db: sqlite3.Connection, key: int, cut: Cut, now: datetime) -> None:
    """Remove the evicted messages from the window, and write the new digest."""
    positions = dict(db.execute(_WINDOW_IDS, {"session": key}).fetchall())
    last = get_cut(db, key)
    change = rules.cut_window(positions, last.evicted_count, cut)
    new = WindowCut(cut.turn_starts, cut.evicted, change.evicted_count, last.window_from)
    write_cut(db, key, new, change.evicted.values(), change.kept.values())
    write_digest(db, key, cut.digest, now)


def write_cut(
    db: sqlite3.Connection, key: int, cut: WindowCut, evicted: Iterable[int], kept: Iterable[int]
) -> None:
    """Write a cut. `evicted` and `kept` are the positions of the messages that it evicts and keeps."""
    window_from = max((cut.window_from, *(position + 1 for position in evicted)))
    db.execute(
        SQL["move_cut"],
        {
            "session": key,
            "window_from": window_from,
            "kept": json.dumps([position for position in kept if position < window_from]),
            "turn_starts": json.dumps(cut.turn_starts),
            "evicted": json.dumps([(e.message_id, e.reason) for e in cut.evicted]),
            "evicted_count": cut.evicted_count,
        },
    )


def add_vectors(db: sqlite3.Connection, key: int, vectors: Sequence[Vector], keep: int) -> None:
    values = [(key, v.position, v.model, v.data) for v in vectors]
    db.executemany(SQL["insert_vector"], values)
    db.execute(SQL["drop_vectors"], {"session": key, "keep": keep})


def list_vectors(db: sqlite3.Connection, key: int) -> list[Vector]:
    return [Vector(*row) for row in db.execute(SQL["vectors"], {"session": key})]


def insert_artifact(db: sqlite3.Connection, key: int, artifact: Artifact) -> None:
    db.execute(
        SQL["insert_artifact"],
        {
            "id": artifact.ref.id,
            "session": key,
            "owner": artifact.owner,
            "ref": encode(artifact.ref),
            "data": artifact.data,
        },
    )


def get_artifact(db: sqlite3.Connection, owner: str, artifact_id: str) -> Artifact:
    row = db.execute(SQL["artifact"], {"id": artifact_id, "owner": owner}).fetchone()
    if row is None:
        rules.raise_artifact_not_found(artifact_id)
    return _read_artifact(row)


def list_artifacts(db: sqlite3.Connection, key: int) -> list[Artifact]:
    return list(map(_read_artifact, db.execute(SQL["artifacts"], {"session": key})))


def _read_artifact(row: Sequence[Any]) -> Artifact:
    ref, session_id, owner, data = row
    return Artifact(decode(ArtifactRef, ref), session_id, owner, data)
