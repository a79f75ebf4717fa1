"""The rules of session names: an active session reserves its name."""

from collections.abc import Iterable
from dataclasses import replace

from sash.errors import SessionExists
from sash.stores.states import OpenChange
from sash.values.sessions import Session


def get_reserved_name(session: Session) -> str | None:
    """Return the name that no other active session may have, or None if the session is not active."""
    return session.name if session.status == "active" else None


def choose_named(sessions: Iterable[Session]) -> Session | None:
    """Return the session that has a name, of all sessions with this name: the active one, else the newest.

    Return None if there is no session. SQLite's statement `session_of_name` repeats this rule, because an
    index answers it without a scan.
    """
    return max(sessions, key=lambda session: (session.status == "active", session.id), default=None)


def is_name_taken(session: Session, named: Session | None) -> bool:
    """Return True if `session` reserves its name, but `named` is another active session with that name."""
    if get_reserved_name(session) is None or named is None:
        return False
    return named.status == "active" and named.id != session.id


def check_name(session: Session, named: Session | None) -> None:
    """Raise `SessionExists` if `named` is another active session with the name of `session`."""
    if is_name_taken(session, named):
        raise SessionExists(
            f"an active session already has the name {session.name!r}: continue that session, or end it first"
        )


def open_session(session: Session, named: Session | None, reopen: bool) -> OpenChange:
    """Return the session that opens a name, given `named`, the session that has the name now.

    An active `named` is returned. An expired `named` becomes active again if `reopen` is set. Otherwise
    `session` is returned, and it counts the turns of the sessions before it.
    """
    if named is None:
        return OpenChange(session, "insert")
    if named.status == "active":
        return OpenChange(named, None)
    if named.status == "expired" and reopen:
        return OpenChange(replace(named, status="active"), "update")
    return OpenChange(replace(session, turns_before=named.total_turns), "insert")


def prepare_import(session: Session, named: Session | None) -> Session:
    """Return the session as an import stores it: without its name, if another session has the name."""
    return replace(session, name=None) if is_name_taken(session, named) else session
