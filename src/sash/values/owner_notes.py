"""The notes of an owner: facts and pins for all sessions, and preferences for new sessions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from sash.values.bounds import Natural
from sash.values.sessions import Fact, Label, Pin

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnerNotes:
    """The notes of one owner. `version` counts their changes. It is 0 for an owner without stored notes."""

    owner: Label
    facts: tuple[Fact, ...] = ()
    pins: tuple[Pin, ...] = ()
    preferences: dict[str, Any] = field(default_factory=dict)
    version: Natural = 0


def add_household(own: OwnerNotes, household: OwnerNotes) -> OwnerNotes:
    """Return the notes of an owner, followed by those of the household without doubles.

    Of two notes with the same text the older one stays, so that a prompt which has it does not change. The
    preferences of the owner win. The result is for reading: it must not be saved.
    """
    return replace(
        own,
        facts=_join(own.facts, household.facts, lambda fact: fact.text, lambda fact: fact.changed_at),
        pins=_join(
            own.pins, household.pins, lambda pin: (pin.text, pin.entity_id), lambda pin: pin.created_at
        ),
        preferences=household.preferences | own.preferences,
    )


def _join(
    own: tuple[T, ...], shared: tuple[T, ...], name: Callable[[T], object], date: Callable[[T], datetime]
) -> tuple[T, ...]:
    """Return all notes in order. Of those with the same name, keep the one with the earliest date."""
    oldest: dict[object, T] = {}
    for note in (*own, *shared):
        known = oldest.setdefault(name(note), note)
        if date(note) < date(known):
            oldest[name(note)] = note
    return tuple(note for note in (*own, *shared) if oldest[name(note)] is note)
