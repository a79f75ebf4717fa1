"""The errors for records that are missing, and for new records whose id is taken."""

from typing import NoReturn

from sash.errors import (
    ArtifactNotFound,
    ContinuationNotFound,
    MessageNotFound,
    SessionExists,
    SessionNotFound,
    WaitingTurnNotFound,
)


def raise_session_not_found(session_id: str) -> NoReturn:
    """Raise `SessionNotFound`: the owner has no session with this id."""
    raise SessionNotFound(f"there is no session {session_id}", session_id=session_id)


def raise_continuation_not_found(continuation_id: str) -> NoReturn:
    """Raise `ContinuationNotFound`: the owner has no continuation with this id."""
    raise ContinuationNotFound(f"there is no continuation {continuation_id}", continuation_id=continuation_id)


def raise_waiting_turn_not_found(turn_id: str) -> NoReturn:
    """Raise `WaitingTurnNotFound`: the owner has no waiting turn with this id."""
    raise WaitingTurnNotFound(
        f"there is no waiting turn {turn_id!r:.80}: it has fired, was cancelled, or never existed"
    )


def raise_message_not_found(session_id: str, message_id: str) -> NoReturn:
    """Raise `MessageNotFound`: the session has no message with this id."""
    raise MessageNotFound(
        f"there is no message {message_id!r:.80} in session {session_id}", session_id=session_id
    )


def raise_artifact_not_found(artifact_id: str) -> NoReturn:
    """Raise `ArtifactNotFound`: the owner has no artifact with this id."""
    raise ArtifactNotFound(f"there is no artifact {artifact_id}")


def raise_session_exists(session_id: str) -> NoReturn:
    """Raise `SessionExists`: the id of a new session is taken."""
    raise SessionExists(f"session {session_id} already exists", session_id=session_id)


def raise_parts_exist(session_id: str) -> NoReturn:
    """Raise `SessionExists`: another session has continuations or artifacts with the ids of the import."""
    raise SessionExists(
        f"parts of session {session_id} already exist in another session: fork that session instead",
        session_id=session_id,
    )
