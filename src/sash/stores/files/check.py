"""A read-only check of a folder of sessions."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sash.errors import SashError
from sash.stores.backend import NO_STORE_YET, RESTORE_BACKUP, StoreCheck
from sash.stores.files.records import LAYOUT_FILE, LAYOUT_VERSION, SessionFile, TurnFile, decode_line
from sash.stores.lock import FileLock
from sash.values.codec import decode
from sash.values.ids import LATEST_ID, is_ulid

MAX_NAMED = 5


def check_folder(folder: Path) -> StoreCheck:
    """Check that this version of Sash knows the layout, and that every session can be read."""
    meta = folder / LAYOUT_FILE
    if not meta.exists():
        return NO_STORE_YET
    try:
        version = json.loads(meta.read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return StoreCheck("wrong", f"{meta} cannot be read: {error!s:.200}", RESTORE_BACKUP)
    if version != LAYOUT_VERSION:
        found = f"{folder} has layout {version}, this Sash knows {LAYOUT_VERSION}"
        return StoreCheck("wrong", found, "install the version of Sash that wrote it")
    if _is_locked(folder / "lock"):
        advice = (
            "a files store allows one program at a time: stop that program before you run another command"
        )
        return StoreCheck("note", f"{folder} is open in another program", advice)
    if damaged := list(_find_damaged(folder / "sessions")):
        named = ", ".join(str(path.relative_to(folder)) for path in damaged[:MAX_NAMED])
        found = f"{folder}: {len(damaged)} files cannot be read: {named}{' …' * (len(damaged) > MAX_NAMED)}"
        return StoreCheck("wrong", found, RESTORE_BACKUP)
    if copies := list(folder.glob("sessions/**/*.damaged")):
        found = f"{folder} can be read, and has copies of {len(copies)} damaged files, such as {copies[0]}"
        return StoreCheck("note", found, "restore the lost records from a backup, or delete the copies")
    return StoreCheck("ok", f"{folder} can be read, layout {version}")


def _find_damaged(folder: Path) -> Iterator[Path]:
    """Yield the files of sessions that cannot be read. An incomplete write is no damage."""
    for path in sorted(folder.glob("*/session.json")):
        session_id = path.parent.name
        if (
            not is_ulid(session_id)
            or session_id >= LATEST_ID
            or not _can_read(path, partial(decode, SessionFile))
        ):
            yield path
        for turn in sorted(path.parent.glob("turns/*.json")):
            if not _can_read(turn, partial(decode, TurnFile)):
                yield turn
        for log in sorted(path.parent.glob("logs/*.log")):
            if not _can_read(log, _check_log):
                yield log


def _can_read(path: Path, check: Callable[[bytes], object]) -> bool:
    try:
        check(path.read_bytes())
    except (OSError, ValueError, SashError):
        return False
    return True


def _check_log(data: bytes) -> None:
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\n"):
            decode_line(line)


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
