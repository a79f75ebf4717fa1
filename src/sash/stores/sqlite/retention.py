"""Deletes what retention ends: inactive sessions, and artifacts that nothing refers to."""

import sqlite3
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple

from sash.stores.rules import retention_rules
from sash.stores.sqlite import hidden_sessions, spent_rows, turns
from sash.stores.sqlite import session_rows as sessions
from sash.stores.sqlite.damaged_rows import change_sound
from sash.stores.sqlite.queries import SQL
from sash.values.ids import ulid_before


class DeletionTimes(NamedTuple):
    """A session is deleted if it is inactive and has not changed since one of these times.

    `delete_before` is for ordinary sessions, `ended_before` for those that had one question.
    """

    ended_before: datetime
    delete_before: datetime | None


def list_inactive(db: sqlite3.Connection, owner: str | None, times: DeletionTimes) -> list[tuple[str, str]]:
    """Return the owners and ids of the sessions to delete; `owner` None means all owners."""
    ended_before, delete_before = times
    where = {
        "owner": owner,
        "ended_before": ended_before.timestamp(),
        "delete_before": delete_before and delete_before.timestamp(),
    }
    return [(of, session_id) for of, session_id in db.execute(SQL["inactive_sessions"], where)]


def hide_inactive(
    db: sqlite3.Connection, found: Collection[tuple[str, str]], times: DeletionTimes, now: datetime
) -> list[int]:
    """Hide those of the sessions that are still to be deleted, and return their keys."""

    def hide(place: tuple[str, str]) -> list[int]:
        owner, session_id = place
        if not retention_rules.may_delete(sessions.get_session(db, owner, session_id), *times):
            return []
        keep_costs(db, owner, session_id, now)
        return hidden_sessions.hide_session(db, owner, session_id)

    return [key for keys in change_sound(db, hide, found) for key in keys]


def keep_costs(db: sqlite3.Connection, owner: str, session_id: str | None, now: datetime) -> None:
    """Keep what the turns cost that will be deleted, with the costs so far of running turns."""
    turns.interrupt_running(db, owner, session_id, now)
    spent_rows.keep_costs(db, owner, session_id)


def list_old_artifacts(db: sqlite3.Connection, before: datetime) -> list[str]:
    """Return the ids of artifacts from before `before`."""
    rows = db.execute(SQL["old_artifacts"], {"before": ulid_before(before)})
    return [artifact_id for [artifact_id] in rows]


def is_in_a_turn(db: sqlite3.Connection, artifact_id: str) -> bool:
    """Return True if the result of a turn names the artifact. A turn is kept as long as its session."""
    return bool(db.execute(SQL["is_artifact_in_a_turn"], {"id": artifact_id}).fetchone()[0])


def delete_unused(db: sqlite3.Connection, artifact_ids: Collection[str]) -> Iterator[int]:
    """Delete those of the artifacts that no turn, step or message names, in steps. Yield the count so far."""
    count = 0
    for artifact_id in artifact_ids:
        count += db.execute(SQL["delete_unused_artifact"], {"id": artifact_id}).rowcount
        yield count
