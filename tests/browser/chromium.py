"""Finds Chromium for the browser tests, or installs Debian's package where the tests may do so."""

import os
import shutil
from pathlib import Path

from tests.installation import NotInstalled, lock_file, run_program, tell

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core")
MAX_INSTALL_S = 600
LOCK = Path.home() / ".cache" / "sash-chromium.lock"


def find_chromium() -> str:
    """Return the program. Install it first if it is missing. Raise `NotInstalled` with the reason if it cannot be."""
    with lock_file(LOCK, MAX_INSTALL_S):
        if (found := _find()) is not None:
            return found
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise NotInstalled("install Chromium, for example with `apt-get install chromium`")
        tell("installing Chromium for the browser tests; this takes a minute")
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        run_program(["apt-get", "update", "-qq"], MAX_INSTALL_S, env=environment)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
        run_program(install, MAX_INSTALL_S, env=environment)
        if (found := _find()) is None:
            raise NotInstalled("the package chromium has no program of that name")
        return found


def _find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
