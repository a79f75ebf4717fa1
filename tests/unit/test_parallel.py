"""A parallel run keeps groups of tests together, and shows the notices of all workers."""

from pathlib import Path

import pytest

from tests.notices import skip_not_tested, write_notices
from tests.scheduling import group_of

ROOT = Path(__file__).parents[2]


class Reporter:
    """Keep the lines that a terminal would show."""

    def __init__(self, *reports):
        self.stats = {"skipped": reports}
        self.lines = []

    def write_sep(self, sep, title="", **_):
        self.lines.append(title)

    def write_line(self, line, **_):
        self.lines.append(line)


def skipped(nodeid, reason):
    where = ("conftest.py", 1, f"Skipped: {reason}")
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "skipped", where, "setup")


def test_the_tests_of_a_group_stay_in_one_worker():
    first, second = "tests/ha/test_house.py::test_a[b]", "tests/ha/test_remote.py::TestStates::test_c"
    assert group_of(first) == group_of(second) != first
    german, also_german, polish = (
        f"tests/intents/test_languages.py::{n}" for n in ("x[de]", "y[de]", "x[pl]")
    )
    assert group_of(german) == group_of(also_german) != group_of(polish)
    assert group_of("tests/unit/test_a.py::test_b[de]") == "tests/unit/test_a.py::test_b[de]"


def test_the_files_of_the_groups_exist():
    assert list(ROOT.glob("tests/ha/test_*.py"))
    assert (ROOT / "tests/intents/test_languages.py").exists()


def test_a_folder_that_could_not_run_has_one_notice():
    with pytest.raises(pytest.skip.Exception) as caught:
        skip_not_tested("WITH REAL CLIENTS", "they cannot be installed: no npm: none")
    reporter = Reporter(
        *(skipped(f"tests/clients/test_a.py::test_{n}", caught.value.msg) for n in range(3)),
        skipped("tests/other/test_b.py::test_c", "curl is not installed"),
    )
    write_notices(reporter)
    assert reporter.lines == [
        "NOT TESTED WITH REAL CLIENTS",
        "tests/clients did not run, they cannot be installed: no npm: none",
        "",
    ]
