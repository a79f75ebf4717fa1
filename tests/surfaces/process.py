"""Processes for tests: they end with the test, and reading from them has a time limit."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

START_S = 60


@contextmanager
def running(*command: str, **options) -> Iterator[subprocess.Popen[str]]:
    """Run a program. It is killed at the end of the context."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def killed_if_late(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process that takes too long, so that a read from it ends."""
    late = threading.Timer(START_S, process.kill)
    late.start()
    try:
        yield
    finally:
        late.cancel()
