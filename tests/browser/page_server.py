"""A real `sash serve` with the demo home and a simulated model, for tests of the web page."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

from tests.ha.model_server import ModelServer
from tests.surfaces.process import killed_if_late

MODEL = "gpt-5-mini"
QUIET_HOME = Path(__file__).with_name("quiet_home")
WAIT_S = 30


class PageServer:
    """Runs `sash serve` at one port. A test may kill it and start it again."""

    def __init__(self, folder: Path, model: ModelServer | None = None, **environment: str) -> None:
        self._folder = folder
        self._port = _find_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(QUIET_HOME)}
        self._environment |= environment
        if model is not None:
            self._environment |= {
                "SASH_MODEL": MODEL,
                "SASH_API_BASE": model.url,
                "SASH_API_KEY": model.key,
            }
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        command = [sys.executable, "-m", "sash", "serve", "--port", str(self._port)]
        # A full pipe would block the process, so standard error goes to a file.
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 (`kill` closes it)
        self._process = subprocess.Popen(
            [*command, "--data", str(self._folder / "data")],
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=self._environment,
            cwd=self._folder,
            text=True,
        )
        assert self._process.stdout is not None
        with killed_if_late(self._process):
            for line in self._process.stdout:
                if "Ctrl-C stops" in line:
                    return
        self._complaints.seek(0)
        raise RuntimeError(f"the server did not start: {self._complaints.read()}")

    def make_token(self, owner: str, scopes: str) -> str:
        """Return a new token. From now on, every client needs one."""
        words = ["token", "create", "--data", str(self._folder / "data"), "--owner", owner, "--scope", scopes]
        done = subprocess.run(
            [sys.executable, "-m", "sash", *words],
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.split()[0]

    def kill(self) -> None:
        """Kill the server, as a power cut does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._complaints.close()
            self._process = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the JSON of its response."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=WAIT_S) as response:
            return json.load(response)

    def start_session(self, **fields: Any) -> str:
        return str(self.ask("POST", "/v1/sessions", fields)["session_id"])

    def say(self, session_id: str, message: str, **fields: Any) -> dict[str, Any]:
        """Send a message, and return its turn when it has ended or waits for an approval."""
        sent = self.ask("POST", f"/v1/sessions/{session_id}/messages", {"message": message, **fields})
        path = f"/v1/continuations/{sent['continuation_id']}?wait_ms={WAIT_S * 1000}"
        return dict(self.ask("GET", path))


def _find_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def find_words(messages: list[dict[str, Any]]) -> str:
    """Return the last message of the user in a prompt, without the time before it."""
    said = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    text = said if isinstance(said, str) else said[-1]["text"]
    return re.sub(r"^\[[^\]]*\]\s*", "", text)
