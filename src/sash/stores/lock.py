"""A lock between processes on one machine; it goes with the process that holds it."""

from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ModuleNotFoundError:  # no flock on this system: nobody is ever alone
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Held by one process at a time, and let go of by the system when the process dies."""

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

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None
