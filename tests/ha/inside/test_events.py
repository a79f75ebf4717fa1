"""The events of Home Assistant that tell of turns and actions, without the words of a conversation."""

import json

import pytest
from homeassistant.components import ai_task
from homeassistant.core import HomeAssistant
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.sash.const import DOMAIN
from custom_components.sash.sash_events import EVENT_ACTION, EVENT_TURN_FINISHED
from tests.ha.inside.talking_house import ACTING, calls, open_house
from tests.models.wire import failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")


async def test_a_turn_of_the_model_is_told_with_its_tokens(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, said("A secret pineapple.")) as house:
        await house.say("tell me about pineapples", room="Kitchen")
        await hass.async_block_till_done()
        [event] = finished
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        [turn] = await house.data.runtime.list_turns(session.id, owner="house")
        duration = event.data["duration_ms"]
        assert 0 <= duration < 10_000
        assert event.data == {
            "config_entry_id": house.entry.entry_id,
            "agent_id": house.agent_id,
            "session_id": session.id,
            "continuation_id": turn.id,
            "device_id": house.devices["Kitchen"],
            "status": "completed",
            "way": "model",
            "duration_ms": duration,
            "tokens": 110,
            "cached_share": 0.0,
            "cost_usd": None,
            "actions": [],
            "error": None,
        }


async def test_an_undo_is_told_with_its_agent(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await hass.services.async_call(DOMAIN, "undo", {}, blocking=True)
        await hass.async_block_till_done()
        assert [event.data["agent_id"] for event in finished] == [house.agent_id, house.agent_id]


async def test_no_event_has_words_of_the_user_or_the_answer(hass: HomeAssistant) -> None:
    heard = [async_capture_events(hass, name) for name in (EVENT_TURN_FINISHED, EVENT_ACTION)]
    action = calls(
        "call_service", service="light.turn_on", entity_ids=["light.bed_light"], data={"flash": "long"}
    )
    refused = calls(
        "call_service", "call_2", service="tell pineapple to Anna", entity_ids=["light.bed_light"]
    )
    async with open_house(hass, action, refused, said("The pineapple is lit."), **ACTING) as house:
        await house.say("please flash the pineapple", room="Bedroom")
        await hass.async_block_till_done()
    events = [event for events in heard for event in events]
    assert len(events) >= 2
    text = json.dumps([event.data for event in events])
    for word in ("pineapple", "Anna", "flash", "please"):
        assert word not in text


async def test_an_action_is_told_with_its_service_and_verification(hass: HomeAssistant) -> None:
    actions = async_capture_events(hass, EVENT_ACTION)
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await hass.async_block_till_done()
        [action], [turn] = actions, finished
        done = {
            "service": "light.turn_on",
            "entity_ids": ["light.bed_light"],
            "outcome": "done",
            "verified": True,
        }
        assert turn.data["actions"] == [done]
        assert turn.data["way"] == "local"
        assert turn.data["tokens"] == 0
        assert action.data == {
            **done,
            "config_entry_id": house.entry.entry_id,
            "agent_id": house.agent_id,
            "session_id": turn.data["session_id"],
            "continuation_id": turn.data["continuation_id"],
            "device_id": house.devices["Bedroom"],
        }


async def test_a_failed_turn_is_told_with_the_code_of_the_error(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, failed(404, "model_not_found")) as house:
        await house.say("hello there, how are you", room="Kitchen")
        await hass.async_block_till_done()
    [event] = finished
    assert (event.data["status"], event.data["error"]) == ("failed", "model_unknown")


async def test_a_turn_that_waits_for_an_approval_has_not_finished(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Bedroom")
        await hass.async_block_till_done()
        assert finished == []


async def test_a_turn_of_another_agent_is_not_told(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, said("ok")) as house:
        runtime = house.data.runtime
        session = await runtime.start_session(owner="house")
        await runtime.record_turn(session.id, "q", "a", owner="house")
        await hass.async_block_till_done()
    assert finished == []


async def test_an_ai_task_is_told_with_its_entity(hass: HomeAssistant) -> None:
    finished = async_capture_events(hass, EVENT_TURN_FINISHED)
    async with open_house(hass, said("Two cats."), task={}) as house:
        await ai_task.async_generate_data(
            hass, task_name="Count", entity_id=house.task_id, instructions="Count the animals."
        )
        await hass.async_block_till_done()
        [event] = finished
        assert (event.data["agent_id"], event.data["tokens"]) == (house.task_id, 110)
