"""The rules of retention: what lists show, what expires, and what a sweep drops."""

from datetime import datetime

from sash.values.continuations import FINAL, Status
from sash.values.ids import ulid_before
from sash.values.sessions import Session, SessionStatus


def is_listed(session: Session) -> bool:
    """Return True if lists show the session. SQLite's statement `sessions` repeats this rule."""
    return session.status == "active" or not session.is_one_question


def may_delete(session: Session, ended_before: datetime, delete_before: datetime | None) -> bool:
    """Return True if a sweep deletes this session, which is ended or expired.

    SQLite's statement `inactive_sessions` repeats this rule.
    """
    before = ended_before if session.is_one_question else delete_before
    return session.status != "active" and before is not None and session.updated_at < before


def is_old_artifact(artifact_id: str, before: datetime) -> bool:
    """Return True if an artifact was created before `before`. Its id begins with the time."""
    return artifact_id < ulid_before(before)


def is_forgotten(status: Status, updated_at: datetime, worker: str | None, before: datetime) -> bool:
    """Return True if an open continuation without a worker has not changed since `before`."""
    return status not in FINAL and updated_at < before and worker is None


def may_drop_steps(status: Status, updated_at: datetime, before: datetime) -> bool:
    """Return True if a continuation ended before the time `before`, so that a sweep drops its steps."""
    return status in FINAL and updated_at < before


def is_idle(status: SessionStatus, updated_at: datetime, holder_count: int, before: datetime) -> bool:
    """Return True if an active session has not changed since `before`.

    `holder_count` is the number of turns that hold it, and of its waiting turns: then it is not idle.
    """
    return status == "active" and updated_at < before and not holder_count
