"""Where the user of a turn is, what they speak and who they are: as the message says, or else the session."""

from sash.values.continuations import ContinuationRequest
from sash.values.sessions import Session


def find_place(session: Session, request: ContinuationRequest) -> tuple[str | None, str | None]:
    """Return the area and the language of the user; None if unknown."""
    return request.area or session.area, request.language or get_language(session)


def get_language(session: Session) -> str | None:
    """Return the language that a session prefers, or None."""
    preferred = session.preferences.get("language")
    return preferred if isinstance(preferred, str) else None


def describe_caller(session: Session, request: ContinuationRequest) -> str:
    """Describe the user of this turn to the model, as far as the session does not say it.

    It changes from turn to turn, so it must not stand at the start of the prompt.
    """
    lines = []
    if request.user_name:
        lines.append(f"name: {request.user_name}")
    if request.area and request.area != session.area:
        lines.append(f"area: {request.area}")
    if request.language and request.language != session.preferences.get("language"):
        lines.append(f"language: {request.language}")
    return "\n".join(["The user who speaks now:", *lines]) if lines else ""
