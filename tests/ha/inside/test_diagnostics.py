"""Diagnostics: what helps to find a problem, without keys, names and words of conversations."""

import json
from typing import Any

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.sash.diagnostics import async_get_config_entry_diagnostics
from tests.ha.inside.talking_house import TalkingHouse, open_house
from tests.models.wire import failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")


async def read(house: TalkingHouse, hass_client: ClientSessionGenerator) -> dict[str, Any]:
    assert await async_setup_component(house.hass, "diagnostics", {})
    found: dict[str, Any] = await get_diagnostics_for_config_entry(house.hass, hass_client, house.entry)
    return found


async def test_the_diagnostics_tell_versions_settings_and_counts(
    hass: HomeAssistant, hass_client: ClientSessionGenerator
) -> None:
    async with open_house(hass, said("ok"), failed(404, "model_not_found"), max_steps=5) as house:
        await house.say("what do you know?", room="Kitchen")
        await house.say("what else do you know?", room="Kitchen")
        await house.data.usage.async_refresh()
        found = await read(house, hass_client)
        assert found["version"] == "0.1.0"
        assert found["provider"] == {
            "provider": "compatible",
            "api_base": f"{house.wire.url}/v1",
            "api_key": "**REDACTED**",
        }
        [agent] = found["agents"]
        assert agent["type"] == "conversation"
        assert agent["options"] == {"model": "m", "max_steps": 5}
        assert found["home"]["entities_by_domain"]["light"] == 6
        assert found["home"]["areas"] == 2
        store = found["store"]
        assert store["bytes"] > 0
        assert store["check"] == "ok"
        assert (store["owners"], store["sessions"], store["turns"], store["messages"]) == (1, 1, 2, 2)
        assert store["errors_7_days"] == {"model_unknown": 1}
        assert found["turns"]["today"]["total_requests"] == 2
        assert (found["turns"]["open"], found["turns"]["running"]) == (0, 0)


async def test_no_key_no_name_and_no_word_of_a_conversation_is_told(
    hass: HomeAssistant, hass_client: ClientSessionGenerator
) -> None:
    async with open_house(hass, said("The pineapple."), prompt="You serve Anna Pineapple.") as house:
        hass.config_entries.async_update_entry(
            house.entry,
            title="Anna's provider",
            data={
                **house.entry.data,
                "api_base": f"{house.wire.url.replace('//', '//anna:hunter2@')}/v1?key=hunter2",
            },
        )
        await hass.async_block_till_done()
        await house.data.runtime.home_ready(timeout_s=30)
        await house.say("remember that the pineapple belongs to Anna", room="Kitchen")
        await house.say("where is the pineapple?", room="Kitchen")
        text = json.dumps(await read(house, hass_client))
        for secret in ("a-key", "hunter2", "pineapple", "Pineapple", "Anna", "anna"):
            assert secret not in text
        assert house.wire.url.removeprefix("http://") in text


async def test_an_address_that_cannot_be_parsed_is_not_told(
    hass: HomeAssistant, hass_client: ClientSessionGenerator
) -> None:
    async with open_house(hass, said("ok")) as house:
        wrong = {**house.entry.data, "api_base": "http://anna:hunter2@[wrong/v1"}
        hass.config_entries.async_update_entry(house.entry, data=wrong)
        await hass.async_block_till_done()
        assert (await read(house, hass_client))["provider"]["api_base"] == "**REDACTED**"


async def test_a_store_that_cannot_be_read_is_told(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.data.store.close()
        found = await async_get_config_entry_diagnostics(hass, house.entry)
        assert found["store"]["error"] == "store_unavailable"
        await house.data.store.open()


async def test_a_home_that_is_not_ready_is_told(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.data.runtime.home.close()
        found = await async_get_config_entry_diagnostics(hass, house.entry)
        assert found["home"] == {"problem": "home_unavailable"}
