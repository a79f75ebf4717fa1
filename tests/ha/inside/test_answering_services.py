"""Services that only answer: an agent may ask them although it may not act."""

import asyncio
import json
from typing import Any

import pytest
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from tests.ha.inside.talking_house import TalkingHouse, calls, open_house
from tests.models.wire import Reply, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

WEATHER = "weather.demo_weather_north"
CALENDAR = "calendar.calendar_1"
SHOPPING = "todo.shopping_list"
PLATFORMS = (Platform.WEATHER, Platform.CALENDAR)
READ = {"action": "weather.get_forecasts", "target": {"entity_id": WEATHER}, "data": {"type": "daily"}}
SWITCH = {"action": "light.turn_on", "target": {"entity_id": "light.bed_light"}}
STOP = {"stop": "done", "response_variable": "found"}
SCRIPTS: dict[str, Any] = {
    "count": {"sequence": [{"variables": {"found": {"lamps": 3}}}, STOP]},
    "look_out": {"sequence": [{**READ, "response_variable": "found"}, STOP]},
    "look_and_switch": {"sequence": [{**READ, "response_variable": "found"}, SWITCH, STOP]},
    "switch_in_a_choice": {
        "sequence": [{"variables": {"found": {}}}, {"if": "{{ true }}", "then": [SWITCH]}, STOP]
    },
    "templated": {"sequence": [{"variables": {"found": {}}}, {"action": "{{ 'light.turn_on' }}"}, STOP]},
    "approve": {"sequence": [{"action": "sash.approve", "data": {"approved": True}}, STOP]},
    "hidden": {"sequence": [{"variables": {"found": {"secret": 3}}}, STOP]},
}


def query(service: str, *entity_ids: str, **data: Any) -> Reply:
    arguments: dict[str, Any] = {"service": service, "data": data}
    return calls("query_service", **arguments | ({"entity_ids": entity_ids} if entity_ids else {}))


async def set_up_scripts(hass: HomeAssistant) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "script", {"script": SCRIPTS})
    for name in SCRIPTS:
        async_expose_entity(hass, "conversation", f"script.{name}", name != "hidden")


async def ask(house: TalkingHouse) -> str:
    """Ask something, and return the result that the model gets of its tool."""
    await house.say("tell me what I asked for")
    return str(house.wire.requests[-1].body["messages"][-1]["content"])


async def test_a_forecast_is_read_without_a_permission_to_act(hass: HomeAssistant) -> None:
    asked = query("weather.get_forecasts", WEATHER, type="daily")
    async with open_house(hass, asked, said("Rain."), platforms=PLATFORMS, exposed=[WEATHER]) as house:
        assert json.loads(await ask(house))["response"][WEATHER]["forecast"]


async def test_the_events_of_a_calendar_are_read(hass: HomeAssistant) -> None:
    asked = query("calendar.get_events", CALENDAR, duration={"hours": 24})
    async with open_house(hass, asked, said("Nothing."), platforms=PLATFORMS, exposed=[CALENDAR]) as house:
        assert "events" in json.loads(await ask(house))["response"][CALENDAR]


async def test_the_items_of_a_list_are_read(hass: HomeAssistant) -> None:
    asked = query("todo.get_items", SHOPPING)
    async with open_house(hass, asked, said("Milk.")) as house:
        shopping = MockConfigEntry(domain="shopping_list", title="Shopping list")
        shopping.add_to_hass(hass)
        assert await hass.config_entries.async_setup(shopping.entry_id)
        item = {"entity_id": SHOPPING, "item": "milk"}
        await hass.services.async_call("todo", "add_item", item, blocking=True)
        async_expose_entity(hass, "conversation", SHOPPING, True)
        async with asyncio.timeout(60):
            while SHOPPING not in house.data.runtime.home.index.entities:
                await asyncio.sleep(0.01)
        assert json.loads(await ask(house))["response"][SHOPPING]["items"][0]["summary"] == "milk"


@pytest.mark.parametrize(("name", "found"), [("count", '"lamps"'), ("look_out", '"forecast"')])
async def test_a_script_that_only_answers_is_read(hass: HomeAssistant, name: str, found: str) -> None:
    await set_up_scripts(hass)
    async with open_house(hass, query(f"script.{name}"), said("Well."), platforms=PLATFORMS) as house:
        assert found in await ask(house)


@pytest.mark.parametrize("name", ["look_and_switch", "switch_in_a_choice", "templated", "approve", "hidden"])
async def test_a_script_that_may_act_or_is_hidden_is_not_read(hass: HomeAssistant, name: str) -> None:
    await set_up_scripts(hass)
    async with open_house(hass, query(f"script.{name}"), said("Well."), platforms=PLATFORMS) as house:
        assert f"no service 'script.{name}'" in await ask(house)
        assert hass.states.get("light.bed_light").state == "off"


async def test_a_script_that_acts_returns_its_response_if_it_is_allowed(hass: HomeAssistant) -> None:
    await set_up_scripts(hass)
    asked = calls("call_service", service="script.look_and_switch")
    options = {"allow_actuation": True, "allowlisted_services": ["script", "light"]}
    async with open_house(hass, asked, said("Well."), platforms=PLATFORMS, **options) as house:
        assert "forecast" in await ask(house)
        assert hass.states.get("light.bed_light").state == "on"
