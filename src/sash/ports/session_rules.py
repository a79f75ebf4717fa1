"""Rules about sessions that the engine and the stores share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sash.errors import NotesChanged, SashError, SessionChanged, SessionEnded, TooManyTurns
from sash.ports.store import Store
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import Session

T = TypeVar("T")

MAX_ATTEMPTS = 20
# An operator can allow this many turns of one session at the same time.
MAX_OPEN_TURNS = 100
MAX_PENDING_PER_SESSION = 32
MAX_PENDING_PER_OWNER = 256


def check_active(session: Session) -> None:
    """Raise `SessionEnded` if the session is not active."""
    if session.status != "active":
        raise SessionEnded(
            f"session {session.id} is {session.status}: start a new session, or fork this one",
            session_id=session.id,
        )


def check_queue(session_id: str, pending_count: int, owner_pending_count: int) -> None:
    """Raise `TooManyTurns` if the queue of the session or of its owner is full."""
    if pending_count >= MAX_PENDING_PER_SESSION:
        raise TooManyTurns(
            f"{MAX_PENDING_PER_SESSION} turns of session {session_id} wait, the maximum: send the message "
            "again when one of them has ended, or cancel some",
            session_id=session_id,
            limit=MAX_PENDING_PER_SESSION,
        )
    if owner_pending_count >= MAX_PENDING_PER_OWNER:
        raise TooManyTurns(
            f"{MAX_PENDING_PER_OWNER} turns of your sessions wait, the maximum: send the message again when "
            "one of them has ended, or cancel some",
            limit=MAX_PENDING_PER_OWNER,
        )


async def change_session(
    store: Store, owner: str, session_id: str, change: Callable[[Session], Session]
) -> Session:
    """Read a session, change it, save it and return it.

    If `change` returns the same object, nothing is saved. If another caller changes the session meanwhile,
    read it again and repeat `change`.
    """

    async def attempt() -> Session:
        session = await store.get_session(owner, session_id)
        changed = change(session)
        return session if changed is session else await store.save_session(changed)

    return await retry_on_change(session_id, attempt)


async def change_owner_notes(
    store: Store, owner: str, change: Callable[[OwnerNotes], OwnerNotes], *, asked_in: str | None = None
) -> OwnerNotes:
    """Read the notes of an owner, change them, save them and return them, as `change_session` does.

    With `asked_in`, raise `SessionNotFound` if the session with this id was deleted.
    """

    async def attempt() -> OwnerNotes:
        notes = await store.owner_notes(owner)
        changed = change(notes)
        return notes if changed is notes else await store.save_owner_notes(changed, asked_in=asked_in)

    return await _repeat(attempt, NotesChanged("other callers keep changing your notes: try again"))


async def retry_on_change(session_id: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt`. Repeat it up to `MAX_ATTEMPTS` times if it raises `SessionChanged`."""
    message = f"other callers keep changing session {session_id}: try again"
    return await _repeat(attempt, SessionChanged(message, session_id=session_id))


async def _repeat(attempt: Callable[[], Awaitable[T]], failure: SashError) -> T:
    """Return the result of `attempt`. Repeat it if it raises an error of the class of `failure`."""
    for n in range(MAX_ATTEMPTS):
        try:
            return await attempt()
        except type(failure):
            await asyncio.sleep(0.001 * n)
    raise failure
