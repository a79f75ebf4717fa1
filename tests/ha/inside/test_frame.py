"""The frame of these tests: Home Assistant finds this repository's integrations and writes to its own folder."""

from pathlib import Path

import pytest
from homeassistant.components.recorder import Recorder
from homeassistant.core import HomeAssistant

import custom_components

ROOT = Path(__file__).resolve().parents[3]


async def test_custom_integrations_are_those_of_this_repository(hass: HomeAssistant) -> None:
    assert [Path(path) for path in custom_components.__path__] == [ROOT / "custom_components"]


async def test_each_test_has_a_configuration_folder_of_its_own(hass: HomeAssistant, tmp_path: Path) -> None:
    assert Path(hass.config.config_dir) == tmp_path


@pytest.mark.usefixtures("hass")
async def test_a_recorder_can_be_used(recorder_mock: Recorder) -> None:
    assert recorder_mock.is_alive()
