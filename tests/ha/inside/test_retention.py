"""Conversations that were not used for a long time are deleted, if the options of their agent say so."""

from datetime import timedelta
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory
from homeassistant.auth.models import User
from homeassistant.core import HomeAssistant
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.sash.retention import SWEEP_INTERVAL
from sash.values.sessions import Session
from tests.ha.inside.talking_house import TalkingHouse, open_house
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")

A_MONTH: dict[str, Any] = {"transcript_retention_days": 30, "session_idle_days": 365}


async def pass_days(hass: HomeAssistant, freezer: FrozenDateTimeFactory, days: float) -> None:
    """Let days pass, and the next deletion of old conversations come."""
    freezer.tick(timedelta(days=days) + SWEEP_INTERVAL)
    async_fire_time_changed(hass, dt_util.utcnow())
    await hass.async_block_till_done(wait_background_tasks=True)


async def list_sessions(house: TalkingHouse, owner: str = "house") -> tuple[Session, ...]:
    return (await house.data.runtime.list_sessions(owner=owner)).items


async def test_a_conversation_that_was_not_used_for_so_many_days_is_deleted(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    async with open_house(hass, said("ok"), **A_MONTH) as house:
        await house.say("remember the pineapple", room="Kitchen")
        await house.say("what do you know?", room="Bedroom")
        await pass_days(hass, freezer, 20)
        assert len(await list_sessions(house)) == 2
        await house.say("what else do you know?", room="Bedroom")
        await pass_days(hass, freezer, 20)
        [kept] = await list_sessions(house)
        assert kept.name is not None and kept.name.endswith(house.devices["Bedroom"])
        found = await hass.services.async_call(
            "sash", "search", {"query": "pineapple"}, blocking=True, return_response=True
        )
        assert found == {"messages": []}


async def test_by_default_conversations_are_never_deleted(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("what do you know?", room="Kitchen")
        await pass_days(hass, freezer, 1000)
        assert len(await list_sessions(house)) == 1


async def test_the_conversations_of_a_user_who_was_deleted_are_deleted_too(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("ok"), **A_MONTH) as house:
        await house.say("what do you know?", user=hass_read_only_user)
        await hass.auth.async_remove_user(hass_read_only_user)
        owner = f"user:{hass_read_only_user.id}"
        assert len(await list_sessions(house, owner)) == 1
        await pass_days(hass, freezer, 31)
        assert await list_sessions(house, owner) == ()


async def test_an_agent_deletes_only_its_own_conversations(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    async with open_house(hass, said("ok"), **A_MONTH) as house:
        other = await house.data.runtime.start_session(name="another-agent/device/kitchen", owner="house")
        await house.say("what do you know?", room="Kitchen")
        await pass_days(hass, freezer, 31)
        assert [session.id for session in await list_sessions(house)] == [other.id]


async def test_all_old_conversations_are_deleted_however_many_there_are(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    async with open_house(hass, said("ok"), **A_MONTH) as house:
        [agent_id] = house.data.agents
        for number in range(60):
            await house.data.runtime.start_session(name=f"{agent_id}/device/{number}", owner="house")
        await pass_days(hass, freezer, 31)
        assert await list_sessions(house) == ()
