"""Shared by all tests: the same examples every time, an order that can be shuffled, notices in the last lines."""

import random
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.notices import write_notices
from tests.scheduling import GroupScheduling

settings.register_profile("sash", derandomize=True, deadline=None)
settings.load_profile("sash")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run the tests in a random order; a seed gives one order"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """Keep groups together, unless the caller asks for another way than `-n`."""
    return GroupScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Write the notices below everything else."""
    yield
    write_notices(terminalreporter)
