#!/usr/bin/env python3
"""Set up, run, test, check and measure Sash. Needs Python 3.11 or newer with pip, and nothing else."""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "sash-setup.json"


def setup(*extras: str) -> None:
    """Make `.venv` hold Sash with these extras; built anew when the project's requirements changed."""
    wanted = _fingerprint()
    stamp = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    installed = set(stamp.get("extras", ())) if stamp.get("fingerprint") == wanted else set()
    if installed.issuperset(extras):
        return
    started = time.monotonic()
    print(f"Setting up .venv for {', '.join(extras)}: the first time takes a minute or two …", flush=True)
    if not installed:
        shutil.rmtree(VENV, ignore_errors=True)
        _call(sys.executable, "-m", "venv", "--without-pip", str(VENV))
    _pip_install(f".[{','.join(sorted({*extras, *installed}))}]")
    STAMP.write_text(json.dumps({"fingerprint": wanted, "extras": sorted({*extras, *installed})}))
    print(f"Set up in {time.monotonic() - started:.0f} s.\n", flush=True)


def run(arguments: list[str]) -> int:
    """The main job: for now the demo of the memory."""
    setup("server")
    return _run(BIN / "sash", "demo", *arguments)


def test(arguments: list[str]) -> int:
    """All tests."""
    setup("dev")
    return _run(BIN / "python", "-m", "pytest", *arguments)


def check(arguments: list[str]) -> int:
    """Format, lint, types, import direction; `--fix` mends what can be mended."""
    setup("dev")
    fix = "--fix" in arguments
    steps: list[tuple[str | Path, ...]] = [
        (BIN / "ruff", "format", *(() if fix else ("--check",)), "."),
        (BIN / "ruff", "check", *(("--fix",) if fix else ()), "."),
        (BIN / "mypy",),
        (BIN / "lint-imports",),
    ]
    failed = [Path(step[0]).name for step in steps if _run(*step)]
    print(f"check: {', '.join(failed)} failed" if failed else "check: all good")
    return 1 if failed else 0


def bench(arguments: list[str]) -> int:
    """Measure side by side with the peers: bench NAME [--quick] [--json FILE]."""
    names = sorted(p.stem for p in (ROOT / "benchmarks").glob("*.py") if not p.stem.startswith("_"))
    if not arguments or arguments[0] not in names:
        print(f"usage: dev.py bench NAME [--quick] [--json FILE]; NAME is one of: {', '.join(names)}")
        return 2
    setup("bench")
    return _run(BIN / "python", "-m", f"benchmarks.{arguments[0]}", *arguments[1:])


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _pip_install(*what: str) -> None:
    """Install into `.venv` with the pip of the Python that runs this: the venv needs none of its own."""
    python = str(BIN / "python")
    constraints = str(ROOT / "constraints.txt")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    _call(*pip, "install", "-qq", "--constraint", constraints, "--editable", *what)


def _call(*command: str) -> None:
    if _run(*command):
        sys.exit(f"dev.py: this failed, see above: {' '.join(command)}")


def _run(*command: str | Path) -> int:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        return subprocess.run([str(part) for part in command], cwd=ROOT, env=environment).returncode
    except KeyboardInterrupt:
        return 130


def main() -> int:
    if sys.version_info < (3, 11):
        sys.exit(f"Sash needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
    commands = {"setup": lambda _: setup("dev"), "run": run, "test": test, "check": check, "bench": bench}
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__)
    parser.add_argument("command", choices=commands)
    command, arguments = parser.parse_known_args()
    return commands[command.command](arguments) or 0


if __name__ == "__main__":
    sys.exit(main())
