"""Sensors: what the agents of a provider use today, all users together."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from freezegun.api import FrozenDateTimeFactory
from homeassistant.auth.models import User
from homeassistant.const import EntityCategory
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.entity import Entity
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.sash.const import DOMAIN
from custom_components.sash.store_counts import TurnKey
from custom_components.sash.usage import COOLDOWN_S
from tests.ha.inside.talking_house import ACTING, TalkingHouse, open_house
from tests.models.wire import Reply, chunk, failed, said, usage

pytestmark = pytest.mark.usefixtures("socket_enabled")

SENSORS = {
    "tokens_today",
    "cost_today",
    "cached_share_today",
    "window_fill",
    "last_turn_duration",
    "open_turns",
}


@pytest.fixture
def all_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable the sensors that are off by default."""
    monkeypatch.setattr(Entity, "entity_registry_enabled_default", True)


def find_sensors(house: TalkingHouse) -> dict[str, er.RegistryEntry]:
    entries = er.async_entries_for_config_entry(er.async_get(house.hass), house.entry.entry_id)
    prefix = f"{house.entry.entry_id}_"
    return {entry.unique_id.removeprefix(prefix): entry for entry in entries if entry.domain == "sensor"}


def read(house: TalkingHouse, key: str) -> str:
    state = house.hass.states.get(find_sensors(house)[key].entity_id)
    assert state is not None
    return state.state


async def settle(house: TalkingHouse) -> None:
    """Let the sensors see the last turn, also if they saw another one a moment ago."""
    await house.hass.async_block_till_done(wait_background_tasks=True)
    async_fire_time_changed(house.hass, dt_util.utcnow() + timedelta(seconds=COOLDOWN_S + 1))
    await house.hass.async_block_till_done(wait_background_tasks=True)


def priced(cached: int) -> Reply:
    """An answer of a model with a known price."""
    model = {"model": "gpt-4o-mini"}
    chunks: list[Any] = [
        chunk("ok", **model),
        chunk(finish="stop", **model),
        usage(1000, 100, cached=cached) | model,
    ]
    return Reply(chunks=chunks)


