"""The notes of an owner: facts and pins for all sessions, and preferences for new sessions."""

from dataclasses import dataclass, field
from typing import Any

from sash.values.bounds import Natural
from sash.values.sessions import Fact, Label, Pin


@dataclass(frozen=True, slots=True)
class OwnerNotes:
    """The notes of one owner. `version` counts their changes. It is 0 for an owner without stored notes."""

    owner: Label
    facts: tuple[Fact, ...] = ()
    pins: tuple[Pin, ...] = ()
    preferences: dict[str, Any] = field(default_factory=dict)
    version: Natural = 0
