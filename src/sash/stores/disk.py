"""Durable writes: a crash leaves a file as it was before the write or after it, never in between."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def append(path: Path, lines: Sequence[dict[str, Any]], *, new: bool = False) -> None:
    """Append lines in one write, and sync them to the disk. A write that fails changes nothing.

    `new` also syncs the folder, for a file that did not exist.
    """
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    with path.open("ab") as file:
        before = file.tell()
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, before)
            raise
    if new:
        sync_folder(path.parent)


def replace(path: Path, content: str | bytes, *, sync: bool) -> None:
    """Replace a whole file. A reader sees either the old or the new content. `sync` waits for the disk."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)
    if sync:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that files that were created or renamed in it survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
