"""Sentences that Home Assistant's own engine understands: with our policy, our journal and no model."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from homeassistant.auth.models import User
from homeassistant.components.conversation.chat_log import async_subscribe_chat_logs
from homeassistant.components.intent import TimerEventType, async_register_timer_handler
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant
from homeassistant.helpers import intent
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.sash.home_assistant_intents import COMMAND_TOOL, QUESTION_TOOL, TIMER_TOOL
from sash.values.steps import ToolCall
from tests.ha.inside.talking_house import ACTING, TalkingHouse, open_house, said_by
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")

# Sentences that our own grammar does not know.
SENTENCES = """
language: en
intents:
  HassRespond:
    data:
      - sentences: ["what is our motto"]
        response: motto
  HassGetState:
    data:
      - sentences: ["how is bedtime"]
        slots: {name: Bed Light}
        response: one
      - sentences: ["how is atlantis"]
        slots: {area: Atlantis}
        response: one
  HassVacuumStart:
    data:
      - sentences: ["dust be gone"]
        slots: {name: Ground floor vacuum}
      - sentences: ["dust be gone silently"]
        slots: {name: Ground floor vacuum}
        response: silent
  HassTurnOff:
    data:
      - sentences: ["open sesame"]
        slots: {name: Front Door, domain: lock}
  Abracadabra:
    data:
      - sentences: ["abracadabra"]
responses:
  intents:
    HassRespond:
      motto: Home sweet home.
