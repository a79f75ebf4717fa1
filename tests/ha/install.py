"""Install a Home Assistant for the tests, beside the checkout: `python3 -m tests.ha.install`.

It goes to `$SASH_HA_CACHE`, or to `~/.cache/sash-ha`, takes about three minutes and 1 GB, and needs the network. Once
it is there it is used again. Home Assistant needs a newer Python than most machines have: if there is none, Debian's
is unpacked into the same folder, and the system stays as it is.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.installation import NotInstalled, lock_file, run_program, tell

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PYTHON = "3.14"
OLDEST_PYTHON = (3, 14, 2)
SUITE = "forky"
LONGEST_STEP_S = 900
MAX_LOCK_WAIT_S = 1800
# The name of Debian's folder of libraries, and of the program in it that loads them.
LIBRARIES = {
    "x86_64": ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "aarch64": ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}
# Says what is missing of some requirements, and of theirs; run by the Python that they are installed for.
CHECK = """
import sys, importlib.metadata as installed
from packaging.requirements import Requirement
import ssl, sqlite3, homeassistant.core
wanted, seen = sys.argv[1:], set()
while wanted:
    requirement = Requirement(wanted.pop())
    if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
        continue
    version = installed.version(requirement.name)
    if not requirement.specifier.contains(version, prereleases=True):
        sys.exit(f"{requirement} is wanted, {version} is there")
    if requirement.name not in seen:
        seen.add(requirement.name)
        wanted += installed.requires(requirement.name) or []
"""


def cache() -> Path:
    """Where Home Assistant is, or will be."""
    return Path(os.environ.get("SASH_HA_CACHE") or Path.home() / ".cache" / "sash-ha").absolute()


def install() -> Path:
    """Return the program `hass`; install it if it is missing, unfinished, broken, or of another version."""
    folder = cache()
    with lock_file(folder / "lock", MAX_LOCK_WAIT_S):
        if not _is_whole(folder):
            started = time.monotonic()
            tell(f"Installing Home Assistant for the tests into {folder}: about three minutes ...")
            has_grown = _has_grown(folder)
            _stamp(folder).unlink(missing_ok=True)
            if has_grown:
                _install_requirements(folder)
            if not has_grown or _fault(folder):
                _install_into(folder)
            if fault := _fault(folder):
                raise NotInstalled(f"the new installation does not work: {fault}")
            _stamp(folder).write_text(
                json.dumps({"fingerprint": _fingerprint(), "requirements": _requirements()})
            )
            tell(f"Installed in {time.monotonic() - started:.0f} s.")
    return folder / "venv" / "bin" / "hass"


def environment() -> dict[str, str]:
    """Return the environment for Home Assistant. It lets Python keep bytecode, so that a start is four times faster."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _stamp(folder: Path) -> Path:
    return folder / "ready.json"


def _fingerprint() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def _is_whole(folder: Path) -> bool:
    """Say whether it was finished, and still works."""
    return _read_stamp(folder).get("fingerprint") == _fingerprint() and not _fault(folder)


def _has_grown(folder: Path) -> bool:
    """Say whether it was finished, and since then requirements were only added."""
    installed = _read_stamp(folder).get("requirements")
    return bool(installed) and set(installed) <= set(_requirements())


