"""The rules of retention, once for all backends: pure functions without I/O."""

from datetime import datetime

from sash.values.ids import ulid_before
from sash.values.sessions import Session


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
