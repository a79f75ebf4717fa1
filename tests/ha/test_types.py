"""Checks the types of the integration against the types of the real Home Assistant."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ha.conftest import install_or_skip
from tests.ha.install import PYTHON, cache, environment
from tests.installation import lock_file

ROOT = Path(__file__).parents[2]
# A first run takes half a minute, and a later one a few seconds.
WITHIN_S = 300


def test_the_integration_has_no_type_errors(request: pytest.FixtureRequest) -> None:
    python = install_or_skip(request.config).with_name("python")
    with lock_file(cache() / "mypy.lock", WITHIN_S):
        checked = subprocess.run(
            [
                # `dev.py check` checks the core. Home Assistant lacks some packages of it.
                *(
                    sys.executable,
                    "-m",
                    "mypy",
                    "--package",
                    "custom_components",
                    "--follow-imports",
                    "silent",
                ),
                *("--python-executable", python, "--python-version", PYTHON, "--cache-dir", cache() / "mypy"),
                *("--enable-error-code", "deprecated", "--enable-error-code", "truthy-bool"),
            ],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=WITHIN_S,
        )
    assert checked.returncode == 0, f"{checked.stdout}\n{checked.stderr}"
