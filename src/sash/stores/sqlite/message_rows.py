"""The transcript, the window, vectors and artifacts as rows of SQLite."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import Json, Strict

from sash.memory.window import Reason
from sash.ports.store import FIRST_MESSAGES, Artifact, StoredMessage, Vector
from sash.ports.turns import Cut, Evicted
from sash.stores.rules import message_rules, record_errors
from sash.stores.sqlite.columns import Text, read_columns
from sash.stores.sqlite.damaged_rows import read_sound
from sash.stores.sqlite.full_text_index import make_index_text, replace_known_words
from sash.stores.sqlite.queries import SQL
from sash.stores.sqlite.session_rows import find_key, touch_session, write_digest
from sash.values import window_stats
from sash.values.bounds import Natural
from sash.values.codec import decode, encode
from sash.values.continuations import ArtifactRef
from sash.values.messages import ConversationWindow, MessageEntry
from sash.values.sessions import Session
from sash.values.window_stats import MAX_SUMMED_TAGS, WindowStats, WindowTotals


class WindowCut(NamedTuple):
    """The last cut of a window. `evicted_count` counts the messages that all cuts have evicted.

    The window contains every message from position `window_from` on, and the kept ones before it.
    """

    turn_starts: tuple[str, ...]
    evicted: tuple[Evicted, ...]
    evicted_count: int
    window_from: int


class _CutColumns(NamedTuple):
    """The columns of the query `cut`."""

    turn_starts: Json[tuple[str, ...]]
    evicted: Json[tuple[tuple[str, Reason], ...]]
    evicted_count: Natural
    window_from: Natural
    kept: Json[tuple[Natural, ...]]


class _MessageColumns(NamedTuple):
    """The columns of a message, in the order of the queries."""

    session_id: Text
    position: Natural
    continuation_id: Text | None
    body: Any
    in_window: bool


class _WindowColumns(NamedTuple):
    """The columns of the query `window_counts`."""

    message_count: Natural
    current_tokens: Natural
    max_tokens: Natural | None
    evicted_count: Natural


class _ArtifactColumns(NamedTuple):
    """The columns of an artifact, in the order of the queries."""

    ref: Any
    session_id: Text
    owner: Text
    data: Annotated[bytes, Strict()]


class _VectorColumns(NamedTuple):
    """The columns of the query `vectors`."""

    position: Natural
    model: Text
    data: Annotated[bytes, Strict()]


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
    db: sqlite3.Connection, key: int, session_id: str, after: int, limit: int, tags: Collection[str] = ()
) -> list[StoredMessage]:
    where = {"session": key, "after": after, "limit": limit}
    if tags:
        rows = db.execute(SQL["tagged_messages"], where | {"tags": json.dumps(list(tags))})
    else:
        rows = db.execute(SQL["messages"], where)
    return [read_message(session_id, *row) for row in rows]


def list_messages_at(
    db: sqlite3.Connection, key: int, session_id: str, positions: Collection[int]
) -> list[StoredMessage]:
    """Return the messages at some positions, in order. Damaged ones are left out."""
    rows = db.execute(SQL["messages_at"], {"session": key, "positions": json.dumps(list(positions))})
    return read_sound(lambda row: read_message(session_id, *row), rows)


def list_messages_before(
    db: sqlite3.Connection,
    key: int,
    session_id: str,
    after: int,
    before: int,
    limit: int,
    tags: Collection[str] = (),
) -> list[StoredMessage]:
    """Return the last messages between two positions, in order."""
    query = SQL["tagged_messages_before" if tags else "messages_before"]
    where = {"session": key, "after": after, "before": before, "limit": limit}
    newest_first = db.execute(query, where | ({"tags": json.dumps(list(tags))} if tags else {}))
    return [read_message(session_id, *row) for row in newest_first][::-1]


def list_first_texts(
    db: sqlite3.Connection, owner: str, session_ids: Collection[str], max_chars: int
) -> dict[str, str]:
    """Return the beginning of the first user message of each session, by session id."""
    where = {"owner": owner, "ids": json.dumps(list(session_ids)), "last": FIRST_MESSAGES}
    rows = db.execute(SQL["first_user_messages"], where)
    texts = read_sound(lambda row: (row[0], decode(MessageEntry, row[1]).text[:max_chars]), rows)
    return {session_id: text for session_id, text in texts if text}


def read_message(*row: Any) -> StoredMessage:
    """Read the id of a session, a position, the id of a turn, a message, and whether the window has it."""
    found = read_columns(_MessageColumns, row)
    message = decode(MessageEntry, found.body)
    return StoredMessage(found.session_id, found.position, message, found.in_window, found.continuation_id)


def find_messages(
    db: sqlite3.Connection, key: int, session_id: str, message_ids: Collection[str]
) -> list[StoredMessage]:
    rows = db.execute(SQL["messages_by_id"], {"session": key, "ids": json.dumps(list(message_ids))})
    return read_sound(lambda row: read_message(session_id, *row), rows)


def find_position(db: sqlite3.Connection, key: int, session_id: str, message_id: str) -> int:
    """Return the position of a message. This reads the transcript, so it is no work for the writer."""
    row = db.execute(SQL["message_position"], {"session": key, "id": message_id}).fetchone()
    if row is None:
        record_errors.raise_message_not_found(session_id, message_id)
    return int(row[0])


def tag_message(
    db: sqlite3.Connection, session: Session, position: int, tags: frozenset[str], now: datetime
) -> tuple[Session, StoredMessage]:
    key = find_key(db, session.owner, session.id)
    [stored] = list_messages(db, key, session.id, position - 1, 1)
    changed, message = message_rules.tag_message(session, stored.message, tags, now)
    db.execute(SQL["tag_message"], {"session": key, "position": position, "body": encode(message)})
    touch_session(db, key, changed)
    return changed, replace(stored, message=message)


def find_answer(db: sqlite3.Connection, continuation_id: str) -> StoredAnswer | None:
    row = db.execute(SQL["answer"], {"id": continuation_id}).fetchone()
    return None if row is None else StoredAnswer(*row)


def replace_answer(
    db: sqlite3.Connection,
    stored: StoredAnswer,
    continuation_id: str,
    old: MessageEntry,
    answer: MessageEntry,
) -> None:
    """Replace the last message of a turn, and delete its vector, which no longer fits."""
    amended = {"row": stored.row, "body": encode(answer), "index_text": make_index_text(answer.text)}
    db.execute(SQL["amend_message"], amended)
    replace_known_words(db, stored.session, stored.row, old.text, answer.text)
    where = {"session": stored.session, "position": stored.position, "id": continuation_id}
    db.execute(SQL["drop_vector"], where)


def get_window(db: sqlite3.Connection, session: Session) -> ConversationWindow:
    key = find_key(db, session.owner, session.id)
    cut = get_cut(db, key)
    rows = db.execute(SQL["window"], {"session": key})
    found = (decode(MessageEntry, body) for _, body in rows)
    return message_rules.make_window(session, found, cut.turn_starts, cut.evicted_count)


def sum_windows(db: sqlite3.Connection, owner: str) -> WindowTotals:
    """Return the sums of the windows of an owner's active sessions. Damaged rows count as 0."""
    rows = db.execute(SQL["window_counts"], {"owner": owner})
    counts = read_sound(lambda row: read_columns(_WindowColumns, row), rows)
    tags = db.execute(SQL["window_tags"], {"owner": owner, "limit": MAX_SUMMED_TAGS})
    return window_stats.sum_windows(
        (WindowStats(n, tokens, limit, evicted_count=gone) for n, tokens, limit, gone in counts),
        {str(tag): count for tag, count in tags},
    )


