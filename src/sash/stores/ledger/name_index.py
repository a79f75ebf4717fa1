"""The ids of sessions by the owner and the name of the session."""

from collections.abc import Collection

from sash.values.sessions import Session


class NameIndex:
    """Finds the sessions that have a name now."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], set[str]] = {}

    def find(self, owner: str, name: str) -> Collection[str]:
        """Return the ids of the owner's sessions with this name."""
        return self._by_name.get((owner, name), ())

    def add(self, session: Session) -> None:
        if session.name is not None:
            self._by_name.setdefault((session.owner, session.name), set()).add(session.id)

    def remove(self, session: Session) -> None:
        """Remove a session by the name that it was added with."""
        if session.name is None:
            return
        ids = self._by_name[session.owner, session.name]
        ids.discard(session.id)
        if not ids:
            del self._by_name[session.owner, session.name]

    def clear(self) -> None:
        self._by_name.clear()
