"""A real Home Assistant for the tests in this folder: installed once for a machine, started once for a run."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ha.install import NotInstalled, install
from tests.ha.instance import House, furnish
from tests.notices import skip_not_tested

# These tests run in the process of Home Assistant, with its own Python.
collect_ignore = ["inside"]


@pytest.fixture(scope="session")
def running_house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A house that runs until the tests are over."""
    house = House(install_or_skip(request.config), tmp_path_factory.mktemp("ha") / "config")
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
    """A Home Assistant that runs, whatever the test before has done to it."""
    if not running_house.is_running:
        running_house.start_now()
    return running_house


def install_or_skip(config: pytest.Config) -> Path:
    """Return the program of Home Assistant. Its installation is shown: it takes minutes the first time."""
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return install()
    except NotInstalled as error:
        skip_not_tested("AGAINST A REAL HOME ASSISTANT", f"Home Assistant cannot be installed: {error}")
