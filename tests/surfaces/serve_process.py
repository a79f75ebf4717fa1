"""`sash serve` as a process, and requests to it."""

import json
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.surfaces.process import killed_if_late, running

WAIT_S = 60


@contextmanager
def program(folder: Path, *arguments, stderr=None, **environment):
    """Run `sash serve`. Yield the process, its address and its output so far. `stderr` is a file."""
    command = [sys.executable, "-m", "sash", "serve", "--port", "0", "--data", str(folder), *arguments]
    # A full pipe would block the process, so standard error goes to a file.
    with (
        tempfile.TemporaryFile("w+") as complaints,
        running(
            *command,
            stdout=subprocess.PIPE,
            stderr=stderr or complaints,
            cwd=folder.parent,
            env={"HOME": str(folder.parent), "PATH": "/usr/bin:/bin", "COLUMNS": "200", **environment},
        ) as started,
    ):
        printed = []
        with killed_if_late(started):
            for line in started.stdout:
                printed.append(line)
                if "Ctrl-C stops" in line:
                    break
            else:
                complaints.seek(0)
                pytest.fail(f"it did not begin to listen: {complaints.read()}")
        address = re.search(r"http://127\.0\.0\.1:\d+", printed[0]).group()
        yield started, address, "".join(printed)


def ask(address: str, path: str, body: dict | None = None, method: str | None = None) -> dict:
    """Make a request, and return the JSON of its response."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(address + path, data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=WAIT_S) as response:
        return json.load(response)
