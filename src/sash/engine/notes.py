"""The notes that a session keeps outside of its transcript: facts, pins and preferences."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sash.engine.redaction import redact, redact_json
from sash.errors import InvalidInput, NoteNotFound
from sash.memory.words import extract_stems, split_words
from sash.ports.session_rules import change_session
from sash.ports.store import Store
from sash.values.clock import Clock
from sash.values.requests import Note
from sash.values.sessions import Fact, Pin, Session

MAX_NOTES = 50
MAX_PREFERENCES_BYTES = 4096


class Notes:
    """Changes the notes of sessions, also while a turn runs."""

    def __init__(self, store: Store, clock: Clock, new_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id

    async def remember(self, owner: str, session_id: str, note: Note) -> Fact:
        """Keep a fact and return it. If a fact with the same text exists, return that one."""
        fact = Fact(self._new_id(), redact(note.text), self._clock.now())

        def change(session: Session) -> Session:
            facts = session.memory.facts
            if any(known.text == fact.text for known in facts):
                return session
            _check_room("facts", facts)
            return replace(session, memory=replace(session.memory, facts=(*facts, fact)))

        changed = await change_session(self._store, owner, session_id, change)
        return next(known for known in changed.memory.facts if known.text == fact.text)

    async def forget(self, owner: str, session_id: str, about: Note) -> tuple[Fact, ...]:
        """Drop the fact with the id `about`, or all facts that contain every important word of `about`.

        Return the dropped facts.
        """
        text = redact(about.text)
        stems = extract_stems(text) or split_words(text)
        return await self._drop_facts(
            owner, session_id, lambda fact: fact.id == about.text or _has_all(fact.text, stems)
        )

    async def drop_fact(self, owner: str, session_id: str, fact_id: str) -> Fact:
        """Drop a fact by its id and return it. Raise `NoteNotFound` if the id is unknown."""
        gone = await self._drop_facts(owner, session_id, lambda fact: fact.id == fact_id)
        if not gone:
            raise NoteNotFound(
                f"there is no fact {fact_id!r:.80} in session {session_id}", session_id=session_id
            )
        return gone[0]

    async def _drop_facts(
        self, owner: str, session_id: str, is_gone: Callable[[Fact], bool]
    ) -> tuple[Fact, ...]:
        gone: list[Fact] = []

        def change(session: Session) -> Session:
            facts = session.memory.facts
            gone[:] = filter(is_gone, facts)
            left = tuple(fact for fact in facts if fact not in gone)
            return replace(session, memory=replace(session.memory, facts=left)) if gone else session

        await change_session(self._store, owner, session_id, change)
        return tuple(gone)

    async def pin(self, owner: str, session_id: str, note: Note) -> Pin:
        """Add a pin and return it. Raise `InvalidInput` if the session has the maximum number of pins."""
        pin = Pin(self._new_id(), redact(note.text), self._clock.now())

        def change(session: Session) -> Session:
            _check_room("pins", session.memory.pins)
            return replace(session, memory=replace(session.memory, pins=(*session.memory.pins, pin)))

        await change_session(self._store, owner, session_id, change)
        return pin

    async def unpin(self, owner: str, session_id: str, pin_id: str) -> None:
        """Remove a pin by its id. Raise `NoteNotFound` if the id is unknown."""

        def change(session: Session) -> Session:
            left = tuple(pin for pin in session.memory.pins if pin.id != pin_id)
            if len(left) == len(session.memory.pins):
                raise NoteNotFound(f"there is no pin {pin_id} in session {session_id}", session_id=session_id)
            return replace(session, memory=replace(session.memory, pins=left))

        await change_session(self._store, owner, session_id, change)


def _has_all(text: str, stems: list[str]) -> bool:
    words = split_words(text)
    return bool(stems) and all(any(word.startswith(stem) for word in words) for stem in stems)


def clean_preferences(preferences: dict[str, Any]) -> dict[str, Any]:
    """Return preferences without secrets. Raise `InvalidInput` if they are too long for a prompt."""
    clean: dict[str, Any] = redact_json(preferences)
    size = len(json.dumps(clean))
    if size > MAX_PREFERENCES_BYTES:
        raise InvalidInput(
            f"preferences may have at most {MAX_PREFERENCES_BYTES} bytes, these have {size}: shorten them"
        )
    return clean


def _check_room(what: str, notes: tuple[Any, ...]) -> None:
    if len(notes) >= MAX_NOTES:
        raise InvalidInput(f"a session keeps at most {MAX_NOTES} {what}: remove some of them first")
