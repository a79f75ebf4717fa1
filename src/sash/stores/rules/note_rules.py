"""The rule of an owner's notes."""

from dataclasses import replace

from sash.errors import NotesChanged
from sash.values.owner_notes import OwnerNotes


def save_owner_notes(stored: OwnerNotes, notes: OwnerNotes) -> OwnerNotes:
    """Return the notes to write. Raise `NotesChanged` if `notes` were made from an older version."""
    if notes.version != stored.version:
        raise NotesChanged("your notes have changed since they were read: read them again")
    return replace(notes, version=stored.version + 1)
