"""The options of an agent reach its conversations: seen in what the model is asked, and in what happens."""

from datetime import timedelta
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory
from homeassistant.auth.models import User
from homeassistant.core import HomeAssistant
from pytest_homeassistant_custom_component.common import async_fire_time_changed

from custom_components.sash.retention import SWEEP_INTERVAL
from tests.ha.inside.talking_house import ACTING, TalkingHouse, calls, open_house, said_by
from tests.models.wire import Reply, chunk, failed, said, usage

pytestmark = pytest.mark.usefixtures("socket_enabled")

LIGHT = "light.bed_light"
DOOR = "lock.front_door"
TURN_ON = calls("call_service", service="light.turn_on", entity_ids=[LIGHT])
PRICED = "gpt-4o-mini"


def priced(text: str) -> Reply:
    """An answer of a model with a known price. It costs a fifth of a cent."""
    chunks: list[Any] = [chunk(text), chunk(finish="stop"), usage(10_000, 1_000)]
    return Reply(chunks=[each | {"model": PRICED} for each in chunks])


def list_said(house: TalkingHouse) -> list[str]:
    """Return the messages of users that the last prompt has word for word."""
    return [each["content"] for each in house.wire.requests[-1].body["messages"] if each["role"] == "user"]


async def change_options(house: TalkingHouse, **options: Any) -> None:
    """Replace the options of the agent."""
    (subentry,) = house.entry.subentries.values()
    house.hass.config_entries.async_update_subentry(house.entry, subentry, data={"model": "m", **options})
    await house.hass.async_block_till_done()
    await house.data.runtime.home_ready(timeout_s=30)


async def tell_stories(house: TalkingHouse, count: int, words: int = 3) -> None:
    for number in range(count):
        await house.say(f"story {number} {'about cats and dogs ' * words}", room="Kitchen")


async def test_the_parameters_of_the_model(hass: HomeAssistant) -> None:
    options = {"model": "gpt-5-mini", "reasoning_effort": "low", "max_output_tokens": 77, "temperature": 0.3}
    async with open_house(hass, said("Fine."), **options) as house:
        await house.say("tell me a story")
        body = house.wire.requests[-1].body
        assert (body["model"], body["reasoning_effort"], body["temperature"]) == ("gpt-5-mini", "low", 0.3)
        assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))


async def test_the_variables_of_the_prompt(hass: HomeAssistant, hass_admin_user: User) -> None:
    prompt = (
        "{{ ha_name }} | {{ user_name }} | {{ llm_context.language }} | {{ llm_context.platform }} | "
        "{{ states('light.bed_light') }} | {{ llm_context.device_id or 'no device' }}"
    )
    async with open_house(hass, said("Fine."), prompt=prompt) as house:
        await house.say("erzähl mir was", user=hass_admin_user, language="de")
        name = hass.config.location_name
        assert f"{name} | {hass_admin_user.name} | de | sash | off | no device" in house.read_prompts()[-1]
        await house.say("tell me a story", room="Kitchen")
        assert f"{name} | None | en | sash | off | {house.devices['Kitchen']}" in house.read_prompts()[-1]


