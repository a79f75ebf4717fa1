"""A real Home Assistant for the tests in this folder: installed once for a machine, started once for a run."""

import asyncio
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ha.install import NotInstalled, install
from tests.ha.instance import House, furnish

_missing = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def running_house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A Home Assistant that runs until the end of the tests."""
    if reason := request.config.stash.get(_missing, ""):
        pytest.skip(reason)
    try:
        hass = _install(request.config)
    except NotInstalled as error:
        request.config.stash[_missing] = str(error)
        pytest.skip(str(error))
    house = House(hass, tmp_path_factory.mktemp("ha") / "config")
    try:
        house.start_now()
        # In a thread, because a test's own event loop may be there already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, furnish(house)).result()
        yield house
    finally:
        house.kill_now()


@pytest.fixture
def house(running_house: House) -> House:
    """A running Home Assistant. It is started again if the last test stopped it."""
    if not running_house.is_running:
        running_house.start_now()
    return running_house


def _install(config: pytest.Config) -> Path:
    """Install with the output shown: it takes minutes the first time."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return install()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Report in the last lines if these tests did not run."""
    yield
    if reason := config.stash.get(_missing, ""):
        terminalreporter.write_sep("!", "NOT TESTED AGAINST A REAL HOME ASSISTANT", red=True, bold=True)
        terminalreporter.write_line(
            f"tests/ha did not run, Home Assistant cannot be installed: {reason}", red=True
        )
        terminalreporter.write_sep("!", red=True, bold=True)
