"""Early answers and approvals: turns that go on after the pipeline has ended."""

import asyncio
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from homeassistant.auth.models import User
from homeassistant.components import conversation, persistent_notification
from homeassistant.components.assist_satellite.errors import SatelliteBusyError
from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import Context, HomeAssistant, ServiceCall, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import chat_session
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import (
    MockConfigEntry,
    async_fire_time_changed,
    async_mock_service,
)

from tests.ha.inside.talking_house import ACTING, LOCKS, TalkingHouse, calls, open_house, said_by
from tests.models.wire import Reply, chunk, failed, said, usage

pytestmark = pytest.mark.usefixtures("socket_enabled")

SATELLITE = "assist_satellite.kitchen"
EARLY = {"early_wait_enable": True, "early_wait_seconds": 0.05}
UNLOCK = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])


def find_notifications(hass: HomeAssistant) -> dict[str, str]:
    found = persistent_notification._async_get_or_create_notifications(hass)
    return {name: notification["message"] for name, notification in found.items()}


async def wait_until(hass: HomeAssistant, is_met: Any) -> None:
    """Wait until something is so, at most ten seconds."""
    async with asyncio.timeout(10):
        while not is_met():
            await asyncio.sleep(0.01)


async def pass_time(hass: HomeAssistant, seconds: float) -> None:
    async_fire_time_changed(hass, dt_util.utcnow() + timedelta(seconds=seconds))
    await hass.async_block_till_done()


@callback
def add_phone(house: TalkingHouse, user: User) -> list[ServiceCall]:
    """Give a user a phone with the companion app, and return the list of its notifications."""
    hass = house.hass
    entry = MockConfigEntry(domain="mobile_app", data={"user_id": user.id, "webhook_id": "w1"})
    entry.add_to_hass(hass)
    entry.mock_state(hass, ConfigEntryState.LOADED)
    hass.config.components.add("mobile_app")

    hass.data["mobile_app"] = {"notify": SimpleNamespace(registered_targets={"mobile_app_phone": "w1"})}
    return async_mock_service(hass, "notify", "mobile_app_phone")


