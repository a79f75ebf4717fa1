"""Times are those of the home, also if the machine is in another time zone."""

import asyncio
from datetime import UTC, datetime

import pytest
from freezegun.api import FrozenDateTimeFactory
from homeassistant.components.recorder import Recorder
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.components.recorder.common import async_wait_recording_done

from tests.ha.inside.talking_house import calls, open_house, said_by
from tests.models.wire import failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

LIGHT = "light.bed_light"
# In Tokyo it is already the next day.
EVENING = datetime(2026, 11, 18, 20, 30, tzinfo=UTC)


@pytest.fixture
async def in_tokyo(hass: HomeAssistant) -> None:
    await hass.config.async_set_time_zone("Asia/Tokyo")


@pytest.mark.usefixtures("in_tokyo")
async def test_the_model_reads_the_time_of_the_home(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    freezer.move_to(EVENING)
    async with open_house(hass, said("Fine.")) as house:
        await house.say("tell me a story")
        assert "2026-11-19" in house.read_prompts()[-1] and "05:30" in house.read_prompts()[-1]


async def test_a_new_time_zone_of_the_home_is_used_soon(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")) as house:
        # Its minutes differ from those of other zones.
        await hass.config.async_update(time_zone="Asia/Kathmandu")
        async with asyncio.timeout(60):
            while str(house.data.runtime.home.time_zone) != "Asia/Kathmandu":
                await asyncio.sleep(0.01)
        before = dt_util.now()
        await house.say("tell me a story")
        last = house.wire.requests[-1].body["messages"][-1]["content"]
        assert any(f"{at:%Y-%m-%d %H:%M}" in last for at in (before, dt_util.now()))


@pytest.mark.usefixtures("in_tokyo")
@pytest.mark.parametrize("own_engine", [True, False])
async def test_the_time_is_told(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory, own_engine: bool
) -> None:
    freezer.move_to(EVENING)
    async with open_house(hass, failed(500), use_home_assistant_intents=not own_engine) as house:
        assert "5:30" in said_by(await house.say("what time is it"))


@pytest.mark.parametrize(
    "tool",
    [
        calls("get_history", entity_ids=[LIGHT], hours=1),
        calls("get_logbook", entity_ids=[LIGHT], hours=1),
        calls("get_states", entity_ids=[LIGHT]),
    ],
    ids=["history", "logbook", "states"],
)
async def test_the_past_is_told_in_the_time_of_the_home(
    recorder_mock: Recorder, hass: HomeAssistant, tool
) -> None:
    await hass.config.async_set_time_zone("Asia/Tokyo")
    for name in ("history", "logbook"):
        assert await async_setup_component(hass, name, {})
    async with open_house(hass, tool, said("Well.")) as house:
        await hass.services.async_call("light", "turn_on", {"entity_id": LIGHT}, blocking=True)
        await async_wait_recording_done(hass)
        await house.say("tell me what the lamp did")
        result = house.wire.requests[-1].body["messages"][-1]["content"]
        assert "+09:00" in result
        assert "+00:00" not in result and "Z" not in result
