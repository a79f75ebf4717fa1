"""The rules of session versions: each change of a session gets the next version."""

from dataclasses import replace
from datetime import datetime

from sash.errors import SessionChanged
from sash.stores.rules.session_names import check_name
from sash.values.sessions import Session, SessionStatus


def save_session(stored: Session, changed: Session, named: Session | None, now: datetime) -> Session:
    """Return the changed session with a new version. Raise `SessionChanged` or `SessionExists`."""
    check_version(stored.version, changed)
    check_name(changed, named)
    return touch_session(changed, now)


def touch_session(session: Session, now: datetime) -> Session:
    """Return the session with the next version, changed at `now`."""
    return replace(session, version=session.version + 1, updated_at=now)


def check_version(stored_version: int, session: Session) -> None:
    """Raise `SessionChanged` if the stored session has changed since the caller read `session`."""
    if stored_version != session.version:
        raise SessionChanged(
            f"session {session.id} has changed since it was read: read it again and repeat the change",
            session_id=session.id,
        )


def expire_session(version: int) -> tuple[SessionStatus, int]:
    """Return the status "expired" and the next version."""
    return "expired", version + 1
