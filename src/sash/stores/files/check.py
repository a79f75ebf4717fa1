"""A read-only check of a folder of sessions."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from sash.errors import SashError
from sash.stores.backend import NO_STORE_YET, StoreCheck
from sash.stores.files.owner_files import read_notes_file
from sash.stores.files.records import (
    IMPORTED_FILE,
    LAYOUT_FILE,
    LAYOUT_VERSION,
    OWNER_FILE,
    OWNERS_FOLDER,
    SPENT_FILE,
    VECTORS_FILE,
    WAITING_FILE,
    ArtifactFile,
    LayoutFile,
    LogLine,
    OwnerFile,
    SpentFile,
    WaitingFile,
    decode_line,
    read_session_file,
    read_turn_file,
    read_vector_file,
)
from sash.stores.lock import FileLock
from sash.values.codec import decode
from sash.values.ids import LATEST_ID, is_ulid
from sash.values.messages import MessageEntry

T = TypeVar("T")

MAX_NAMED = 5


def check_folder(folder: Path) -> StoreCheck:
    """Check that this version of Sash knows the layout, and that every file can be read."""
    meta = folder / LAYOUT_FILE
    if not meta.exists() and not any(folder.glob("sessions/*")):
        return NO_STORE_YET
    layout = _read(meta, partial(decode, LayoutFile))
    if layout is not None and layout.version != LAYOUT_VERSION:
        found = f"{folder} has layout {layout.version}, this Sash knows {LAYOUT_VERSION}"
        return StoreCheck("wrong", found, "install the version of Sash that wrote it")
    if _is_locked(folder / "lock"):
        advice = (
            "a files store allows one program at a time: stop that program before you run another command"
        )
        return StoreCheck("note", f"{folder} is open in another program", advice)
    if damaged := [*([meta] if layout is None else []), *_find_damaged(folder)]:
        named = ", ".join(str(path.relative_to(folder)) for path in damaged[:MAX_NAMED])
        found = f"{folder}: {len(damaged)} files cannot be read: {named}{' …' * (len(damaged) > MAX_NAMED)}"
        units = dict.fromkeys(_find_unit(folder, path) for path in damaged)
        delete = " ".join(str(path) for path in list(units)[:MAX_NAMED])
        return StoreCheck("wrong", found, f"restore these files from a backup, or rm -r {delete}")
    if copies := list(folder.glob("**/*.damaged")):
        found = f"{folder} can be read, and has copies of {len(copies)} damaged files, such as {copies[0]}"
        return StoreCheck("note", found, "restore the lost records from a backup, or delete the copies")
    return StoreCheck("ok", f"{folder} can be read, layout {LAYOUT_VERSION}")


def _find_unit(folder: Path, path: Path) -> Path:
    """Return what can be deleted with a damaged file: the folder of its session, or the file alone."""
    first, *rest = path.relative_to(folder).parts
    return folder / first / rest[0] if first == "sessions" else path


def _find_damaged(folder: Path) -> Iterator[Path]:
    """Yield the files that cannot be read, except the layout. An incomplete write is no damage."""
    spent = folder / SPENT_FILE
    if spent.exists() and _read(spent, partial(decode, SpentFile)) is None:
        yield spent
    for path in sorted((folder / OWNERS_FOLDER).glob("[!.]*.json")):
        if _read(path, partial(read_notes_file, path)) is None:
            yield path
    for path in sorted((folder / "artifacts").glob("[!.]*")):
        if not _is_artifact_sound(path):
            yield path
    for session in sorted((folder / "sessions").glob("[!.]*")):
        yield from _check_session(session)


def _is_artifact_sound(path: Path) -> bool:
    """Return True if a file of an artifact can be read, and the other file of it exists."""
    data = path.with_suffix("")
    about = _read(data.with_suffix(".json"), partial(decode, ArtifactFile))
    return about is not None and data.is_file() and about.ref.size == data.stat().st_size


def _check_session(folder: Path) -> Iterator[Path]:
    path = folder / "session.json"
    record = _read(path, partial(read_session_file, path))
    if record is None or not is_ulid(folder.name) or folder.name >= LATEST_ID:
        yield path
    known: set[str] = set()
    cursors: dict[str, int] = {}
    for turn in sorted(folder.glob("turns/*.json")):
        file = _read(turn, partial(read_turn_file, turn))
        if file is None:
            yield turn
            continue
        known |= {message.id for message in file.messages}
        cursors[turn.stem] = file.cursor
        log = folder / "logs" / f"{turn.stem}.log"
        if not file.continuation.is_final and not log.exists():
            yield log
    for log in sorted(folder.glob("logs/*.log")):
        lines = _read(log, partial(_read_log, log)) or []
        last = max((line.step.cursor for line in lines if line.commit), default=-1)
        # The file of a turn is written after its log. So the log has lost its end if the file is newer.
        if not lines or last < cursors.get(log.stem, 0):
            yield log
        ends = [line.commit.finish for line in lines if line.commit]
        known |= {message.id for end in ends if end for message in end.messages}
    for name, read in (
        (VECTORS_FILE, read_vector_file),
        (OWNER_FILE, partial(decode, OwnerFile)),
        (WAITING_FILE, partial(decode, WaitingFile)),
    ):
        if (folder / name).exists() and _read(folder / name, read) is None:
            yield folder / name
    imported = folder / "turns" / IMPORTED_FILE
    messages = _read(imported, _read_messages) if imported.exists() else []
    known |= {message.id for message in messages or ()}
    # Messages of the window that no file has were in the file of imported messages, or in that of a turn.
    if messages is None or (record is not None and not known.issuperset(record.in_window)):
        yield imported


def _read(path: Path, read: Callable[[bytes], T]) -> T | None:
    """Return the content of a file, or None if it cannot be read."""
    try:
        return read(path.read_bytes())
    except (OSError, ValueError, SashError):
        return None


def _read_log(path: Path, data: bytes) -> list[LogLine]:
    lines = data.splitlines(keepends=True)
    return [decode_line(path, line) for line in lines if line.endswith(b"\n")]


def _read_messages(data: bytes) -> list[MessageEntry]:
    return [decode(MessageEntry, line) for line in data.splitlines()]


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return not lock.acquire()
    except OSError:
        return False
    finally:
        lock.release()
