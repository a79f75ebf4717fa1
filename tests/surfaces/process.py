"""A program that runs beside a test: it does not outlive the test, and is not read from for ever."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

START_S = 60


@contextmanager
def running(*command: str, **options) -> Iterator[subprocess.Popen[str]]:
    """Run a program; it is killed when the test is done with it, however that ends."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def killed_if_late(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process that takes too long, so that whoever reads from it finds the end of it."""
    late = threading.Timer(START_S, process.kill)
    late.start()
    try:
        yield
    finally:
        late.cancel()
