"""The notes of owners as files. The name of a file is a hash, because an owner may have any name."""

from hashlib import sha256
from pathlib import Path

from sash.errors import SashError, StoreUnavailable
from sash.stores import disk
from sash.stores.files.records import OWNERS_FOLDER
from sash.values.codec import decode, encode
from sash.values.owner_notes import OwnerNotes


class OwnerFiles:
    """A folder with a file for each owner that has notes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / OWNERS_FOLDER

    def read(self, owner: str) -> OwnerNotes:
        path = self._folder / make_file_name(owner)
        try:
            return read_notes_file(path, disk.read(path))
        except FileNotFoundError:
            return OwnerNotes(owner)
        except (disk.UnusableFile, SashError) as error:
            raise StoreUnavailable(f"your notes cannot be read, `sash doctor` names them: {error}") from error

    def write(self, notes: OwnerNotes) -> None:
        disk.replace(self._folder / make_file_name(notes.owner), encode(notes), sync=True)

    def remove(self, owner: str) -> None:
        path = self._folder / make_file_name(owner)
        if disk.exists(path):
            path.unlink()
            disk.sync_folder(self._folder)


def make_file_name(owner: str) -> str:
    return f"{sha256(owner.encode()).hexdigest()[:32]}.json"


def read_notes_file(path: Path, data: bytes) -> OwnerNotes:
    """Read the notes of an owner. Raise `StoreUnavailable` if they are damaged, or of another owner."""
    notes = decode(OwnerNotes, data)
    if make_file_name(notes.owner) != path.name:
        raise StoreUnavailable("the file has the notes of another owner")
    return notes