def _read_stamp(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_stamp(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def _fault(folder: Path) -> str:
    """Say what is wrong with an installation; nothing if it works."""
    try:
        _run(folder / "venv" / "bin" / "python", "-c", CHECK, *_requirements())
    except NotInstalled as error:
        return str(error)
    return ""


def _requirements() -> list[str]:
    lines = REQUIREMENTS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _install_into(folder: Path) -> None:
    for name in ("venv", "uv"):
        shutil.rmtree(folder / name, ignore_errors=True)
    python = _python(folder)
    tell(f"- an environment for {python}")
    _run(python, "-m", "venv", "--without-pip", folder / "venv")
    _run(sys.executable, "-m", "venv", folder / "uv")
    _run(folder / "uv" / "bin" / "pip", "install", "--quiet", "uv")
    _install_requirements(folder)


def _install_requirements(folder: Path) -> None:
    """Install what is missing of the requirements, with its bytecode."""
    tell("- Home Assistant and what it needs")
    target = folder / "venv" / "bin" / "python"
    pip, uv = folder / "uv" / "bin" / "pip", folder / "uv" / "bin" / "uv"
    _run(uv, "pip", "install", "--quiet", "--python", target, "-r", REQUIREMENTS, **_package_index(pip))
    tell("- its bytecode")
    _run(target, "-m", "compileall", "-q", "-j", "0", folder / "venv" / "lib")


def _package_index(pip: Path) -> dict[str, str]:
    """uv does not read pip's settings: tell it of the mirror and the certificates that this machine uses."""
    settings = dict(line.partition("=")[::2] for line in _run(pip, "config", "list").splitlines())
    found = {"UV_SYSTEM_CERTS": "true"}
    if index := settings.get("global.index-url"):
        found["UV_DEFAULT_INDEX"] = index.strip("'")
    return found


def _python(folder: Path) -> Path:
    """Return a Python that is new enough: the machine's own, or Debian's."""
    own = shutil.which(f"python{PYTHON}")
    if own and _is_new_enough(Path(own)):
        return Path(own)
    unpacked = folder / "py" / "usr" / "bin" / f"python{PYTHON}"
    complete = folder / "py" / "complete"
    if not complete.exists() or not _is_new_enough(unpacked):
        tell(f"- Python {PYTHON}, from Debian")
        _unpack_python(folder / "py", unpacked)
        if not _is_new_enough(unpacked):
            raise NotInstalled(f"Debian {SUITE} has no Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
        complete.touch()
    return unpacked


def _is_new_enough(python: Path) -> bool:
    try:
        version = _run(python, "-c", "import ssl, sqlite3, sys; print(*sys.version_info[:3])")
    except NotInstalled:
        return False
    return tuple(map(int, version.split())) >= OLDEST_PYTHON


def _unpack_python(root: Path, python: Path) -> None:
    """Unpack Debian's newer Python with the libraries that it needs, and link a launcher that uses those."""
    if platform.machine() not in LIBRARIES or not all(map(shutil.which, ("apt-get", "dpkg", "gcc"))):
        raise NotInstalled(
            f"there is no Python {PYTHON} on this machine, and Debian's cannot be unpacked: that needs apt-get, dpkg"
            f" and gcc on {' or '.join(LIBRARIES)}"
        )
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        work.chmod(0o755)
        for package in _download(work):
            if _is_wanted(package.name):
                _run("dpkg", "-x", package, root)
        _link(work, root, python)
    (root / f"usr/lib/python{PYTHON}/EXTERNALLY-MANAGED").unlink(missing_ok=True)


def _download(work: Path) -> list[Path]:
    """Let apt find out what Python needs, in folders of its own, as if nothing was installed."""
    for name in ("lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (work / "sources.list").write_text(f"deb [signed-by={keyring}] {_mirror()} {SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
    }
    apt = ["apt-get", "-qq", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    _run(*apt, "update")
    packages = (f"python{PYTHON}", f"libpython{PYTHON}", f"libpython{PYTHON}-dev", "libturbojpeg0")
    _run(*apt, "-y", "--download-only", "install", *packages)
    return sorted((work / "cache" / "archives").glob("*.deb"))


def _is_wanted(package: str) -> bool:
    """The system's compiler goes with the system's headers, not with these."""
    if package.startswith(("libc6-dev", "libcrypt-dev", "libc-dev-bin", "linux-libc")):
        return False
    return package.startswith(("lib", f"python{PYTHON}", "zlib1g", "tzdata"))


def _link(work: Path, root: Path, python: Path) -> None:
    """Debian's own program would load the system's older libraries: link one that loads the unpacked ones."""
    folder, loader = LIBRARIES[platform.machine()]
    libraries = root / "usr/lib" / folder
    loaders = [path for path in root.rglob(loader) if path.is_file() and not path.is_symlink()]
    if not loaders:
        raise NotInstalled(f"Debian's packages have no {loader}")
    source = work / "launcher.c"
    source.write_text(
        "int Py_BytesMain(int, char **); int main(int c, char **v) { return Py_BytesMain(c, v); }"
    )
    linker = [
        "--unresolved-symbols=ignore-in-shared-libs",
        "--allow-shlib-undefined",
        f"--dynamic-linker={loaders[0]}",
        "--disable-new-dtags",
        f"-rpath={libraries}",
        f"-rpath-link={libraries}",
    ]
    python.unlink(missing_ok=True)
    _run(
        *("gcc", "-O2", "-o", python, source, f"-L{libraries}", f"-l:libpython{PYTHON}.so.1.0"),
        *(f"-Wl,{option}" for option in linker),
    )
    # So that packages with C code can be built.
    headers = root / f"usr/include/python{PYTHON}/{folder}"
    headers.unlink(missing_ok=True)
    headers.symlink_to(f"../{folder}")


def _mirror() -> str:
    """Return the address of Debian's packages that this machine uses."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    address = re.compile(r"^(?:URIs:|deb )[^#\n]*?(\S+://\S+/debian/?)(?=\s|$)", re.MULTILINE)
    for file in files:
        if file.is_file() and (found := address.search(file.read_text(errors="replace"))):
            return found[1]
    raise NotInstalled("this machine's apt knows no address of Debian's packages")


def _run(*command: object, **variables: str) -> str:
    return run_program([str(part) for part in command], LONGEST_STEP_S, env=environment() | variables)


if __name__ == "__main__":
    try:
        tell(str(install()))
    except NotInstalled as error:
        sys.exit(f"Home Assistant cannot be installed: {error}")
