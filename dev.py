#!/usr/bin/env python3
"""Set up, run, test, check and measure Sash. Needs Python 3.11 or newer with pip, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "sash-setup.json"
# The folders of tests that `test --fast` runs, and the files in them that it leaves out.
FAST = ("contract", "home", "intents", "models", "runtime", "unit")
SLOW = ("home/test_demo_home.py", "intents/test_languages.py", "models/test_offline_house.py")
CORES = os.cpu_count() or 1
MEMORY = Path("/dev/shm")
MIN_MEMORY_BYTES = 1 << 30


def setup(*extras: str) -> None:
    """Make `.venv` hold Sash with these extras; built anew when the project's requirements changed."""
    wanted = _fingerprint()
    stamp = _read_stamp()
    installed = set(stamp["extras"]) if stamp["fingerprint"] == wanted else set()
    if installed.issuperset(extras):
        return
    if Path(sys.prefix).resolve() == VENV.resolve():
        sys.exit(
            "dev.py has to rebuild .venv and cannot run from it: use another python3, or leave .venv first"
        )
    started = time.monotonic()
    print(f"Setting up .venv for {', '.join(extras)}: the first time takes a minute or two ...", flush=True)
    if not installed:
        shutil.rmtree(VENV, ignore_errors=True)
        _call(sys.executable, "-m", "venv", "--without-pip", str(VENV))
    _pip_install(f".[{','.join(sorted({*extras, *installed}))}]")
    STAMP.write_text(json.dumps({"fingerprint": wanted, "extras": sorted({*extras, *installed})}))
    print(f"Set up in {time.monotonic() - started:.0f} s.\n", flush=True)


def prepare(arguments: list[str]) -> int:
    """Set up `.venv` for development; the other commands do what they need of it first."""
    if arguments:
        print("usage: dev.py setup")
        return 2
    setup("dev")
    return 0


def run(arguments: list[str]) -> int:
    """The main job: the server, with the demo house and the offline model unless configured."""
    setup("server", "home", "openai")
    return _become(BIN / "sash", "serve", *arguments)


def test(arguments: list[str]) -> int:
    """All tests, in parallel; `--fast` runs the core's in a minute. Other arguments go to pytest."""
    setup("dev")
    _use_memory_for_files()
    options = [argument for argument in arguments if argument != "--fast"]
    if not any(option.startswith(("-n", "--numprocesses", "--pdb")) for option in options):
        # Some of all tests wait for other programs, so that one more worker than cores is busy.
        options = ["-n", str(CORES if "--fast" in arguments else CORES + 1), *options]
    if "--fast" not in arguments:
        return _run(BIN / "python", "-m", "pytest", *options)
    chosen = [f"tests/{name}" for name in FAST] + [f"--ignore=tests/{name}" for name in SLOW]
    code = _run(BIN / "python", "-m", "pytest", *options, *chosen)
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/test_*.py")}
    left_out = ", ".join(f"tests/{name}" for name in sorted({*folders.difference(FAST), *SLOW}))
    print(f"--fast left out: {left_out}. `python3 dev.py test` runs everything.")
    return code


def _use_memory_for_files() -> None:
    """Let pytest keep its files in memory if there is room: the stores wait for a disk at each write."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MIN_MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def check(arguments: list[str]) -> int:
    """Format, lint, types, import direction; `--fix` mends what can be mended."""
    fix = arguments == ["--fix"]
    if arguments and not fix:
        print("usage: dev.py check [--fix]")
        return 2
    setup("dev")
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


def _read_stamp() -> dict[str, Any]:
    """Read what was set up; a set-up that was interrupted left no stamp, or an unreadable one."""
    try:
        stamp = json.loads(STAMP.read_text())
        return {"fingerprint": stamp["fingerprint"], "extras": stamp["extras"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"fingerprint": None, "extras": ()}


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
    if code := _run(*command):
        print(f"dev.py: this failed, see above: {' '.join(command)}", file=sys.stderr)
        sys.exit(code)


def _become(*command: str | Path) -> int:
    """Run a command in the place of this process, so that a signal to stop reaches it and nobody else."""
    if os.name != "nt" and Path(command[0]).exists():
        os.execve(str(command[0]), [str(part) for part in command], _environment())
    return _run(*command)


def _environment() -> dict[str, str]:
    """Return the environment without settings of Python: without bytecode each program starts more slowly."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _run(*command: str | Path) -> int:
    try:
        return subprocess.run([str(part) for part in command], cwd=ROOT, env=_environment()).returncode
    except KeyboardInterrupt:
        return 130
    except FileNotFoundError:
        print(f"dev.py: {command[0]} is missing: delete .venv and try again", file=sys.stderr)
        return 1


def main() -> int:
    if sys.version_info < (3, 11):
        sys.exit(f"Sash needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
    name, arguments = (sys.argv[1] if len(sys.argv) > 1 else "--help"), sys.argv[2:]
    if name not in COMMANDS:
        print(f"{__doc__}\nusage: dev.py COMMAND [ARGUMENTS]\n")
        for command, function in COMMANDS.items():
            print(f"  {command:6} {(function.__doc__ or '').splitlines()[0]}")
        return 0 if name in ("-h", "--help") else 2
    return COMMANDS[name](arguments)


COMMANDS = {"setup": prepare, "run": run, "test": test, "check": check, "bench": bench}


if __name__ == "__main__":
    sys.exit(main())
