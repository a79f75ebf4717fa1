"""Runs the program `sash` for tests, as a user runs it."""

import json
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

SASH = str(Path(sys.executable).with_name("sash"))
WAIT_S = 60
# At night nothing happens in the demo home: everything is off and locked.
NIGHT = datetime(2026, 1, 15, 3, tzinfo=UTC)
# The prepared data folder was written a minute before the tests start.
MINUTE_S = 60
AT_NIGHT = Path(__file__).with_name("at_night")
SENTENCE = "Remember that the front door is green"
NO_HOME = {"SASH_HOME": "none"}


def run(*arguments, input=None, **environment):
    return subprocess.run(
        [SASH, *map(str, arguments)],
        input=input,
        capture_output=True,
        timeout=WAIT_S,
        env={"COLUMNS": "120", **environment},
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
    )


@dataclass
class CommandLine:
    """Runs `sash` with its own data folder, without the user's settings, and with the demo home at night."""

    folder: Path
    shift_s: float = field(default_factory=lambda: (NIGHT - datetime.now(UTC)).total_seconds())

    def __call__(self, *arguments, input=None, **environment):
        return run(*arguments, input=input, **self.environment | environment)

    @property
    def data(self):
        return self.folder / "data"

    @property
    def environment(self):
        clock = {"PYTHONPATH": str(AT_NIGHT), "CLOCK_SHIFT_S": str(self.shift_s)}
        return {"HOME": str(self.folder), "SASH_DATA": str(self.data), **clock}


def chat_once(cli, *arguments, **environment):
    """Send one message to the session "chat", and return its id. Without options, copy a prepared data folder."""
    if arguments or environment or cli.data.exists():
        return chat_anew(cli, *arguments, **environment)
    template = CommandLine(cli.folder.parent / "template", cli.shift_s - MINUTE_S)
    session_file = template.folder / "session_id"
    if not session_file.exists():
        template.folder.mkdir(exist_ok=True)
        session_file.write_text(chat_anew(template))
    shutil.copytree(template.data, cli.data)
    return session_file.read_text()


def chat_anew(cli, *arguments, **environment):
    done = cli("chat", *arguments, input=f"{SENTENCE}\n", **NO_HOME | environment)
    assert done.returncode == 0, done.stderr
    return list_sessions(cli, **environment)[0]["id"]


def list_sessions(cli, *arguments, **environment):
    return json.loads(cli("sessions", "--json", *arguments, **environment).stdout)["sessions"]


def snapshot(folder):
    """Return all files of a folder with the time of their last change."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def model_at(wire, **others):
    """Return the environment that makes `sash` use the fake model provider."""
    model = {"SASH_MODEL": "gpt-test", "SASH_API_KEY": "sk-test", "SASH_API_BASE": f"{wire.url}/v1"}
    return {**model, **NO_HOME, **others}


def closed_port():
    """Return a port on which no program listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def talk(cli, *lines, arguments=(), **environment):
    """Run a chat through a pipe, and return its output."""
    done = cli("chat", *arguments, input="".join(f"{line}\n" for line in lines), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
