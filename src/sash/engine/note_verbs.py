"""The runtime's methods for notes: facts, pins and preferences, of a session or of its owner."""

from typing import Any

from sash.engine.detached import detached
from sash.engine.parts import Parts
from sash.engine.worker import Worker
from sash.values.owner_notes import OwnerNotes
from sash.values.requests import Note, PinRequest, Preferences
from sash.values.sessions import DEFAULT_OWNER, Fact, Pin
from sash.values.validation import check_label


class NoteVerbs:
    """Methods for notes. A note is part of the context of every later turn.

    With a `session_id`, a note belongs to that session. Without one it belongs to the owner, and all sessions
    of the owner know it.
    """

    _parts: Parts
    _worker: Worker

    async def remember(self, text: str, *, session_id: str | None = None, owner: str = DEFAULT_OWNER) -> Fact:
        """Keep a fact and return it. If a fact with the same text exists, return that one."""
        return await self._parts.notes.remember(owner, session_id, Note(text=text))

    async def edit_fact(
        self, fact_id: str, text: str, *, session_id: str | None = None, owner: str = DEFAULT_OWNER
    ) -> Fact:
        """Replace the text of a fact and return the fact. Raise `NoteNotFound` if the id is unknown."""
        return await self._parts.notes.edit_fact(owner, session_id, fact_id, Note(text=text))

    async def forget(
        self, about: str, *, session_id: str | None = None, owner: str = DEFAULT_OWNER
    ) -> tuple[Fact, ...]:
        """Drop the fact with the id `about`, or all facts that contain every word of `about`.

        Without a `session_id`, matching facts of the household are dropped, too. Return the dropped facts.
        """
        return await self._parts.notes.forget(owner, session_id, Note(text=about))

    async def drop_fact(
        self, fact_id: str, *, session_id: str | None = None, owner: str = DEFAULT_OWNER
    ) -> Fact:
        """Drop a fact by its id and return it. Raise `NoteNotFound` if the id is unknown."""
        return await self._parts.notes.drop_fact(owner, session_id, fact_id)

    @detached
    async def move_facts(
        self, continuation_id: str, *, owner: str = DEFAULT_OWNER, to_owner: str
    ) -> tuple[Fact, ...]:
        """Move the facts that a turn stated from one owner's notes to another's, and return them.

        It is for a speaker who is named later: "that was Anna". A crash in between may leave a fact with both
        owners; no fact is lost. Raise `InvalidInput` if the other owner has no room for them.
        """
        check_label("to_owner", to_owner)
        return await self._parts.notes.move_facts(continuation_id, owner, to_owner)

    async def list_facts(
        self, *, session_id: str | None = None, owner: str = DEFAULT_OWNER
    ) -> tuple[Fact, ...]:
        """Return the facts of the owner, or only those of a session."""
        return (await self._parts.notes.read(owner, session_id)).facts

    async def pin(
        self,
        text: str | None = None,
        *,
        entity_id: str | None = None,
        session_id: str | None = None,
        owner: str = DEFAULT_OWNER,
    ) -> Pin:
        """Add a text or the state of an entity to every later context, and return the new pin.

        Raise `EntityNotFound` if the home is connected and has no such entity.
        """
        request, index = PinRequest(text=text, entity_id=entity_id), self._parts.find_index()
        if request.entity_id is not None and index is not None:
            index.find(request.entity_id)
        return await self._parts.notes.pin(owner, session_id, request)

    async def unpin(self, pin_id: str, *, session_id: str | None = None, owner: str = DEFAULT_OWNER) -> None:
        """Remove a pin by its id. Raise `NoteNotFound` if the id is unknown."""
        await self._parts.notes.unpin(owner, session_id, pin_id)

    async def list_pins(
        self, *, session_id: str | None = None, owner: str = DEFAULT_OWNER
    ) -> tuple[Pin, ...]:
        """Return the pins of the owner, or only those of a session."""
        return (await self._parts.notes.read(owner, session_id)).pins

    async def owner_notes(self, *, owner: str = DEFAULT_OWNER) -> OwnerNotes:
        """Return the facts, pins and preferences of an owner."""
        return await self._parts.notes.read_owner(owner)

    async def known_notes(self, *, owner: str = DEFAULT_OWNER) -> OwnerNotes:
        """Return all notes that an owner knows: its own, then those of the household without doubles.

        The preferences are those of a new session. Damaged notes are left out.
        """
        return await self._parts.notes.read_known(owner)

    async def set_owner_preferences(
        self, preferences: dict[str, Any], *, owner: str = DEFAULT_OWNER
    ) -> OwnerNotes:
        """Change some preferences of an owner. New sessions start with them. None deletes a key."""
        return await self._parts.notes.prefer_always(owner, Preferences(preferences=preferences))
