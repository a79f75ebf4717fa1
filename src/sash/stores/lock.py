"""A lock between processes on one machine; it goes with the process that holds it."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ModuleNotFoundError:  # no flock on this system: nobody is ever alone
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Held by one process, or shared by several, and let go of by the system when a process dies."""

    there_is_none = fcntl is None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[Any] | None = None

    def acquire(self) -> bool:
        """Take the lock; False if another process, or another lock in this one, has it."""
        if fcntl is None:
            return False
        file = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def share(self, when_alone: Callable[[], None]) -> None:
        """Take the lock together with others; if there are none, do something before any can come."""
        if fcntl is None:
            return
        alone = self.acquire()
        if alone:
            when_alone()
        else:
            self._file = self._path.open("a")
        assert self._file is not None
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None
