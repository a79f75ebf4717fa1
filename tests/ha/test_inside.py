"""Runs the tests inside Home Assistant: `tests/ha/inside`, with its own Python and test tools."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.ha.conftest import install_or_skip
from tests.ha.install import environment

ROOT = Path(__file__).parents[2]
WITHIN_S = 1500
# Per cent of the lines of the integration.
MIN_COVERAGE = 95


def test_the_tests_inside_home_assistant_pass_and_cover_the_integration(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hass = install_or_skip(request.config)
    ran = subprocess.run(
        [
            *(
                hass.with_name("python"),
                "-m",
                "pytest",
                "-c",
                "tests/ha/inside/pytest.ini",
                "tests/ha/inside",
            ),
            *("-n", str(os.cpu_count() or 1), "--show-capture=no", "--tb=short"),
            *(
                "--cov=custom_components.sash",
                f"--cov-fail-under={MIN_COVERAGE}",
                "--cov-report=term:skip-covered",
            ),
        ],
        cwd=ROOT,
        env=environment() | {"COVERAGE_FILE": str(tmp_path / "coverage")},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN_S,
    )
    assert ran.returncode == 0, f"{ran.stdout[-20000:]}\n{ran.stderr[-2000:]}"