async def test_a_lock_is_unlocked_after_a_spoken_yes(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        asked = await house.say("unlock the front door", room="Kitchen")
        assert said_by(asked).startswith("Unlock ")
        assert said_by(asked).endswith("?")
        assert asked.continue_conversation
        assert hass.states.get("lock.front_door").state == "locked"
        await house.say("yes", room="Kitchen")
        await wait_until(hass, lambda: hass.states.get("lock.front_door").state == "unlocked")


async def test_a_spoken_no_leaves_the_lock_alone(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await house.say("no", room="Kitchen")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_another_sentence_drops_the_question_and_is_answered(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await house.say("turn on the bed light", room="Kitchen")
        assert hass.states.get("light.bed_light").state == "on"
        await house.say("yes", room="Kitchen")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_yes_on_another_satellite_approves_nothing(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Pardon?"), **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await house.say("yes", room="Bedroom")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_yes_in_another_room_of_a_shared_conversation_approves_nothing(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Pardon?"), session_scope="house", **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await house.say("yes", room="Bedroom")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_nothing_is_asked_if_nothing_would_change(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        answered = await house.say("lock the front door", room="Kitchen")
        assert not answered.continue_conversation


async def test_an_unanswered_question_becomes_a_notification_in_home_assistant(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        asked = await house.say("unlock the front door", room="Kitchen")
        assert find_notifications(hass) == {}
        await pass_time(hass, 61)
        ((tag, message),) = find_notifications(hass).items()
        assert message.startswith(said_by(asked))
        assert "sash.approve" in message
        assert await house.data.late_turns.answer(tag.removeprefix("sash_"), True)
        await wait_until(hass, lambda: hass.states.get("lock.front_door").state == "unlocked")


async def test_a_button_on_the_phone_of_the_user_approves(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)
        await house.say("unlock the front door", user=hass_admin_user)
        await pass_time(hass, 61)
        approve, deny = notified[0].data["data"]["actions"]
        assert (approve["title"], deny["title"]) == ("Yes", "No")
        hass.bus.async_fire(
            "mobile_app_notification_action",
            {"action": approve["action"]},
            context=Context(user_id=hass_admin_user.id),
        )
        await wait_until(hass, lambda: hass.states.get("lock.front_door").state == "unlocked")


async def test_a_button_on_the_phone_of_another_user_does_nothing(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)
        await house.say("unlock the front door", user=hass_admin_user)
        await pass_time(hass, 61)
        hass.bus.async_fire(
            "mobile_app_notification_action",
            {"action": notified[0].data["data"]["actions"][0]["action"]},
            context=Context(user_id=hass_read_only_user.id),
        )
        await hass.async_block_till_done(wait_background_tasks=True)
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_button_of_another_notification_does_nothing(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        asked = await house.say("unlock the front door", room="Kitchen")
        for action in ("REPLY", "SASH_APPROVE_", "SASH_DENY_01ARZ3NDEKTSV4RRFFQ69G5FAV", None):
            hass.bus.async_fire("mobile_app_notification_action", {"action": action})
        await hass.async_block_till_done(wait_background_tasks=True)
        assert hass.states.get("lock.front_door").state == "locked"
        await pass_time(hass, 61)
        [message] = find_notifications(hass).values()
        assert message.startswith(said_by(asked))


def find_buttons(notification: ServiceCall) -> tuple[str, str]:
    """Return what the buttons "Yes" and "No" of a notification on a phone say."""
    approve, deny = notification.data["data"]["actions"]
    return approve["action"], deny["action"]


async def test_the_question_of_a_cancelled_turn_is_taken_back(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)
        context = Context(user_id=hass_admin_user.id)
        await house.say("unlock the front door", user=hass_admin_user)
        await pass_time(hass, 61)
        [session] = (await house.data.runtime.list_sessions(owner=f"user:{hass_admin_user.id}")).items
        [turn] = await house.data.store.list_continuations(session.owner, session.id)
        await hass.services.async_call(
            "sash", "cancel", {"continuation_id": turn.id}, blocking=True, context=context
        )
        await wait_until(hass, lambda: notified[-1].data["message"] == "clear_notification")
        action = {"action": find_buttons(notified[0])[0]}
        hass.bus.async_fire("mobile_app_notification_action", action, context=context)
        await hass.async_block_till_done(wait_background_tasks=True)
        assert hass.states.get("lock.front_door").state == "locked"
        assert len(notified) == 2


async def test_a_button_answers_only_the_question_of_its_notification(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    unlock = [
        {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {
                "name": "call_service",
                "arguments": json.dumps({"service": "lock.unlock", "entity_ids": [entity_id]}),
            },
        }
        for index, entity_id in enumerate(LOCKS)
    ]
    both = Reply(chunks=[chunk(calls=unlock), chunk(finish="tool_calls"), usage(100, 10)])
    async with open_house(hass, both, said("Both are open."), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)

        async def press(button: str) -> None:
            context = Context(user_id=hass_admin_user.id)
            hass.bus.async_fire("mobile_app_notification_action", {"action": button}, context=context)
            await hass.async_block_till_done(wait_background_tasks=True)

        await house.say("let everybody in, please", user=hass_admin_user)
        await pass_time(hass, 61)
        first, _ = find_buttons(notified[0])
        await press(first)
        assert hass.states.get(LOCKS[0]).state == "unlocked"
        await pass_time(hass, 1)
        assert notified[-1].data["message"] == "Unlock the Openable lock?"
        await press(first)
        assert hass.states.get(LOCKS[1]).state == "locked"
        await press(find_buttons(notified[-1])[0])
        assert hass.states.get(LOCKS[1]).state == "unlocked"
        assert notified[-1].data["message"] == "Both are open."


async def test_without_a_phone_that_can_be_reached_home_assistant_shows_the_question(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        add_phone(house, hass_admin_user)

        async def fail(call: ServiceCall) -> None:
            raise HomeAssistantError("the phone is off")

        hass.services.async_register("notify", "mobile_app_phone", fail)
        asked = await house.say("unlock the front door", user=hass_admin_user)
        await pass_time(hass, 61)
        [message] = find_notifications(hass).values()
        assert message.startswith(said_by(asked))
        assert "sash.approve" in message


async def test_a_new_sentence_removes_the_notification(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await pass_time(hass, 61)
        assert find_notifications(hass)
        await house.say("turn on the bed light", room="Kitchen")
        await hass.async_block_till_done(wait_background_tasks=True)
        assert find_notifications(hass) == {}


async def test_a_slow_answer_is_announced_later(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    slow = said("The answer is 42.", after=is_ready)
    options = {"early_wait_enable": True, "early_wait_seconds": 0.05}
    async with open_house(hass, slow, **options) as house:
        announced = async_mock_service(hass, "assist_satellite", "announce")
        hass.states.async_set("assist_satellite.kitchen", "responding")
        early = await house.say("what is the answer?", satellite="assist_satellite.kitchen", room="Kitchen")
        assert said_by(early) == "I am still working on it. The answer follows."
        is_ready.set()
        await wait_until(hass, lambda: find_notifications(hass))
        assert announced == []
        hass.states.async_set("assist_satellite.kitchen", "idle")
        await wait_until(hass, lambda: announced)
        assert announced[0].data["message"] == "The answer is 42."
        assert list(find_notifications(hass).values()) == ["The answer is 42."]
        assert "still working" not in house.read_prompts()[-1]


async def test_what_was_asked_for_later_is_done_and_told(hass: HomeAssistant) -> None:
    turn_on = {"service": "light.turn_on", "entity_ids": ["light.bed_light"]}
    later = calls("do_later", summary="turn on the bed light", in_s=0.5, calls=[turn_on])
    async with open_house(hass, later, said("I will."), **ACTING) as house:
        asked = await house.say("my cat would like light in half a second", room="Kitchen")
        assert said_by(asked) == "I will."
        assert hass.states.get("light.bed_light").state == "off"
        await wait_until(hass, lambda: find_notifications(hass))
        assert hass.states.get("light.bed_light").state == "on"
        assert list(find_notifications(hass).values()) == ["Done: turn on the bed light."]


async def test_the_approval_for_what_was_asked_for_later_is_asked_by_notification(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    unlock = {"service": "lock.unlock", "entity_ids": ["lock.front_door"]}
    later = calls("do_later", summary="unlock the front door", in_s=0.5, calls=[unlock])
    async with open_house(hass, later, said("I will."), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)
        await house.say("my cat would like to go out in half a second", user=hass_admin_user)
        await wait_until(hass, lambda: house.data.late_turns.open_questions)
        await pass_time(hass, 1)
        approve, _ = find_buttons(notified[0])
        assert hass.states.get("lock.front_door").state == "locked"
        hass.bus.async_fire(
            "mobile_app_notification_action",
            {"action": approve},
            context=Context(user_id=hass_admin_user.id),
        )
        await wait_until(hass, lambda: notified[-1].data["message"] == "Done: unlock the front door.")
        assert [each.data["message"] for each in notified].count("Done: unlock the front door.") == 1


async def test_a_pipeline_that_is_cancelled_after_the_early_answer_does_not_cancel_the_turn(
    hass: HomeAssistant,
) -> None:
    """A satellite may be interrupted at the first word of the early answer. The answer was promised then."""
    is_ready = asyncio.Event()
    async with open_house(hass, said("The answer is 42.", after=is_ready), **EARLY) as house:
        with chat_session.async_get_chat_session(hass) as session:

            def interrupt(_: conversation.ChatLog, delta: dict[str, Any]) -> None:
                if delta.get("content"):
                    pipeline.cancel()

            with conversation.async_get_chat_log(hass, session, chat_log_delta_listener=interrupt):
                pipeline = asyncio.create_task(
                    house.say("what is the answer?", conversation_id=session.conversation_id)
                )
                with pytest.raises(asyncio.CancelledError):
                    await pipeline
        is_ready.set()
        await wait_until(hass, lambda: find_notifications(hass))
        assert list(find_notifications(hass).values()) == ["The answer is 42."]


async def test_a_satellite_that_is_busy_after_all_announces_later(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    slow = said("The answer is 42.", after=is_ready)
    tried: list[str] = []

    async def announce(call: ServiceCall) -> None:
        tried.append(call.data["message"])
        if len(tried) == 1:
            raise SatelliteBusyError

    async with open_house(hass, slow, **EARLY) as house:
        hass.services.async_register("assist_satellite", "announce", announce)
        hass.states.async_set(SATELLITE, "idle")
        await house.say("what is the answer?", satellite=SATELLITE, room="Kitchen")
        is_ready.set()
        await wait_until(hass, lambda: tried)
        hass.states.async_set(SATELLITE, "listening")
        await wait_until(hass, lambda: house.data.runtime.running_turns == 0)
        assert len(tried) == 1
        hass.states.async_set(SATELLITE, "idle")
        await wait_until(hass, lambda: len(tried) == 2)
        assert set(tried) == {"The answer is 42."}


async def test_an_announcement_is_given_up_if_the_satellite_is_busy_for_too_long(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("custom_components.sash.announcer.MAX_WAIT_S", 0.05)
    is_ready = asyncio.Event()
    async with open_house(hass, said("The answer is 42.", after=is_ready), **EARLY) as house:
        announced = async_mock_service(hass, "assist_satellite", "announce")
        hass.states.async_set(SATELLITE, "responding")
        await house.say("what is the answer?", satellite=SATELLITE, room="Kitchen")
        is_ready.set()
        await wait_until(hass, lambda: "was busy for too long" in caplog.text)
        assert announced == []
        assert list(find_notifications(hass).values()) == ["The answer is 42."]


async def test_a_late_question_is_announced_and_asked_by_notification(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    slow = Reply(chunks=UNLOCK.chunks, after=is_ready)
    async with open_house(hass, slow, said("It is open."), **EARLY, **ACTING) as house:
        announced = async_mock_service(hass, "assist_satellite", "announce")
        hass.states.async_set(SATELLITE, "idle")
        await house.say("let them in, please", satellite=SATELLITE, room="Kitchen")
        is_ready.set()
        await wait_until(hass, lambda: announced)
        question = announced[0].data["message"]
        assert question.startswith("Unlock ")
        await pass_time(hass, 1)
        [message] = find_notifications(hass).values()
        assert message.startswith(question)
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_late_failure_is_told(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    broken = failed(401, "invalid_api_key")
    broken.after = is_ready
    async with open_house(hass, broken, **EARLY) as house:
        await house.say("what is the answer?", room="Kitchen")
        is_ready.set()
        await wait_until(hass, lambda: find_notifications(hass))
        [message] = find_notifications(hass).values()
        assert "key" in message


async def test_nothing_is_told_of_a_conversation_that_was_deleted(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(hass, said("The answer is 42.", after=asyncio.Event()), **EARLY) as house:
        await house.say("what is the answer?", room="Kitchen")
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        await house.data.runtime.delete_session(session.id, owner="house")
        await wait_until(hass, lambda: "cannot be told" in caplog.text)
        assert find_notifications(hass) == {}


async def test_the_early_answer_is_not_remembered(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    slow = said("The answer is 42.", after=is_ready)
    async with open_house(hass, slow, said("Yes."), early_wait_enable=True, early_wait_seconds=0.05) as house:
        await house.say("what is the answer?", room="Kitchen")
        is_ready.set()
        await wait_until(hass, lambda: find_notifications(hass))
        await house.say("are you sure about that?", room="Kitchen")
        await wait_until(hass, lambda: len(house.read_prompts()) == 2)
        assert "still working" not in house.read_prompts()[-1]
        assert "The answer is 42." in house.read_prompts()[-1]


async def say_slowly(house: TalkingHouse, is_ready: asyncio.Event, **place: Any) -> None:
    """Ask something, get the early answer, and let the model answer then."""
    await house.say("what is the answer?", **place)
    is_ready.set()


@pytest.mark.parametrize(("error", "count"), [(HomeAssistantError("no end"), 1), (SatelliteBusyError(), 2)])
async def test_only_a_busy_satellite_is_asked_to_announce_again(
    hass: HomeAssistant, error: Exception, count: int
) -> None:
    is_ready, kitchen = asyncio.Event(), "assist_satellite.kitchen"
    slow = said("The answer is 42.", after=is_ready)
    async with open_house(hass, slow, early_wait_enable=True, early_wait_seconds=0.05) as house:
        announced: list[ServiceCall] = []

        async def announce(call: ServiceCall) -> None:
            announced.append(call)
            hass.states.async_set(kitchen, "responding")
            hass.loop.call_soon(hass.states.async_set, kitchen, "idle")
            if len(announced) < 2:
                raise error

        hass.services.async_register("assist_satellite", "announce", announce)
        hass.states.async_set(kitchen, "idle")
        await say_slowly(house, is_ready, satellite=kitchen, room="Kitchen")
        await wait_until(hass, lambda: announced)
        await hass.async_block_till_done(wait_background_tasks=True)
        assert len(announced) == count


async def test_an_answer_that_a_phone_cannot_show_is_shown_in_home_assistant(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    is_ready = asyncio.Event()
    slow = said("The answer is 42.", after=is_ready)
    async with open_house(hass, slow, early_wait_enable=True, early_wait_seconds=0.05) as house:
        add_phone(house, hass_admin_user)

        async def fail(_: ServiceCall) -> None:
            raise ValueError("no network")

        hass.services.async_register("notify", "mobile_app_phone", fail)
        await say_slowly(house, is_ready, user=hass_admin_user)
        await wait_until(hass, lambda: find_notifications(hass))
        assert list(find_notifications(hass).values()) == ["The answer is 42."]


async def reload(house: TalkingHouse) -> None:
    await house.hass.config_entries.async_reload(house.entry.entry_id)
    await house.data.runtime.home_ready(timeout_s=30)
    await house.hass.async_block_till_done()


async def test_the_button_of_a_notification_works_after_a_restart(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        notified = add_phone(house, hass_admin_user)
        await house.say("unlock the front door", user=hass_admin_user)
        await pass_time(hass, 61)
        await reload(house)
        action = notified[0].data["data"]["actions"][0]["action"]
        for user, state in ((hass_read_only_user, "locked"), (hass_admin_user, "unlocked")):
            hass.bus.async_fire(
                "mobile_app_notification_action", {"action": action}, context=Context(user_id=user.id)
            )
            await hass.async_block_till_done(wait_background_tasks=True)
            assert hass.states.get("lock.front_door").state == state


async def test_a_question_that_was_open_at_a_restart_becomes_a_notification(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("unlock the front door", room="Kitchen")
        await reload(house)
        await wait_until(hass, lambda: house.data.late_turns.open_questions)
        assert find_notifications(hass) == {}
        await pass_time(hass, 61)
        assert "sash.approve" in next(iter(find_notifications(hass).values()))


@pytest.mark.parametrize("is_killed", [False, True])
async def test_an_answer_that_was_promised_before_a_restart_is_told_after_it(
    hass: HomeAssistant, is_killed: bool
) -> None:
    options = {"early_wait_enable": True, "early_wait_seconds": 0.05}
    async with open_house(hass, said("Never.", after=asyncio.Event()), **options) as house:
        early = await house.say("what is the answer?", room="Kitchen")
        assert said_by(early) == "I am still working on it. The answer follows."
        await wait_until(hass, lambda: house.wire.requests)
        house.wire.replies[:] = [said("The answer is 42.")]
        if is_killed:
            await house.data.runtime.abandon_turns()
        await reload(house)
        await wait_until(hass, lambda: find_notifications(hass))
        assert list(find_notifications(hass).values()) == ["The answer is 42."]


async def test_a_turn_that_stops_home_assistant_again_is_not_continued_for_ever(hass: HomeAssistant) -> None:
    options = {"early_wait_enable": True, "early_wait_seconds": 0.05}
    async with open_house(hass, said("Never.", after=asyncio.Event()), **options) as house:
        await house.say("what is the answer?", room="Kitchen")
        await wait_until(hass, lambda: house.wire.requests)
        await reload(house)
        await wait_until(hass, lambda: len(house.read_prompts()) == 2)
        await reload(house)
        await hass.async_block_till_done(wait_background_tasks=True)
        assert house.data.runtime.running_turns == 0
        assert len(house.read_prompts()) == 2
        assert list(find_notifications(hass).values()) == ["The answer was interrupted. Please ask again."]
        await reload(house)
        assert house.data.runtime.running_turns == 0