"""
MODEL = said("The model was asked.")
CLEANING = {"allow_actuation": True, "allowlisted_services": ["vacuum"]}


@pytest.fixture(autouse=True)
def sentences(hass: HomeAssistant) -> None:
    """Let Home Assistant know more sentences."""
    folder = Path(hass.config.path("custom_sentences", "en"))
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text(SENTENCES)


class Vacuum(intent.IntentHandler):
    """Handles an intent as slowly as a test wants."""

    intent_type = "HassVacuumStart"

    def __init__(self) -> None:
        self.asked: list[intent.Intent] = []
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    async def async_handle(self, intent_obj: intent.Intent) -> intent.IntentResponse:
        self.asked.append(intent_obj)
        self.has_begun.set()
        await self.may_end.wait()
        return intent_obj.create_response()


@pytest.fixture
async def vacuum(hass: HomeAssistant) -> Vacuum:
    """A vacuum that starts by intent."""
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "intent", {})
    assert await async_setup_component(hass, "vacuum", {})
    await hass.async_block_till_done()
    handler = Vacuum()
    intent.async_register(hass, handler)
    return handler


async def list_calls(house: TalkingHouse, owner: str = "house") -> list[ToolCall]:
    """Return the tool calls of all turns of an owner."""
    runtime = house.data.runtime
    found = []
    for session in (await runtime.list_sessions(owner=owner, with_questions=True)).items:
        for turn in await runtime.list_turns(session.id, owner=owner):
            result = await runtime.await_continuation(turn.id, owner=owner, timeout_s=0)
            found += [step.body for step in result.steps if isinstance(step.body, ToolCall)]
    return found


async def test_home_assistant_answers_a_question_and_the_journal_has_it(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        assert said_by(await house.say("what is our motto", room="Kitchen")) == "Home sweet home."
        assert house.wire.requests == []
        [call] = await list_calls(house)
        assert (call.name, '"HassRespond"' in call.arguments) == (QUESTION_TOOL, True)


async def test_a_question_about_a_state_is_read_from_the_home(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        assert said_by(await house.say("how is bedtime")) == "Bed light is off"
        assert house.wire.requests == []


async def test_a_stateless_agent_has_these_sentences_too(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL, session_scope="stateless") as house:
        assert said_by(await house.say("what is our motto")) == "Home sweet home."


async def test_an_agent_may_do_without_them(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL, use_home_assistant_intents=False) as house:
        assert said_by(await house.say("what is our motto")) == "The model was asked."


@pytest.mark.parametrize("language", ["de", "tlh", "zh-Hans"])
async def test_other_languages_do_not_understand_it(hass: HomeAssistant, language: str) -> None:
    async with open_house(hass, MODEL) as house:
        assert said_by(await house.say("what is our motto", language=language)) == "The model was asked."


async def test_a_greeting_of_home_assistant_is_left_to_the_model(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        assert said_by(await house.say("are you always listening")) == "The model was asked."


async def test_a_command_is_done_if_the_policy_allows_its_service(
    hass: HomeAssistant, vacuum: Vacuum, hass_admin_user: User
) -> None:
    async with open_house(hass, MODEL, **CLEANING) as house:
        result = await house.say("dust be gone", user=hass_admin_user)
        assert said_by(result) == "Started"
        [asked] = vacuum.asked
        assert asked.context.user_id == hass_admin_user.id
        assert asked.slots["name"]["value"] == "Ground floor vacuum"
        [call] = await list_calls(house, f"user:{hass_admin_user.id}")
        assert call.name == COMMAND_TOOL
        assert house.wire.requests == []


async def test_a_command_without_words_of_its_own_is_confirmed(hass: HomeAssistant, vacuum: Vacuum) -> None:
    async with open_house(hass, MODEL, **CLEANING) as house:
        assert said_by(await house.say("dust be gone silently")) == "Done"


@pytest.mark.parametrize(
    "options",
    [
        {},
        ACTING,
        CLEANING | {"allow_actuation": False},
        CLEANING | {"require_confirmation": ["vacuum"]},
        CLEANING | {"denylisted_services": ["vacuum.start"]},
        CLEANING | {"dry_run": True},
    ],
)
async def test_a_command_that_the_policy_does_not_simply_allow_is_left_to_the_model(
    hass: HomeAssistant, vacuum: Vacuum, options: dict[str, Any]
) -> None:
    async with open_house(hass, MODEL, **options) as house:
        assert said_by(await house.say("dust be gone")) == "The model was asked."
        assert vacuum.asked == []


async def test_home_assistant_never_opens_a_door(hass: HomeAssistant) -> None:
    everything = {"allow_actuation": True, "allowlisted_services": ["*"], "require_confirmation": []}
    async with open_house(hass, MODEL, **everything) as house:
        await hass.services.async_call("lock", "lock", {"entity_id": "lock.front_door"}, blocking=True)
        assert said_by(await house.say("open sesame")) == "The model was asked."
        assert hass.states.get("lock.front_door").state == "locked"


@pytest.mark.parametrize(
    ("allowed", "answer"), [("light", "The model was asked."), ("intent_script", "Hey!")]
)
async def test_an_intent_of_the_user_needs_a_place_in_the_allowlist(
    hass: HomeAssistant, allowed: str, answer: str
) -> None:
    config = {"Abracadabra": {"speech": {"text": "Hey!"}}}
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "intent_script", {"intent_script": config})
    async with open_house(hass, MODEL, allow_actuation=True, allowlisted_services=[allowed]) as house:
        assert said_by(await house.say("abracadabra")) == answer


async def test_a_question_that_the_user_has_replaced_needs_a_place_in_the_allowlist(
    hass: HomeAssistant,
) -> None:
    config = {"HassGetWeather": {"action": [{"event": "something_happens"}], "speech": {"text": "Hey!"}}}
    assert await async_setup_component(hass, "homeassistant", {})
    happened = async_capture_events(hass, "something_happens")
    async with open_house(hass, MODEL, allow_actuation=True) as house:
        assert await async_setup_component(hass, "intent_script", {"intent_script": config})
        await house.say("what is the weather")
        assert happened == []


async def test_a_failed_command_is_explained_by_the_model(hass: HomeAssistant, vacuum: Vacuum) -> None:
    async def fail(intent_obj: intent.Intent) -> intent.IntentResponse:
        raise intent.IntentHandleError("the bag is full")

    vacuum.async_handle = fail
    async with open_house(hass, MODEL, **CLEANING) as house:
        assert said_by(await house.say("dust be gone")) == "The model was asked."
        assert "failed:" in house.read_prompts()[0]


async def test_a_failed_command_is_told_in_the_words_of_home_assistant_if_there_is_no_model(
    hass: HomeAssistant, vacuum: Vacuum
) -> None:
    async def fail(intent_obj: intent.Intent) -> intent.IntentResponse:
        raise intent.IntentHandleError("the bag is full")

    vacuum.async_handle = fail
    async with open_house(hass, has_model=False, **CLEANING) as house:
        assert said_by(await house.say("dust be gone")) == "An unexpected error occurred"


async def test_a_sentence_without_a_target_is_left_to_the_model(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        assert said_by(await house.say("how is atlantis")) == "The model was asked."
        assert "failed:" not in house.read_prompts()[0]


async def test_a_sentence_without_a_target_is_not_understood_if_there_is_no_model(
    hass: HomeAssistant,
) -> None:
    async with open_house(hass, has_model=False) as house:
        assert said_by(await house.say("how is atlantis")) == "I did not understand that."


async def test_an_intent_without_a_handler_is_left_to_the_model(hass: HomeAssistant) -> None:
    allowed = {"allow_actuation": True, "allowlisted_services": ["todo"]}
    async with open_house(hass, MODEL, **allowed) as house:
        assert said_by(await house.say("add milk to the shopping list")) == "The model was asked."
        assert await list_calls(house) == []


async def test_a_command_under_way_at_a_stop_is_not_repeated(hass: HomeAssistant, vacuum: Vacuum) -> None:
    async with open_house(hass, MODEL, **CLEANING) as house:
        vacuum.may_end.clear()
        talk = hass.async_create_task(house.say("dust be gone", room="Kitchen"))
        async with asyncio.timeout(10):
            await vacuum.has_begun.wait()
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await asyncio.wait([talk], timeout=10)
        talk.exception()  # The answer is lost with the runtime.
        vacuum.may_end.set()
        runtime = house.data.runtime
        [session] = (await runtime.list_sessions(owner="house")).items
        [turn] = await runtime.open_continuations(session.id, owner="house")
        await runtime.resume(turn.id, owner="house")
        result = await runtime.await_continuation(turn.id, owner="house", timeout_s=10)
        assert result.response is not None and result.response.final_message == "The model was asked."
        assert len(vacuum.asked) == 1
        assert "outcome unknown" in house.read_prompts()[0]


async def test_a_satellite_has_timers_without_a_permission_to_act(hass: HomeAssistant) -> None:
    heard = Mock()
    async with open_house(hass, MODEL) as house:
        async_register_timer_handler(hass, house.devices["Kitchen"], heard)
        await house.say("set a timer for five minutes", room="Kitchen")
        kind, timer = heard.call_args.args
        assert (kind, timer.start_minutes) == (TimerEventType.STARTED, 5)
        assert [call.name for call in await list_calls(house)] == [TIMER_TOOL]
        result = await house.say("cancel the timer", room="Kitchen")
        assert heard.call_args.args[0] is TimerEventType.CANCELLED and said_by(result)
        assert house.wire.requests == []


async def test_a_device_without_timers_is_told_by_sash(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        result = await house.say("set a timer for five minutes", room="Kitchen")
        assert said_by(result).endswith("timer for 5 minutes.")
        [waiting] = await house.data.runtime.list_waiting(owner="house")
        assert waiting.summary == "timer for 5 minutes"
        assert house.wire.requests == []


async def test_a_command_for_later_waits_in_sash_also_on_a_device_with_timers(hass: HomeAssistant) -> None:
    """A timer of Home Assistant would be lost at a restart."""
    heard = Mock()
    async with open_house(hass, MODEL, **ACTING) as house:
        async_register_timer_handler(hass, house.devices["Kitchen"], heard)
        await house.say("turn on the bed light in five minutes", room="Kitchen")
        [waiting] = await house.data.runtime.list_waiting(owner="house")
        assert waiting.summary == "turn on the bed light"
        assert hass.states.get("light.bed_light").state == "off" and not heard.called
        assert house.wire.requests == []


async def test_a_command_for_later_needs_a_permission_to_act(hass: HomeAssistant) -> None:
    async with open_house(hass, MODEL) as house:
        result = await house.say("turn on the bed light in five minutes", room="Kitchen")
        assert said_by(result) == "The model was asked."


async def test_the_words_of_the_engine_are_not_a_turn_of_another_agent(
    hass: HomeAssistant,
) -> None:
    async with open_house(hass, MODEL) as house:
        seen: list[str] = []
        stop = async_subscribe_chat_logs(hass, lambda id_, kind, data: seen.append(id_))
        await house.say("what is our motto", room="Kitchen")
        await hass.async_block_till_done(wait_background_tasks=True)
        stop()
        runtime = house.data.runtime
        [session] = (await runtime.list_sessions(owner="house")).items
        messages = await runtime.list_messages(session.id, owner="house")
        said_texts = [
            stored.message.text for stored in messages if stored.message.role in ("user", "assistant")
        ]
        assert [text for text in said_texts if text] == ["what is our motto", "Home sweet home."]
        assert seen


async def test_a_media_command_finds_its_player(hass: HomeAssistant) -> None:
    options = {"allow_actuation": True, "allowlisted_services": ["media_player"]}
    async with open_house(hass, MODEL, platforms=[Platform.MEDIA_PLAYER], **options) as house:
        await house.say("pause the walkman", room="Kitchen")
        assert hass.states.get("media_player.walkman").state == "paused"
        assert house.wire.requests == []
