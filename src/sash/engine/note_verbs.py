"""The runtime's methods for the notes of a session: facts and pins."""

from sash.engine.notes import Notes
from sash.values.requests import Note
from sash.values.sessions import DEFAULT_OWNER, Fact, Pin


class NoteVerbs:
    """Methods for notes. A note is part of the context of every later turn."""

    _notes: Notes

    async def remember(self, session_id: str, text: str, *, owner: str = DEFAULT_OWNER) -> Fact:
        """Keep a fact for as long as the session lives. A fact with the same text is returned instead."""
        return await self._notes.remember(owner, session_id, Note(text=text))

    async def forget(self, session_id: str, about: str, *, owner: str = DEFAULT_OWNER) -> tuple[Fact, ...]:
        """Drop the fact with the id `about`, or all facts that contain every word of `about`.

        Return the dropped facts.
        """
        return await self._notes.forget(owner, session_id, Note(text=about))

    async def drop_fact(self, session_id: str, fact_id: str, *, owner: str = DEFAULT_OWNER) -> Fact:
        """Drop a fact by its id and return it. Raise `NoteNotFound` if the id is unknown."""
        return await self._notes.drop_fact(owner, session_id, fact_id)

    async def pin(self, session_id: str, text: str, *, owner: str = DEFAULT_OWNER) -> Pin:
        """Add a text to every later context of a session, and return the new pin."""
        return await self._notes.pin(owner, session_id, Note(text=text))

    async def unpin(self, session_id: str, pin_id: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Remove a pin by its id. Raise `NoteNotFound` if the id is unknown."""
        await self._notes.unpin(owner, session_id, pin_id)
