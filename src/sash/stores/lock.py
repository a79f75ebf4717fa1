"""A lock between the processes of one machine. The system releases it when its process dies."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ModuleNotFoundError:  # Windows has no flock
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """A lock on a file, held by one process or shared by several. Without `flock` it cannot be acquired."""

    is_supported = fcntl is not None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[Any] | None = None

    def acquire(self) -> bool:
        """Acquire the lock. Return False if another process, or another lock in this process, has it."""
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
        """Share the lock with other processes. The first process calls `when_alone` before it shares."""
        if fcntl is None:
            return
        if self.acquire():
            when_alone()
        else:
            self._file = self._path.open("a")
        assert self._file is not None
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._file is not None:
            self._file.close()
            self._file = None
