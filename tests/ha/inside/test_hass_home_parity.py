"""The home inside Home Assistant tells the same as the remote home that asks the same Home Assistant."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.components.recorder.common import async_wait_recording_done

from custom_components.sash.hass_home import HassHome
from sash.home.briefing import write_briefing
from sash.home.live_home import LiveHome
from sash.home.remote import RemoteHome
from sash.ports.home import Connected, Home, StateChanged
from tests.ha.inside.furnished_house import HIDDEN
from tests.ha.inside.test_hass_home_past import METER, STATISTICS_AT, import_statistics
from tests.home.event_watcher import EventWatcher

LAMP = "light.kitchen_lights"


@pytest.fixture
async def remote(
    recorder_mock: Any, house: HomeAssistant, hass_client: Any, hass_access_token: str
) -> AsyncIterator[RemoteHome]:
    """A remote home over the network of the same Home Assistant. The house has a past."""
    for name in ("api", "websocket_api", "config", "history", "logbook", "system_log", "frontend"):
        assert await async_setup_component(house, name, {})
    client = await hass_client()
    home = RemoteHome(str(client.make_url("/")), hass_access_token)
    watcher = EventWatcher(home)
    await home.open()
    await watcher.until(Connected)
    yield home
    await home.close()


async def test_the_layout_is_the_same(remote: RemoteHome, hass_home: HassHome):
    here, there = await hass_home.get_layout(), await remote.get_layout()
    assert {entity.id: entity for entity in here.entities} == {entity.id: entity for entity in there.entities}
    assert len(here.entities) > 30
    here = replace(here, entities=there.entities)
    # A remote home cannot read the configurations of templates.
    known = tuple(d for d in here.dependents if d.kind != "template")
    assert {d.entity_id: d for d in known} == {d.entity_id: d for d in there.dependents}
    assert replace(here, dependents=()) == replace(there, dependents=())


async def test_the_states_are_the_same(remote: RemoteHome, hass_home: HassHome):
    here = {state.entity_id: state for state in await hass_home.get_states()}
    there = {state.entity_id: state for state in await remote.get_states()}
    assert here == there
    for entity_id in (LAMP, "climate.hvac", "automation.dark_kitchen", "weather.demo_weather_south"):
        assert await hass_home.get_state(entity_id) == await remote.get_state(entity_id)


async def test_the_events_are_the_same(remote: RemoteHome, hass_home: HassHome):
    here, there = EventWatcher(hass_home), EventWatcher(remote)
    await hass_home.call_service("light.turn_on", {"brightness": 77}, [LAMP])

    def is_lamp(event: StateChanged) -> bool:
        return event.entity_id == LAMP

    assert await here.until(StateChanged, is_lamp) == await there.until(StateChanged, is_lamp)


async def test_the_services_are_the_same(remote: RemoteHome, hass_home: HassHome):
    here, there = await hass_home.get_services(), await remote.get_services()
    assert here == there
    assert len(here) > 50


async def test_the_past_is_the_same(remote: RemoteHome, hass_home: HassHome, house: HomeAssistant):
    await remote.call_service("light.turn_off", {}, [LAMP])
    for service in ("switch.turn_on", "switch.turn_off"):
        await hass_home.call_service(service, {}, ["switch.ac"])
    await remote.call_service("system_log.write", {"message": "cold", "level": "warning", "logger": "boiler"})
    import_statistics(house)
    await house.async_block_till_done()
    await async_wait_recording_done(house)
    now = datetime.now(UTC)
    span = now - timedelta(hours=1), now + timedelta(minutes=1)

    async def read(home: Home) -> list[Any]:
        return [
            await home.get_history([LAMP, "switch.ac", "light.nowhere"], *span),
            await home.get_statistics([METER], STATISTICS_AT, STATISTICS_AT + timedelta(hours=3)),
            [record for record in await home.get_log() if record.source == "boiler"],
            await home.get_logbook(*span, [LAMP]),
            await home.get_logbook(*span),
        ]

    here, there = await read(hass_home), await read(remote)
    assert all(there)
    assert here == there


async def test_a_live_home_runs_on_it(house: HomeAssistant):
    assert await async_setup_component(house, "homeassistant", {})
    live_home = LiveHome(HassHome(house))
    await live_home.open()
    try:
        index = await live_home.wait_until_ready()
        briefing = write_briefing(index, "is the kitchen dark?", "08:00", len)
        assert LAMP in briefing.text
        assert HIDDEN not in briefing.text
        await live_home.home.call_service("light.turn_off", {}, [LAMP])
        assert index.get_state(LAMP) == "off"
        assert "light.turn_on" in live_home.services
        assert str(live_home.time_zone) == "US/Pacific"
    finally:
        await live_home.close()
