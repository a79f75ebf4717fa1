"""The notes outside of transcripts: facts and pins of a session or of an owner, and preferences.

The notes of an owner are known in all sessions of that owner. The notes of a session stay in it. The
household of a runtime is an owner whose notes all other owners know, too.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from sash.engine.redaction import redact, redact_json
from sash.errors import InvalidInput, NoteNotFound, SashError
from sash.memory.words import extract_stems, has_stems, split_words
from sash.ports.session_rules import change_owner_notes, change_session
from sash.ports.store import Store
from sash.values.clock import Clock
from sash.values.owner_notes import OwnerNotes, add_household
from sash.values.requests import Note, PinRequest, Preferences
from sash.values.sessions import Fact, Pin, Scope, Session, SessionMemory

MAX_NOTES = 50
MAX_PREFERENCES_BYTES = 4096

N = TypeVar("N", Fact, Pin)
Memory = SessionMemory | OwnerNotes

_logger = logging.getLogger(__name__)


class Notes:
    """Changes notes, also while a turn runs. Without a session id, the notes are those of the owner."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        new_id: Callable[[], str],
        on_session: Callable[[Session], None],
        household: str | None = None,
    ) -> None:
        """`on_session` is called with every session whose notes were changed."""
        self._store = store
        self._household = household
        self._on_session = on_session
        self._clock = clock
        self._new_id = new_id

    async def read(self, owner: str, session_id: str | None) -> Memory:
        """Return the memory of a session, or the notes of the owner."""
        if session_id is None:
            return await self.read_owner(owner)
        return (await self._store.get_session(owner, session_id)).memory

    async def read_owner(self, owner: str) -> OwnerNotes:
        return await self._store.owner_notes(owner)

    async def read_known(self, owner: str) -> OwnerNotes:
        """Return all notes that an owner knows: its own, and those of the household.

        Log damaged notes and leave them out, so that a turn can go on.
        """
        own = await self._read_sound(owner)
        if self._household in (None, owner):
            return own
        known = add_household(own, await self._read_sound(self._household))
        if measure_preferences(known.preferences) <= MAX_PREFERENCES_BYTES:
            return known
        _logger.warning("the preferences of the household are too long to be added to those of an owner")
        return replace(known, preferences=own.preferences)

    async def _read_sound(self, owner: str) -> OwnerNotes:
        try:
            return await self._store.owner_notes(owner)
        except SashError as error:
            _logger.warning("the notes of an owner cannot be read: %s", error.message)
            return OwnerNotes(owner)

    async def remember(
        self,
        owner: str,
        session_id: str | None,
        note: Note,
        *,
        asked_in: str | None = None,
        continuation_id: str | None = None,
    ) -> Fact:
        """Keep a fact and return it. If a fact with the same text exists, return that one.

        `asked_in` is the session in which the owner stated the fact, and `continuation_id` the turn. Raise
        `SessionNotFound` if the session was deleted.
        """
        fact = Fact(
            self._new_id(),
            redact(note.text),
            self._clock.now(),
            scope=_scope(session_id),
            continuation_id=continuation_id,
        )

        def change(memory: Memory) -> Memory:
            if any(known.text == fact.text for known in memory.facts):
                return memory
            _check_room("facts", memory.facts, session_id)
            return replace(memory, facts=(*memory.facts, fact))

        changed = await self._change(owner, session_id, change, asked_in)
        return next(known for known in changed.facts if known.text == fact.text)

    async def edit_fact(self, owner: str, session_id: str | None, fact_id: str, note: Note) -> Fact:
        """Replace the text of a fact and return the fact. Raise `NoteNotFound` if the id is unknown."""
        text, now = redact(note.text), self._clock.now()

        def change(memory: Memory) -> Memory:
            _find(memory.facts, fact_id, "fact", session_id)
            return replace(
                memory,
                facts=tuple(
                    replace(fact, text=text, updated_at=now) if fact.id == fact_id else fact
                    for fact in memory.facts
                ),
            )

        changed = await self._change(owner, session_id, change)
        return _find(changed.facts, fact_id, "fact", session_id)

    async def forget(self, owner: str, session_id: str | None, about: Note) -> tuple[Fact, ...]:
        """Drop the fact with the id `about`, or all facts that contain every important word of `about`.

        Every owner may drop facts of the household, too. Return the dropped facts.
        """
        text = redact(about.text)
        stems = extract_stems(text) or split_words(text)

        def is_meant(fact: Fact) -> bool:
            return fact.id == about.text or has_stems(fact.text, stems)

        gone = await self._drop_facts(owner, session_id, is_meant)
        if session_id is None and self._household not in (None, owner):
            gone += await self._drop_facts(self._household, None, is_meant)
        return gone

    async def drop_fact(self, owner: str, session_id: str | None, fact_id: str) -> Fact:
        """Drop a fact by its id and return it. Raise `NoteNotFound` if the id is unknown."""
        gone = await self._drop_facts(owner, session_id, lambda fact: fact.id == fact_id)
        return _find(gone, fact_id, "fact", session_id)

    async def move_facts(self, continuation_id: str, owner: str, to_owner: str) -> tuple[Fact, ...]:
        """Move the facts that a turn stated to the notes of another owner, and return them.

        They are added before they are dropped. A crash in between leaves them with both owners, and no crash
        loses one. A fact whose text the other owner has is only dropped. Raise `InvalidInput` if there is no
        room for the others; then nothing is moved.
        """
        facts = (await self.read_owner(owner)).facts
        found = tuple(fact for fact in facts if fact.continuation_id == continuation_id)
        if owner == to_owner or not found:
            return found
        # To the sessions of the other owner a moved fact is new: it must not change the start of a prompt.
        texts, now = {fact.text for fact in found}, self._clock.now()

        def add(notes: OwnerNotes) -> OwnerNotes:
            known = {fact.text for fact in notes.facts}
            new = tuple(replace(fact, updated_at=now) for fact in found if fact.text not in known)
            _check_room("facts", notes.facts, None, len(new))
            return replace(notes, facts=(*notes.facts, *new)) if new else notes

        changed = await change_owner_notes(self._store, to_owner, add)
        await self._drop_facts(owner, None, lambda fact: fact in found)
        return tuple(fact for fact in changed.facts if fact.text in texts)

    async def _drop_facts(
        self, owner: str, session_id: str | None, is_gone: Callable[[Fact], bool]
    ) -> tuple[Fact, ...]:
        gone: list[Fact] = []

        def change(memory: Memory) -> Memory:
            gone[:] = filter(is_gone, memory.facts)
            left = tuple(fact for fact in memory.facts if fact not in gone)
            return replace(memory, facts=left) if gone else memory

        await self._change(owner, session_id, change)
        return tuple(gone)

    async def pin(self, owner: str, session_id: str | None, request: PinRequest) -> Pin:
        """Add a pin and return it. Raise `InvalidInput` if there are the maximum number of pins."""
        pin = Pin(
            self._new_id(),
            redact(request.text or ""),
            self._clock.now(),
            entity_id=request.entity_id,
            scope=_scope(session_id),
        )

        def change(memory: Memory) -> Memory:
            _check_room("pins", memory.pins, session_id)
            return replace(memory, pins=(*memory.pins, pin))

        await self._change(owner, session_id, change)
        return pin

    async def unpin(self, owner: str, session_id: str | None, pin_id: str) -> None:
        """Remove a pin by its id. Raise `NoteNotFound` if the id is unknown."""

        def change(memory: Memory) -> Memory:
            _find(memory.pins, pin_id, "pin", session_id)
            return replace(memory, pins=tuple(pin for pin in memory.pins if pin.id != pin_id))

        await self._change(owner, session_id, change)

    async def prefer_always(self, owner: str, new: Preferences) -> OwnerNotes:
        """Change some preferences of an owner. New sessions start with them."""

        def change(notes: OwnerNotes) -> OwnerNotes:
            return replace(notes, preferences=merge_preferences(notes.preferences, new.preferences))

        return await change_owner_notes(self._store, owner, change)

    async def _change(
        self,
        owner: str,
        session_id: str | None,
        change: Callable[[Memory], Memory],
        asked_in: str | None = None,
    ) -> Memory:
        """Change the memory of a session or the notes of the owner, and return the result."""
        if session_id is None:
            return await change_owner_notes(
                self._store, owner, lambda notes: _as_notes(change(notes)), asked_in=asked_in
            )

        def change_memory(session: Session) -> Session:
            memory = change(session.memory)
            if memory is session.memory:
                return session
            return replace(session, memory=_as_memory(memory))

        changed = await change_session(self._store, owner, session_id, change_memory)
        self._on_session(changed)
        return changed.memory