async def test_the_window_has_at_most_so_many_turns(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine."), max_history_turns=2) as house:
        await tell_stories(house, 4)
        told = "\n".join(list_said(house))
        assert "story 3 about" in told and "story 2 about" in told
        assert "story 0 about" not in told and "story 1 about" not in told


async def test_the_window_has_at_most_so_many_tokens(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine."), sliding_window_max_tokens=200) as house:
        await tell_stories(house, 4, words=20)
        told = "\n".join(list_said(house))
        assert "story 3 about" in told and "story 0 about" not in told


async def test_without_a_window_every_turn_stays(hass: HomeAssistant) -> None:
    options = {"sliding_window_enable": False, "sliding_window_max_tokens": 200, "max_history_turns": 2}
    async with open_house(hass, said("Fine."), **options) as house:
        await tell_stories(house, 4, words=500)  # More than the 4,000 tokens of a window that has no options.
        assert "story 0 about" in "\n".join(list_said(house))


async def test_an_older_conversation_gets_the_window_of_the_model_again(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine."), max_history_turns=1) as house:
        await tell_stories(house, 3)
        assert "story 0 about" not in "\n".join(list_said(house))
        await change_options(house)
        await tell_stories(house, 3)
        assert "story 0 about" in "\n".join(list_said(house))


@pytest.mark.parametrize("size", [{}, {"sliding_window_max_tokens": 900}, {"sliding_window_enable": False}])
async def test_whether_system_messages_stay(hass: HomeAssistant, size: dict[str, Any]) -> None:
    async with open_house(hass, said("Fine."), sliding_window_preserve_system=False, **size) as house:
        await house.say("tell me a story", room="Kitchen")
        exported = await hass.services.async_call(
            "sash",
            "export_conversation",
            {"device_id": house.devices["Kitchen"]},
            blocking=True,
            return_response=True,
        )
        assert exported["session"]["window"]["preserve_system"] is False


async def test_a_turn_has_at_most_so_many_tool_calls(hass: HomeAssistant) -> None:
    async with open_house(hass, TURN_ON, said("Well."), max_tool_calls=0, **ACTING) as house:
        await house.say("make it cosy in here please")
        assert hass.states.get(LIGHT).state == "off"


async def test_a_turn_has_at_most_so_many_steps(hass: HomeAssistant) -> None:
    async with open_house(hass, TURN_ON, max_steps=1, **ACTING) as house:
        await house.say("make it cosy in here please")
        assert len(house.wire.requests) <= 2  # The last call asks for an answer without tools.


async def test_a_turn_has_at_most_so_many_tokens(hass: HomeAssistant) -> None:
    async with open_house(hass, TURN_ON, max_tokens_per_turn=50, **ACTING) as house:
        await house.say("make it cosy in here please")
        assert hass.states.get(LIGHT).state == "off"


async def test_a_turn_takes_at_most_so_long(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[chunk("Well, ")], then="hang"), max_duration_ms=1000) as house:
        result = await house.say("tell me a story")
        assert said_by(result) == "Well, I stopped because this took too long."


async def test_a_turn_costs_at_most_so_much(hass: HomeAssistant) -> None:
    async with open_house(hass, TURN_ON, max_cost_per_turn_usd=0.000001, model=PRICED, **ACTING) as house:
        await house.say("make it cosy in here please")
        assert hass.states.get(LIGHT).state == "off"


async def test_past_the_money_of_the_day_only_local_sentences_are_answered(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, priced("Fine."), max_cost_per_day_usd=0.001, model=PRICED, **ACTING) as house:
        await house.say("tell me a story", room="Kitchen")
        asked = len(house.wire.requests)
        refused = await house.say("tell me another story", user=hass_admin_user)
        assert len(house.wire.requests) == asked
        assert "day" in said_by(refused)
        await house.say("turn on the bed light", room="Kitchen")
        assert hass.states.get(LIGHT).state == "on"


async def test_a_denied_service_is_refused_although_its_domain_is_allowed(hass: HomeAssistant) -> None:
    options = {**ACTING, "denylisted_services": ["light.turn_on"]}
    async with open_house(hass, TURN_ON, said("I must not."), **options) as house:
        await house.say("make it cosy in here please")
        assert hass.states.get(LIGHT).state == "off"


async def test_what_needs_no_confirmation_is_done_at_once(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING, require_confirmation=[]) as house:
        await house.say("unlock the front door", room="Kitchen")
        assert hass.states.get(DOOR).state in ("unlocking", "unlocked")


async def test_a_spoken_yes_has_so_many_seconds(hass: HomeAssistant, freezer: FrozenDateTimeFactory) -> None:
    async with open_house(hass, said("Pardon?"), **ACTING, approval_wait_seconds=30) as house:
        await house.say("unlock the front door", room="Kitchen")
        freezer.tick(timedelta(seconds=31))
        await house.say("yes", room="Kitchen")
        assert hass.states.get(DOOR).state == "locked"


async def test_a_dry_run_changes_nothing(hass: HomeAssistant) -> None:
    async with open_house(hass, TURN_ON, said("I would."), **ACTING, dry_run=True) as house:
        await house.say("make it cosy in here please")
        assert hass.states.get(LIGHT).state == "off"
        assert "dry_run" in house.wire.requests[-1].body["messages"][-1]["content"]


async def test_at_most_so_many_actions_a_minute(hass: HomeAssistant) -> None:
    off = calls("call_service", service="light.turn_off", entity_ids=[LIGHT])
    replies = (TURN_ON, said("Done."), off, said("Too many."))
    async with open_house(hass, *replies, **ACTING, max_actions_per_minute=1) as house:
        await house.say("make it cosy in here please")
        await house.say("make it dark in here please")
        assert hass.states.get(LIGHT).state == "on"


async def test_a_conversation_ends_after_its_days(
    hass: HomeAssistant, freezer: FrozenDateTimeFactory
) -> None:
    async with open_house(hass, said("Fine."), session_idle_days=2) as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        freezer.tick(timedelta(days=1))
        await house.say("tell me a story about him", room="Kitchen")
        assert "beagle" in house.read_prompts()[-1]
        freezer.tick(timedelta(days=3))
        await house.say("tell me a story", room="Kitchen")
        assert "beagle" not in house.read_prompts()[-1]
        found = await hass.services.async_call(
            "sash", "search", {"query": "beagle"}, blocking=True, return_response=True
        )
        assert len(found["messages"]) == 1


async def test_old_conversations_are_deleted(hass: HomeAssistant, freezer: FrozenDateTimeFactory) -> None:
    async with open_house(hass, said("Fine."), transcript_retention_days=10, session_idle_days=None) as house:

        async def count() -> int:
            found = await hass.services.async_call(
                "sash", "search", {"query": "beagle"}, blocking=True, return_response=True
            )
            return len(found["messages"])

        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        for days, expected in ((9, 1), (2, 0)):
            freezer.tick(timedelta(days=days) + SWEEP_INTERVAL)
            async_fire_time_changed(hass)
            await hass.async_block_till_done(wait_background_tasks=True)
            assert await count() == expected
