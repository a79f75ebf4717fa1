"""Whole sessions on SQLite, for export and import."""

import sqlite3
from collections.abc import Iterator

from sash.ports.store import Bundle
from sash.stores.rules import record_errors, session_names
from sash.stores.rules.spent_rules import drop_bundle_prices
from sash.stores.sqlite import continuation_rows as continuations
from sash.stores.sqlite import message_rows as messages
from sash.stores.sqlite import session_rows as sessions
from sash.stores.sqlite import waiting_rows
from sash.stores.sqlite.continuation_rows import Ending
from sash.stores.sqlite.full_text_index import index_messages
from sash.stores.sqlite.message_rows import WindowCut
from sash.stores.sqlite.queries import SQL
from sash.values.sessions import Session

NO_LIMIT = -1


def read_bundle(db: sqlite3.Connection, owner: str, session_id: str) -> Bundle:
    """Return a session with all its records, except its vectors."""
    session = sessions.get_session(db, owner, session_id)
    key = sessions.find_key(db, owner, session_id)
    cut = messages.get_cut(db, key)
    return Bundle(
        session=session,
        continuations=tuple(continuations.list_continuations(db, key)),
        steps=tuple(continuations.list_events(db, key, 0, NO_LIMIT)),
        messages=tuple(messages.list_messages(db, key, session_id, 0, NO_LIMIT)),
        artifacts=tuple(messages.list_artifacts(db, key)),
        turn_starts=cut.turn_starts,
        evicted=cut.evicted,
        evicted_count=cut.evicted_count,
        waiting_turns=tuple(waiting_rows.list_waiting_turns(db, owner, session_id)),
    )


def insert_bundle(db: sqlite3.Connection, bundle: Bundle, keys: list[int]) -> Iterator[Session]:
    """Insert a session with all its records, in steps. The last step shows the session and yields it.

    The key of the session is added to `keys`. Raise `SessionExists` if an id is taken.
    """
    key = sessions.insert_session(db, bundle.session, is_hidden=True)
    keys.append(key)
    try:
        for _ in _insert_records(db, key, drop_bundle_prices(bundle)):
            yield bundle.session
    except sqlite3.IntegrityError:
        record_errors.raise_parts_exist(bundle.session.id)
    session = session_names.prepare_import(bundle.session, sessions.find_named(db, bundle.session))
    sessions.show_session(db, session)
    yield session


def _insert_records(db: sqlite3.Connection, key: int, bundle: Bundle) -> Iterator[None]:
    last_position = {m.continuation_id: m.position for m in bundle.messages}
    for c in bundle.continuations:
        ending = Ending(c.response, c.error, c.artifacts, c.stats)
        continuations.insert_continuation(
            db, key, c, first_cursor=0, ending=ending, answer_position=last_position.get(c.id)
        )
        yield
    for stored in bundle.steps:
        continuations.insert_steps(db, key, stored.continuation_id, (stored.step,))
        yield
    for m in bundle.messages:
        messages.insert_messages(db, key, m.continuation_id, ((m.position, m.message),))
        yield
    for artifact in bundle.artifacts:
        messages.insert_artifact(db, key, artifact)
        yield
    for waiting_turn in bundle.waiting_turns:
        waiting_rows.insert_waiting_turn(db, key, waiting_turn)
    evicted = [m.position for m in bundle.messages if not m.in_window]
    kept = [m.position for m in bundle.messages if m.in_window]
    cut = WindowCut(bundle.turn_starts, bundle.evicted, bundle.evicted_count, window_from=1)
    messages.write_cut(db, key, cut, evicted, kept)
    db.execute(SQL["set_positions"], {"session": key, "positions": len(bundle.messages)})
    db.execute(SQL["keep_cursor"], {"session": key})
    yield from index_messages(db)
