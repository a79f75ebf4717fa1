"""Notices in the last lines of a run: they name the tests that could not run, and the reason."""

from pathlib import PurePosixPath
from typing import NoReturn

import pytest

NOT_TESTED = "NOT TESTED"


def skip_not_tested(title: str, reason: str) -> NoReturn:
    """Skip a test whose requirements are missing; `NOT TESTED` and the title head the notice."""
    pytest.skip(f"{NOT_TESTED} {title}: {reason}")


def write_notices(reporter: pytest.TerminalReporter) -> None:
    """Write one notice for each folder and reason; the reports also come from the workers of a parallel run."""
    for folder, title, reason in sorted(
        {notice for report in reporter.stats.get("skipped", []) for notice in _parse(report)}
    ):
        reporter.write_sep("!", title, red=True, bold=True)
        reporter.write_line(f"{folder} did not run, {reason}", red=True)
        reporter.write_sep("!", red=True, bold=True)


def _parse(report: pytest.TestReport) -> list[tuple[str, str, str]]:
    """Return the folder, the title and the reason of a test that `skip_not_tested` skipped."""
    if not isinstance(report.longrepr, tuple):
        return []
    title, _, reason = report.longrepr[2].removeprefix("Skipped: ").partition(": ")
    folder = str(PurePosixPath(report.nodeid.partition("::")[0]).parent)
    return [(folder, title, reason)] if title.startswith(NOT_TESTED) else []