@pytest.mark.usefixtures("all_enabled")
async def test_before_the_first_turn_nothing_is_used(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        found = {key: read(house, key) for key in find_sensors(house)}
        assert found.keys() == SENSORS
        assert found == {
            "tokens_today": "0",
            "cost_today": "0.0",
            "cached_share_today": "unknown",
            "window_fill": "unknown",
            "last_turn_duration": "unknown",
            "open_turns": "0",
        }


@pytest.mark.usefixtures("all_enabled")
async def test_the_turns_of_all_users_count_together(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, priced(0), priced(500), model="gpt-4o-mini") as house:
        await house.say("what do you know?", room="Kitchen")
        await house.say("what do you know?", user=hass_admin_user)
        await settle(house)
        assert read(house, "tokens_today") == "2200"
        assert read(house, "cached_share_today") == "25.0"
        # 1,500 tokens at 0.15 $ and 500 at 0.075 $ a million, and 200 of output at 0.60 $.
        assert float(read(house, "cost_today")) == pytest.approx(0.0003825, abs=1e-6)
        assert float(read(house, "window_fill")) > 0
        assert 0 <= float(read(house, "last_turn_duration")) < 10
        assert read(house, "open_turns") == "0"


@pytest.mark.usefixtures("all_enabled")
async def test_a_price_that_is_unknown_is_not_shown_as_a_number(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        await settle(house)
        assert read(house, "tokens_today") == "110"
        assert read(house, "cost_today") == "unknown"


@pytest.mark.usefixtures("all_enabled")
async def test_a_turn_that_waits_is_open_until_it_ends(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Bedroom")
        await settle(house)
        assert read(house, "open_turns") == "1"
        runtime = house.data.runtime
        [session] = (await runtime.list_sessions(owner="house")).items
        [turn] = await runtime.open_continuations(session.id, owner="house")
        await runtime.cancel(turn.id, owner="house")
        await settle(house)
        assert read(house, "open_turns") == "0"


@pytest.mark.usefixtures("all_enabled")
async def test_the_numbers_are_there_after_a_restart(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        await settle(house)
        before = {key: read(house, key) for key in SENSORS}
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await hass.async_block_till_done()
        assert {key: read(house, key) for key in SENSORS} == before
        assert before["tokens_today"] == "110"


@pytest.mark.usefixtures("all_enabled")
async def test_the_day_begins_at_midnight_of_the_home(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    await hass.config.async_set_time_zone("Asia/Tokyo")
    zone = ZoneInfo("Asia/Tokyo")
    freezer.move_to(datetime(2026, 11, 16, 23, 50, tzinfo=zone))
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        await settle(house)
        assert read(house, "tokens_today") == "110"
        entity_id = find_sensors(house)["tokens_today"].entity_id
        first_reset = hass.states.get(entity_id).attributes["last_reset"]
        freezer.move_to(datetime(2026, 11, 17, 0, 0, 1, tzinfo=zone))
        async_fire_time_changed(hass, dt_util.utcnow())
        await hass.async_block_till_done(wait_background_tasks=True)
        assert read(house, "tokens_today") == "0"
        state = hass.states.get(entity_id)
        assert state.attributes["last_reset"] == "2026-11-17T00:00:00+09:00"
        assert first_reset == "2026-11-16T00:00:00+09:00"
        assert read(house, "last_turn_duration") != "unknown"


@pytest.mark.usefixtures("all_enabled")
async def test_the_sensors_belong_to_the_device_of_the_provider(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        devices = dr.async_entries_for_config_entry(dr.async_get(hass), house.entry.entry_id)
        [device] = [each for each in devices if (DOMAIN, house.entry.entry_id) in each.identifiers]
        assert device.name == "Test provider"
        [agent] = [each for each in devices if each is not device]
        assert (agent.name, agent.model) == ("Sash", "m")
        for entry in find_sensors(house).values():
            assert entry.device_id == device.id
            assert entry.entity_category is EntityCategory.DIAGNOSTIC
            assert entry.translation_key is not None
        state = hass.states.get(find_sensors(house)["cost_today"].entity_id)
        assert state.attributes["friendly_name"] == "Test provider Cost today"
        assert state.attributes["unit_of_measurement"] == "USD"
        assert state.attributes["state_class"] == "total"


@pytest.mark.usefixtures("all_enabled")
async def test_a_store_that_fails_makes_the_sensors_unavailable(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.data.store.close()
        await house.data.usage.async_refresh()
        assert read(house, "tokens_today") == "unavailable"
        await house.data.store.open()
        await house.data.usage.async_refresh()
        assert read(house, "tokens_today") == "0"


@pytest.mark.usefixtures("all_enabled")
async def test_a_last_turn_that_is_being_deleted_leaves_the_other_numbers(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_deleted_turn(_: object) -> TurnKey:
        return TurnKey("house", "deleted")

    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        monkeypatch.setattr("custom_components.sash.usage.find_last_turn", find_deleted_turn)
        await house.data.usage.async_refresh()
        await hass.async_block_till_done()
        assert read(house, "tokens_today") == "110"
        assert (read(house, "last_turn_duration"), read(house, "window_fill")) == ("unknown", "unknown")


async def test_sensors_that_change_with_every_turn_are_off_by_default(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        off = {key for key, entry in find_sensors(house).items() if entry.disabled}
        assert off == {"window_fill", "last_turn_duration", "open_turns"}


async def test_a_provider_without_a_model_counts_no_tokens_and_no_money(hass: HomeAssistant) -> None:
    async with open_house(hass, has_model=False) as house:
        assert find_sensors(house).keys() == {"last_turn_duration", "open_turns"}
