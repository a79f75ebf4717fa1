"""A Home Assistant in the process of each test (`hass`), which loads the integrations of this repository."""

# This import comes first: the test tools bring another package of this name, for their own integrations.
import custom_components  # noqa: F401, I001

from collections.abc import AsyncIterator

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component

from custom_components.sash.hass_home import HassHome
from tests.ha.inside.furnished_house import furnish


@pytest.fixture
def hass_config_dir(hass_tmp_config_dir: str) -> str:
    """A configuration folder for each test, so that a test may write files."""
    return hass_tmp_config_dir


@pytest.fixture
def mock_recorder_before_hass(request: pytest.FixtureRequest) -> None:
    """Prepare the recorder's database before `hass` starts, in the tests that use a recorder."""
    if "recorder_db_url" in request.fixturenames:
        request.getfixturevalue("recorder_db_url")


@pytest.fixture(autouse=True)
def load_custom_integrations(request: pytest.FixtureRequest) -> None:
    """Let Home Assistant find the integrations of this repository."""
    if "hass" in request.fixturenames:
        request.getfixturevalue("enable_custom_integrations")


@pytest.fixture
async def house(hass: HomeAssistant) -> AsyncIterator[HomeAssistant]:
    """A Home Assistant with demo devices, areas, automations, scripts, scenes and templates."""
    async with furnish(hass):
        yield hass


@pytest.fixture
async def hass_home(hass: HomeAssistant) -> AsyncIterator[HassHome]:
    """The home of `hass`, open."""
    assert await async_setup_component(hass, "homeassistant", {})
    home = HassHome(hass)
    await home.open()
    yield home
    await home.close()
