"""Titles of sessions, for lists that a person reads."""

from collections.abc import Iterable

from sash.ports.store import Store
from sash.values.sessions import Session

MAX_TITLE_CHARS = 80
# More than a title has, because white space is left out.
CHARS_TO_READ = 400


async def find_titles(store: Store, owner: str, sessions: Iterable[Session]) -> dict[str, str | None]:
    """Return a title for each of the owner's sessions, by id: its name, or the first words of its user.

    The title is None if the session has no name, and no user has written anything yet.
    """
    names = {session.id: session.name for session in sessions}
    unnamed = [session_id for session_id, name in names.items() if name is None]
    texts = await store.first_texts(owner, unnamed, max_chars=CHARS_TO_READ) if unnamed else {}
    return names | {session_id: make_title(text) for session_id, text in texts.items()}


def make_title(text: str) -> str | None:
    """Return the first words of a text, at most `MAX_TITLE_CHARS` characters; None if it has no words."""
    words = " ".join(text.split())
    if len(words) <= MAX_TITLE_CHARS:
        return words or None
    start = words[:MAX_TITLE_CHARS]
    return (start[: start.rfind(" ")] if " " in start[:-1] else start[:-1]) + "…"