def _as_notes(memory: Memory) -> OwnerNotes:
    assert isinstance(memory, OwnerNotes)
    return memory


def _as_memory(memory: Memory) -> SessionMemory:
    assert isinstance(memory, SessionMemory)
    return memory


def _scope(session_id: str | None) -> Scope:
    return "owner" if session_id is None else "session"


def _find(notes: Iterable[N], note_id: str, what: str, session_id: str | None) -> N:
    """Return the note with an id. Raise `NoteNotFound` if the id is unknown."""
    for note in notes:
        if note.id == note_id:
            return note
    where = "for you" if session_id is None else f"in session {session_id}"
    raise NoteNotFound(f"there is no {what} {note_id!r:.80} {where}", session_id=session_id)


def merge_preferences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the old preferences with the new ones. A new preference with the value None is removed."""
    return clean_preferences({key: value for key, value in (old | new).items() if value is not None})


def clean_preferences(preferences: dict[str, Any]) -> dict[str, Any]:
    """Return preferences without secrets. Raise `InvalidInput` if they are too long for a prompt."""
    clean: dict[str, Any] = redact_json(preferences)
    size = measure_preferences(clean)
    if size > MAX_PREFERENCES_BYTES:
        raise InvalidInput(
            f"preferences may have at most {MAX_PREFERENCES_BYTES} bytes, these have {size}: shorten them"
        )
    return clean


def measure_preferences(preferences: dict[str, Any]) -> int:
    """Return the size of preferences in bytes, as `MAX_PREFERENCES_BYTES` limits it."""
    return len(json.dumps(preferences))


def _check_room(what: str, notes: tuple[Any, ...], session_id: str | None, count: int = 1) -> None:
    if len(notes) + count > MAX_NOTES:
        keeper = "an owner" if session_id is None else "a session"
        raise InvalidInput(f"{keeper} keeps at most {MAX_NOTES} {what}: remove some of them first")