def get_cut(db: sqlite3.Connection, key: int) -> WindowCut:
    row = db.execute(SQL["cut"], {"session": key}).fetchone()
    turn_starts, evicted, evicted_count, window_from, _ = read_columns(_CutColumns, row or ())
    last = tuple(Evicted(*item) for item in evicted)
    return WindowCut(turn_starts, last, evicted_count, window_from)


def apply_cut(db: sqlite3.Connection, key: int, cut: Cut, now: datetime) -> None:
    """Remove the evicted messages from the window, and write the new digest."""
    last = get_cut(db, key)
    shown = db.execute(SQL["window"], {"session": key})
    positions = {decode(MessageEntry, body).id: position for position, body in shown}
    change = message_rules.cut_window(positions, last.evicted_count, cut)
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


def add_vectors(
    db: sqlite3.Connection, key: int, vectors: Sequence[Vector], keep: int, replace_all: bool
) -> None:
    if replace_all:
        db.execute(SQL["drop_vectors"], {"session": key, "keep": 0})
    values = [(key, v.position, v.model, v.data) for v in vectors]
    db.executemany(SQL["insert_vector"], values)
    db.execute(SQL["drop_vectors"], {"session": key, "keep": keep})


def list_vectors(db: sqlite3.Connection, key: int, model: str | None, limit: int | None) -> list[Vector]:
    where = {"session": key, "model": model, "limit": -1 if limit is None else limit}
    newest_first = db.execute(SQL["vectors"], where)
    return read_sound(lambda row: Vector(*read_columns(_VectorColumns, row)), newest_first)[::-1]


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
        record_errors.raise_artifact_not_found(artifact_id)
    return _read_artifact(row)


def list_artifacts(db: sqlite3.Connection, key: int) -> list[Artifact]:
    return list(map(_read_artifact, db.execute(SQL["artifacts"], {"session": key})))


def _read_artifact(row: Sequence[Any]) -> Artifact:
    found = read_columns(_ArtifactColumns, row)
    return Artifact(decode(ArtifactRef, found.ref), found.session_id, found.owner, found.data)
