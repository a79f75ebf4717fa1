"""The installation of the clients, with a fake npm."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mcp_clients import node
from tests.mcp_clients.node import NotInstalled, install

ROOT = Path(__file__).parents[2]
HALF = 'mkdir -p "$new/node_modules/half"'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache. Its PATH has the system's tools and those that a test adds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in ("sh", "mkdir", "sleep", "touch"):
        found = shutil.which(tool)
        assert found is not None
        (programs / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))
    return tmp_path


def give_npm(machine: Path, *lines: str) -> None:
    """Create an `npm` that runs this script in the folder of the installation."""
    npm = machine / "bin" / "npm"
    npm.write_text("\n".join(["#!/bin/sh", "new=$PWD", *lines, ""]))
    npm.chmod(0o755)


def installed(machine: Path) -> list[str]:
    """Return the content of the cache, without locks."""
    return sorted(path.name for path in (machine / "cache").iterdir() if path.suffix != ".lock")


def test_a_missing_npm_is_reported(machine: Path) -> None:
    with pytest.raises(NotInstalled, match="no npm"):
        install()
    assert installed(machine) == []


def test_a_failing_npm_is_quoted_and_leaves_nothing(machine: Path) -> None:
    give_npm(machine, HALF, 'echo "ENOTFOUND registry" >&2', "exit 1")
    with pytest.raises(NotInstalled, match="ENOTFOUND registry"):
        install()
    assert installed(machine) == []


def test_a_killed_installation_is_repeated(machine: Path) -> None:
    give_npm(machine, HALF, f'touch "{machine}/begun"', "sleep 600")
    begun = subprocess.Popen(
        [sys.executable, "-m", node.__name__], cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        ends_at = time.monotonic() + 60
        while not (machine / "begun").exists():
            assert begun.poll() is None
            assert time.monotonic() < ends_at
            time.sleep(0.01)
    finally:
        os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()
    assert not any(name == node.get_folder().name for name in installed(machine))

    give_npm(
        machine, '[ -e "$new/node_modules" ] && echo "there is a half" >&2', 'echo "empty" >&2', "exit 1"
    )
    with pytest.raises(NotInstalled, match="failed: empty"):
        install()


def test_another_version_uses_another_folder(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = node.get_folder()
    monkeypatch.setattr(node, "INSPECTOR", "99.0.0")
    assert node.get_folder() != before
    assert node.get_folder().parent == machine / "cache"
