"""The states and events of the home inside Home Assistant."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum

import pytest
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.light import LightEntityFeature
from homeassistant.const import EVENT_HOMEASSISTANT_STARTED
from homeassistant.core import CoreState, HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers import floor_registry as fr
from homeassistant.helpers import label_registry as lr
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.hass_home import HassHome
from sash.errors import HomeUnavailable
from sash.ports.home import Connected, LayoutChanged, State, StateChanged
from tests.home.event_watcher import EventWatcher


class Season(Enum):
    WINTER = "winter"


class TestStates:
    async def test_a_state_has_plain_values(self, hass: HomeAssistant, hass_home: HassHome):
        at = datetime(2026, 11, 1, 8, tzinfo=UTC)
        values = {
            "supported_features": LightEntityFeature.FLASH,
            "season": Season.WINTER,
            "modes": {"b", "a"},
            "pair": (1, 2.5),
            "at": at,
            "broken": float("nan"),
            "nested": {1: [at]},
            "other": b"x",
        }
        hass.states.async_set("light.lamp", "on", values)
        state = await hass_home.get_state("light.lamp")
        assert state is not None
        assert state.attributes == {
            "supported_features": 8,
            "season": "winter",
            "modes": ["a", "b"],
            "pair": [1, 2.5],
            "at": "2026-11-01T08:00:00+00:00",
            "broken": None,
            "nested": {"1": ["2026-11-01T08:00:00+00:00"]},
            "other": "b'x'",
        }
        assert type(state.attributes["supported_features"]) is int
        assert await hass_home.get_states() == [state]

    async def test_a_state_has_the_times_of_its_changes(self, hass: HomeAssistant, hass_home: HassHome):
        hass.states.async_set("light.lamp", "on")
        hass.states.async_set("light.lamp", "on", {"brightness": 5})
        source, state = hass.states.get("light.lamp"), await hass_home.get_state("light.lamp")
        assert source is not None
        assert state == State("light.lamp", "on", {"brightness": 5}, source.last_changed, source.last_updated)
        assert source.last_changed < source.last_updated

    async def test_there_is_no_state_of_what_does_not_exist(self, hass_home: HassHome):
        assert await hass_home.get_state("light.nowhere") is None
        assert await hass_home.get_state("what") is None


class TestEvents:
    async def test_every_change_of_a_state_is_told_in_order(self, hass: HomeAssistant, hass_home: HassHome):
        watcher = EventWatcher(hass_home)
        hass.states.async_set("light.lamp", "on", {"friendly_name": "Lamp"})
        on = await hass_home.get_state("light.lamp")
        hass.states.async_set("light.lamp", "off", {"friendly_name": "Lamp"})
        off = await hass_home.get_state("light.lamp")
        hass.states.async_remove("light.lamp")
        assert watcher.events == [
            Connected(),
            StateChanged("light.lamp", on),
            LayoutChanged(),
            StateChanged("light.lamp", off),
            StateChanged("light.lamp", None),
            LayoutChanged(),
        ]

    async def test_a_new_name_and_new_members_change_the_layout(
        self, hass: HomeAssistant, hass_home: HassHome
    ):
        hass.states.async_set("group.lamps", "on", {"friendly_name": "Lamps", "entity_id": ["light.a"]})
        watcher = EventWatcher(hass_home)
        hass.states.async_set("group.lamps", "on", {"friendly_name": "All lamps", "entity_id": ["light.a"]})
        hass.states.async_set("group.lamps", "on", {"friendly_name": "All lamps", "entity_id": ["light.b"]})
        hass.states.async_set("group.lamps", "off", {"friendly_name": "All lamps", "entity_id": ["light.b"]})
        assert watcher.events.count(LayoutChanged()) == 2

    @pytest.mark.parametrize(
        "change",
        [
            lambda hass: ar.async_get(hass).async_create("Attic"),
            lambda hass: fr.async_get(hass).async_create("First floor"),
            lambda hass: lr.async_get(hass).async_create("Cosy"),
            lambda hass: er.async_get(hass).async_get_or_create("light", "test", "1"),
            lambda hass: hass.services.async_register("test", "do", lambda call: None),
            lambda hass: hass.bus.async_fire("automation_reloaded"),
            lambda hass: hass.bus.async_fire("core_config_updated"),
        ],
    )
    async def test_a_change_of_the_layout_is_told(
        self, hass: HomeAssistant, hass_home: HassHome, change: Callable[[HomeAssistant], object]
    ):
        watcher = EventWatcher(hass_home)
        change(hass)
        assert watcher.events == [Connected(), LayoutChanged()]

    async def test_a_change_of_a_device_is_told(self, hass: HomeAssistant, hass_home: HassHome):
        entry = MockConfigEntry()
        entry.add_to_hass(hass)
        watcher = EventWatcher(hass_home)
        dr.async_get(hass).async_get_or_create(config_entry_id=entry.entry_id, identifiers={("test", "1")})
        assert LayoutChanged() in watcher.events

    @pytest.mark.parametrize("is_registered", [True, False])
    async def test_what_is_shown_or_hidden_is_told(
        self, hass: HomeAssistant, hass_home: HassHome, is_registered: bool
    ):
        """Home Assistant fires no event for an entity without an entry in the registry."""
        if is_registered:
            er.async_get(hass).async_get_or_create("lock", "test", "1")
        hass.states.async_set("lock.test_1", "locked")
        watcher = EventWatcher(hass_home)
        for is_shown in (True, False):
            async_expose_entity(hass, "conversation", "lock.test_1", is_shown)
            await watcher.until(LayoutChanged)
            [entity] = (await hass_home.get_layout()).entities
            assert entity.exposed is is_shown

    async def test_a_listener_that_fails_does_not_stop_the_others(
        self, hass: HomeAssistant, hass_home: HassHome, caplog: pytest.LogCaptureFixture
    ):
        def fail(event: object) -> None:
            raise ValueError("broken")

        hass_home.subscribe(fail)
        watcher = EventWatcher(hass_home)
        hass.states.async_set("light.lamp", "on")
        await watcher.until(StateChanged)
        assert "a listener failed" in caplog.text


class TestConnection:
    async def test_it_is_connected_from_open_to_close(self, hass: HomeAssistant, hass_home: HassHome):
        home = HassHome(hass)
        early = EventWatcher(home)
        for request in (home.get_layout, home.get_states, home.get_services, home.get_log):
            with pytest.raises(HomeUnavailable, match="Home Assistant cannot be reached: it was not opened"):
                await request()
        await home.open()
        await home.open()
        late = EventWatcher(home)
        assert early.events == late.events == [Connected()]
        late.stop()
        late.stop()
        await home.get_states()
        await home.close()
        await home.close()
        hass.states.async_set("light.lamp", "on")
        async_expose_entity(hass, "conversation", "light.lamp", False)
        assert early.events == late.events == [Connected()]
        with pytest.raises(HomeUnavailable, match="it was closed") as caught:
            await home.call_service("light.turn_on", {})
        assert caught.value.reason == "it was closed"

    async def test_nothing_is_told_after_the_end_of_a_subscription(
        self, hass: HomeAssistant, hass_home: HassHome
    ):
        watcher = EventWatcher(hass_home)
        watcher.stop()
        hass.states.async_set("light.lamp", "on")
        assert watcher.events == [Connected()]

    async def test_the_end_of_the_startup_changes_the_layout(self, hass: HomeAssistant, hass_home: HassHome):
        hass.set_state(CoreState.starting)
        home = HassHome(hass)
        watcher = EventWatcher(home)
        await home.open()
        assert watcher.events == [Connected()]
        hass.set_state(CoreState.running)
        hass.bus.async_fire(EVENT_HOMEASSISTANT_STARTED)
        await hass.async_block_till_done()
        assert watcher.events == [Connected(), LayoutChanged()]
        await home.close()

    async def test_a_home_closed_during_the_startup_tells_nothing(
        self, hass: HomeAssistant, hass_home: HassHome
    ):
        hass.set_state(CoreState.starting)
        home = HassHome(hass)
        watcher = EventWatcher(home)
        await home.open()
        await home.close()
        hass.set_state(CoreState.running)
        hass.bus.async_fire(EVENT_HOMEASSISTANT_STARTED)
        await hass.async_block_till_done()
        assert watcher.events == [Connected()]
