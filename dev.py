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
# `test --fast` runs these folders of tests, without the slow files.
FAST_FOLDERS = ("contract", "home", "intents", "models", "runtime", "unit")
SLOW_FILES = ("home/test_demo_home.py", "intents/test_languages.py")
CORES = os.cpu_count() or 1
MEMORY_FOLDER = Path("/dev/shm")
MIN_FREE_MEMORY_BYTES = 1 << 30


def _install(*extras: str) -> None:
    """Install Sash with these extras into `.venv`; rebuild `.venv` if the requirements have changed."""
    fingerprint = _fingerprint()
    stamp = _read_stamp()
    installed = set(stamp["extras"]) if stamp["fingerprint"] == fingerprint else set()
    if installed.issuperset(extras):
        return
    if Path(sys.prefix).resolve() == VENV.resolve():
        sys.exit("dev.py must rebuild .venv and cannot run from it: deactivate .venv, or use another python3")
    started = time.monotonic()
    print(f"Setting up .venv for {', '.join(extras)}. The first time takes a minute or two ...", flush=True)
    if not installed:
        shutil.rmtree(VENV, ignore_errors=True)
        _run_or_exit(sys.executable, "-m", "venv", "--without-pip", str(VENV))
    _pip_install(f".[{','.join(sorted({*extras, *installed}))}]")
    STAMP.write_text(json.dumps({"fingerprint": fingerprint, "extras": sorted({*extras, *installed})}))
    print(f"Set up in {time.monotonic() - started:.0f} s.\n", flush=True)


def setup(arguments: list[str]) -> int:
    """Set up `.venv` for development. The other commands do this themselves."""
    if arguments:
        print("usage: dev.py setup")
        return 2
    _install("dev")
    return 0


def run(arguments: list[str]) -> int:
    """Start the server, by default with the demo home and the offline model."""
    _install("server", "home", "openai")
    return _replace_process(BIN / "sash", "serve", *arguments)


def test(arguments: list[str]) -> int:
    """Run all tests in parallel; `--fast` runs the core tests in a minute. Other arguments go to pytest."""
    _install("dev")
    _keep_test_files_in_memory()
    options = [argument for argument in arguments if argument != "--fast"]
    if not any(option.startswith(("-n", "--numprocesses", "--pdb")) for option in options):
        # Some of the other tests wait for programs, so one more worker than cores stays busy.
        options = ["-n", str(CORES if "--fast" in arguments else CORES + 1), *options]
    if "--fast" not in arguments:
        return _run(BIN / "python", "-m", "pytest", *options)
    selection = [f"tests/{name}" for name in FAST_FOLDERS]
    selection += [f"--ignore=tests/{name}" for name in SLOW_FILES]
    code = _run(BIN / "python", "-m", "pytest", *options, *selection)
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/test_*.py")}
    skipped = sorted({*folders.difference(FAST_FOLDERS), *SLOW_FILES})
    names = ", ".join(f"tests/{name}" for name in skipped)
    print(f"--fast skipped: {names}. `python3 dev.py test` runs everything.")
    return code


def _keep_test_files_in_memory() -> None:
    """Put pytest's temporary files in memory if there is room: on a disk, each write of a store waits."""
    if os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > MIN_FREE_MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def check(arguments: list[str]) -> int:
    """Check format, lint, types and import direction; `--fix` corrects format and lint."""
    fix = arguments == ["--fix"]
    if arguments and not fix:
        print("usage: dev.py check [--fix]")
        return 2
    _install("dev")
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
    """Run a benchmark, side by side with comparable libraries: bench NAME [--quick] [--json FILE]."""
    names = sorted(p.stem for p in (ROOT / "benchmarks").glob("*.py") if not p.stem.startswith("_"))
    if not arguments or arguments[0] not in names:
        print(f"usage: dev.py bench NAME [--quick] [--json FILE]; NAME is one of: {', '.join(names)}")
        return 2
    _install("bench")
    return _run(BIN / "python", "-m", f"benchmarks.{arguments[0]}", *arguments[1:])


def soak(arguments: list[str]) -> int:
    """Kill the server again and again while clients use it, and check its stores: soak [--minutes 10]."""
    _install("dev")
    return _run(BIN / "python", "-m", "tests.soak", *arguments)


def package(arguments: list[str]) -> int:
    """Build the Home Assistant integration as HACS installs it: package [FILE], by default dist/sash.zip."""
    return _run(sys.executable, ROOT / "custom_components" / "build_zip.py", *map(_from_here, arguments))


def _from_here(path: str) -> Path:
    """Return a path as an absolute one, because commands run in the project folder."""
    return Path(path).absolute()


def _read_stamp() -> dict[str, Any]:
    """Return the fingerprint and extras of the last setup; an interrupted setup counts as none."""
    try:
        stamp = json.loads(STAMP.read_text())
        return {"fingerprint": stamp["fingerprint"], "extras": stamp["extras"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"fingerprint": None, "extras": ()}


def _fingerprint() -> str:
    """Return a hash of the Python version, the project folder and the requirements."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _pip_install(requirement: str) -> None:
    """Install into `.venv` with the pip of the running Python, because `.venv` has no pip."""
    python = str(BIN / "python")
    constraints = str(ROOT / "constraints.txt")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    _run_or_exit(*pip, "install", "-qq", "--constraint", constraints, "--editable", requirement)


def _run_or_exit(*command: str) -> None:
    if code := _run(*command):
        print(f"dev.py: this command failed, see above: {' '.join(command)}", file=sys.stderr)
        sys.exit(code)


def _replace_process(*command: str | Path) -> int:
    """Replace this process by the command, so that a stop signal reaches the command directly."""
    if os.name != "nt" and Path(command[0]).exists():
        os.execve(str(command[0]), [str(part) for part in command], _environment())
    return _run(*command)


def _environment() -> dict[str, str]:
    """Return the environment without settings of Python. Without bytecode, programs start more slowly."""
    removed = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in removed}


def _run(*command: str | Path) -> int:
    """Run a command in the project folder and return its exit code."""
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
            print(f"  {command:7} {(function.__doc__ or '').splitlines()[0]}")
        return 0 if name in ("-h", "--help") else 2
    return COMMANDS[name](arguments)


COMMANDS = {
    "setup": setup,
    "run": run,
    "test": test,
    "check": check,
    "bench": bench,
    "soak": soak,
    "package": package,
}


if __name__ == "__main__":
    sys.exit(main())
