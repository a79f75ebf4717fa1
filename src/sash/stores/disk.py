"""Durable writes: a crash leaves a file as it was before the write or after it, never in between."""

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Errors of one file. Others, such as a full disk or too many open files, concern all files.
_OF_ONE_FILE = frozenset({errno.EACCES, errno.EIO, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.EPERM})


class UnusableFile(OSError):
    """One file cannot be used, for example because a folder has its name. Other files may be intact."""


@contextmanager
def use_file(path: Path) -> Iterator[None]:
    """Raise `UnusableFile` for an `OSError` that concerns only this file or folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_ONE_FILE:
            raise
        raise UnusableFile(f"{path.name}: {error.strerror}") from error


def read(path: Path) -> bytes:
    with use_file(path):
        return path.read_bytes()


def list_files(folder: Path, suffix: str) -> list[Path]:
    """Return the files of a folder with this suffix, by name. Return nothing if there is no such folder."""
    with use_file(folder), suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if path.suffix == suffix)
    return []


def exists(path: Path) -> bool:
    """Return True if there is a file, even if it cannot be used."""
    try:
        with use_file(path):
            path.stat()
    except (FileNotFoundError, UnusableFile) as error:
        return isinstance(error, UnusableFile)
    return True


def append(path: Path, lines: Sequence[dict[str, Any] | str], *, new: bool = False) -> None:
    """Append lines in one write, and sync them to the disk. A write that fails changes nothing.

    A line is a JSON object or its text. `new` also syncs the folder, for a file that did not exist.
    """
    texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    data = "".join(f"{text}\n" for text in texts).encode()
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
