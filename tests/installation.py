"""Programs that the tests install once for a machine: one process installs, and the others wait for it."""

import contextlib
import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO


class NotInstalled(Exception):
    """The programs cannot be installed on this machine, and why."""


@contextlib.contextmanager
def lock_file(path: Path, max_wait_s: float) -> Iterator[None]:
    """Let one process at a time pass. The others wait for it, at most this long."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise NotInstalled(f"{path.parent} cannot be written to: {error}") from error
    with lock:
        ends_at = time.monotonic() + max_wait_s
        while not _try_lock(lock):
            if time.monotonic() > ends_at:
                raise NotInstalled(f"another process holds {path} for more than {max_wait_s} s")
            time.sleep(0.1)
        yield


def run_program(
    words: Sequence[str],
    timeout_s: float,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a program and return its output. Raise `NotInstalled` with the end of its complaint if it fails."""
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{words[0]} could not be run: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise NotInstalled(f"{Path(words[0]).name} failed: {said[-500:]}")
    return done.stdout


def tell(text: str) -> None:
    """Show a line to the person who runs the tests, even while pytest captures the output."""
    print(text, file=sys.__stderr__, flush=True)


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
