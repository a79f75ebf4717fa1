"""The page for system health: the provider, the database, and open turns."""

import asyncio
from typing import Any

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry, get_system_health_info

from custom_components.sash.const import DOMAIN
from tests.ha.inside.talking_house import ACTING, open_house
from tests.models.wire import failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")


async def read(hass: HomeAssistant) -> dict[str, Any]:
    assert await async_setup_component(hass, "system_health", {})
    await hass.async_block_till_done()
    info = await get_system_health_info(hass, DOMAIN)
    return {key: await value if asyncio.iscoroutine(value) else value for key, value in info.items()}


async def test_the_state_of_all_providers_is_told(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await house.say("unlock the front door", room="Kitchen")
        local = MockConfigEntry(domain=DOMAIN, title="Local", data={"provider": "local"})
        local.add_to_hass(hass)
        assert await hass.config_entries.async_setup(local.entry_id)
        info = await read(hass)
        size = info.pop("database_size")
        assert size.endswith(" MB")
        assert float(size.removesuffix(" MB")) > 0
        assert info == {
            "version": "0.1.0",
            "providers": 2,
            "sessions": 2,
            "turns": 2,
            "open_turns": 1,
            "can_reach_provider": "ok",
        }


async def test_a_provider_that_cannot_be_reached_is_told(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        data = {**house.entry.data, "api_base": "http://127.0.0.1:1/v1"}
        hass.config_entries.async_update_entry(house.entry, data=data)
        await hass.async_block_till_done()
        assert (await read(hass))["can_reach_provider"] == {"type": "failed", "error": "unreachable"}


async def test_a_house_without_a_model_needs_no_provider(hass: HomeAssistant) -> None:
    local = MockConfigEntry(domain=DOMAIN, title="Local", data={"provider": "local"})
    local.add_to_hass(hass)
    assert await async_setup_component(hass, "homeassistant", {})
    assert await hass.config_entries.async_setup(local.entry_id)
    info = await read(hass)
    assert "can_reach_provider" not in info
    assert info["providers"] == 1
    await hass.config_entries.async_unload(local.entry_id)
