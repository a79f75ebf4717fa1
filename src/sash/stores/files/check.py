"""A read-only check of a folder of sessions."""

import json
from pathlib import Path

from sash.errors import StoreUnavailable
from sash.stores.backend import NO_STORE_YET, RESTORE_BACKUP, StoreCheck
from sash.stores.files.records import LAYOUT_FILE, LAYOUT_VERSION, SessionFile
from sash.stores.lock import FileLock
from sash.values.codec import decode
from sash.values.ids import LATEST_ID, is_ulid


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
    if damaged := next(filter(_is_damaged, folder.glob("sessions/*/session.json")), None):
        return StoreCheck("wrong", f"{damaged} cannot be read", RESTORE_BACKUP)
    return StoreCheck("ok", f"{folder} can be read, layout {version}")


def _is_damaged(path: Path) -> bool:
    try:
        decode(SessionFile, path.read_bytes())
    except (OSError, ValueError, StoreUnavailable):
        return True
    return not is_ulid(path.parent.name) or path.parent.name >= LATEST_ID


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
