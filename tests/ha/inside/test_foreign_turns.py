"""Turns that Home Assistant answered itself are part of the conversation."""

import asyncio

import pytest
from homeassistant.auth.models import User
from homeassistant.components import conversation
from homeassistant.components.assist_pipeline import PipelineStage, async_update_pipeline
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline
from homeassistant.components.assist_pipeline.run import PipelineInput, PipelineRun
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import chat_session
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.foreign_turns import MAX_CONVERSATIONS
from tests.ha.inside.talking_house import ACTING, TalkingHouse, calls, open_house
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")

HOME_ASSISTANT = "conversation.home_assistant"


def answer_elsewhere(hass: HomeAssistant, text: str, answer: str, conversation_id: str | None = None) -> str:
    """Let another agent answer a sentence, as a pipeline does that prefers local sentences."""
    with (
        chat_session.async_get_chat_session(hass, conversation_id) as session,
        conversation.async_get_chat_log(hass, session) as chat_log,
    ):
        chat_log.async_add_user_content(conversation.UserContent(text))
        chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(HOME_ASSISTANT, answer)
        )
        return session.conversation_id


async def use_pipeline(house: TalkingHouse) -> None:
    """Let the only pipeline have our agent, and prefer local sentences. Each room has a satellite."""
    hass = house.hass
    for room, device_id in house.devices.items():
        er.async_get(hass).async_get_or_create("assist_satellite", "satellites", room, device_id=device_id)
    assert await async_setup_component(hass, "assist_pipeline", {})
    await async_update_pipeline(
        hass, async_get_pipeline(hass), conversation_engine=house.agent_id, prefer_local_intents=True
    )


async def hear(
    house: TalkingHouse,
    text: str,
    *,
    room: str | None = None,
    satellite: str | None = None,
    device_id: str | None = None,
    user: User | None = None,
    conversation_id: str | None = None,
    is_recorded: bool = True,
) -> str:
    """Run the pipeline on a sentence, as a satellite does. Return the id of the conversation.

    With `is_recorded`, wait until a sentence that Home Assistant has answered itself is recorded.
    """
    with chat_session.async_get_chat_session(house.hass, conversation_id) as session:
        heard = PipelineInput(
            session=session,
            intent_input=text,
            device_id=device_id if room is None else house.devices[room],
            satellite_id=satellite,
            run=PipelineRun(
                house.hass,
                context=Context(user_id=None if user is None else user.id),
                pipeline=async_get_pipeline(house.hass),
                start_stage=PipelineStage.INTENT,
                end_stage=PipelineStage.INTENT,
                event_callback=lambda event: None,
            ),
        )
        await heard.execute(validate=True)
    if is_recorded:
        await house.hass.async_block_till_done(wait_background_tasks=True)
    return session.conversation_id


async def read_transcript(house: TalkingHouse) -> list[str]:
    page = await house.data.runtime.list_sessions(owner="house")
    return [
        stored.message.text
        for session in page.items
        for stored in await house.data.runtime.list_messages(session.id, owner="house")
    ]


async def test_a_follow_up_knows_what_home_assistant_answered(hass: HomeAssistant) -> None:
    async with open_house(hass, said("The ceiling lights.")) as house:
        conversation_id = answer_elsewhere(hass, "turn on the ceiling lights", "Turned on the lights")
        await house.say("tell me which ones you meant", conversation_id=conversation_id)
        assert "turn on the ceiling lights" in house.read_prompts()[0]
        assert "Turned on the lights" in house.read_prompts()[0]


async def test_a_foreign_turn_is_recorded_once(hass: HomeAssistant) -> None:
    async with open_house(hass, said("The ceiling lights.")) as house:
        conversation_id = answer_elsewhere(hass, "turn on the ceiling lights", "Turned on the lights")
        await house.say("tell me which ones you meant", conversation_id=conversation_id)
        await hass.config_entries.async_reload(house.entry.entry_id)
        await house.say("tell me again", conversation_id=conversation_id)
        assert (await read_transcript(house)).count("turn on the ceiling lights") == 1


async def test_our_own_turns_are_not_recorded_again(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Once upon a time.")) as house:
        conversation_id = (await house.say("tell me a story")).conversation_id
        await house.say("tell me another", conversation_id=conversation_id)
        assert (await read_transcript(house)).count("tell me a story") == 1


async def test_a_sentence_on_a_satellite_is_recorded_at_once(hass: HomeAssistant) -> None:
    async with open_house(hass, said("The bed light.")) as house:
        await use_pipeline(house)
        await hear(house, "turn on the bed light", room="Kitchen")
        assert hass.states.get("light.bed_light").state == "on"
        assert house.wire.requests == []
        assert await read_transcript(house) == ["turn on the bed light", "Turned on the light"]
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        [turn] = await house.data.runtime.list_turns(session.id, owner="house")
        assert (turn.request.area, turn.request.language) == ("Kitchen", "en")
        assert turn.request.caller.device_id == house.devices["Kitchen"]
        # Another conversation of Home Assistant on the same satellite is the same conversation with us.
        await house.say("tell me which one you meant", room="Kitchen")
        assert "turn on the bed light" in house.read_prompts()[0]
        await house.say("tell me which one you meant", room="Bedroom")
        assert "turn on the bed light" not in house.read_prompts()[1]


async def test_a_sentence_on_a_satellite_is_recorded_once(hass: HomeAssistant) -> None:
    async with open_house(hass, said("The bed light.")) as house:
        await use_pipeline(house)
        conversation_id = await hear(house, "turn on the bed light", room="Kitchen")
        await house.say("tell me which one you meant", room="Kitchen", conversation_id=conversation_id)
        assert (await read_transcript(house)).count("turn on the bed light") == 1


async def test_a_sentence_that_home_assistant_answers_drops_an_open_question(hass: HomeAssistant) -> None:
    """The user wakes the satellite again, so Home Assistant begins another conversation. A yes comes too late."""
    asked = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    async with open_house(hass, asked, said("Pardon?"), **ACTING) as house:
        await use_pipeline(house)
        await hear(house, "let them in please", room="Kitchen")
        assert len(house.data.late_turns.open_questions) == 1
        await hear(house, "turn on the bed light", room="Kitchen")
        assert hass.states.get("light.bed_light").state == "on"
        assert house.data.late_turns.open_questions == []
        assert await read_transcript(house) == ["turn on the bed light", "Turned on the light"]
        await hear(house, "yes", room="Kitchen")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_an_older_sentence_drops_no_question(hass: HomeAssistant) -> None:
    asked = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    async with open_house(hass, asked, said("It is open."), **ACTING) as house:
        conversation_id = answer_elsewhere(hass, "turn on the ceiling lights", "Turned on the lights")
        await house.say("let them in please", conversation_id=conversation_id)
        await house.say("yes", conversation_id=conversation_id)
        assert hass.states.get("lock.front_door").state == "unlocked"


async def test_a_satellite_without_a_device_id_is_known_by_its_entity(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await use_pipeline(house)
        satellite = er.async_get(hass).async_get_entity_id("assist_satellite", "satellites", "Kitchen")
        await hear(house, "turn on the bed light", satellite=satellite)
        await house.say("tell me which one you meant", room="Kitchen")
        assert "turn on the bed light" in house.read_prompts()[0]


async def test_a_sentence_without_a_device_is_recorded_with_the_next_message(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await use_pipeline(house)
        conversation_id = await hear(house, "turn on the bed light")
        assert await read_transcript(house) == []
        await house.say("tell me which one you meant", conversation_id=conversation_id)
        assert "turn on the bed light" in house.read_prompts()[0]


async def test_a_sentence_on_the_phone_of_a_user_belongs_to_the_user(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    """An app may name its device. Home Assistant does not say which user has spoken, so this waits, too."""
    async with open_house(hass, said("ok")) as house:
        await use_pipeline(house)
        app = MockConfigEntry(domain="mobile_app")
        app.add_to_hass(hass)
        phone = dr.async_get(hass).async_get_or_create(
            config_entry_id=app.entry_id, identifiers={("mobile_app", "phone")}
        )
        spoken = {"device_id": phone.id, "user": hass_admin_user}
        conversation_id = await hear(house, "turn on the bed light", **spoken)
        assert hass.states.get("light.bed_light").state == "on"
        assert await read_transcript(house) == []
        await hear(house, "tell me which one you meant", conversation_id=conversation_id, **spoken)
        assert "turn on the bed light" in house.read_prompts()[0]
        assert await read_transcript(house) == []


async def test_a_pipeline_without_our_agent_is_none_of_our_business(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await use_pipeline(house)
        await async_update_pipeline(
            hass, async_get_pipeline(hass), conversation_engine=HOME_ASSISTANT, prefer_local_intents=False
        )
        await hear(house, "turn on the bed light", room="Kitchen")
        assert hass.states.get("light.bed_light").state == "on"
        assert await read_transcript(house) == []


async def test_an_agent_without_memory_records_nothing(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok"), session_scope="stateless") as house:
        await use_pipeline(house)
        await hear(house, "turn on the bed light", room="Kitchen")
        page = await house.data.runtime.list_sessions(owner="house", with_questions=True)
        assert page.items == ()


async def test_a_sentence_during_a_turn_is_recorded_with_the_next_message(hass: HomeAssistant) -> None:
    is_ready = asyncio.Event()
    async with open_house(hass, said("A long story.", after=is_ready), said("The bed light.")) as house:
        await use_pipeline(house)
        story = asyncio.create_task(house.say("tell me a story", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
            conversation_id = await hear(house, "turn on the bed light", room="Kitchen")
            assert "turn on the bed light" not in await read_transcript(house)
            is_ready.set()
            await story
        await house.say("tell me which one you meant", room="Kitchen", conversation_id=conversation_id)
        assert "turn on the bed light" in house.read_prompts()[-1]
        assert (await read_transcript(house)).count("turn on the bed light") == 1


async def test_a_follow_up_in_another_conversation_knows_a_sentence_during_a_turn(
    hass: HomeAssistant,
) -> None:
    """A satellite that is woken again begins another conversation of Home Assistant."""
    is_ready = asyncio.Event()
    async with open_house(hass, said("A long story.", after=is_ready), said("The bed light.")) as house:
        await use_pipeline(house)
        story = asyncio.create_task(house.say("tell me a story", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
            await hear(house, "turn on the bed light", room="Kitchen")
            is_ready.set()
            await story
        await house.say("tell me a story", room="Bedroom")
        assert "turn on the bed light" not in house.read_prompts()[-1]
        await house.say("tell me which one you meant", room="Kitchen")
        assert "turn on the bed light" in house.read_prompts()[-1]
        assert (await read_transcript(house)).count("turn on the bed light") == 1


async def test_an_immediate_follow_up_knows_what_home_assistant_answered(hass: HomeAssistant) -> None:
    async with open_house(hass, said("The bed light.")) as house:
        await use_pipeline(house)
        for n in range(5):
            await hear(
                house, f"turn {'off' if n % 2 else 'on'} the bed light", room="Kitchen", is_recorded=False
            )
            await house.say("tell me which one you meant", room="Kitchen")
            assert house.read_prompts()[-1].count("the bed light") == n + 1


async def test_a_turn_that_cannot_be_recorded_does_not_stop_the_conversation(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(hass, said("Fine.")) as house:
        conversation_id = answer_elsewhere(hass, "read me the book", "word " * 500_000)
        await house.say("was that all?", conversation_id=conversation_id)
        assert len(house.read_prompts()) == 1
        assert f"a turn of {HOME_ASSISTANT} was not recorded: " in caplog.text


async def test_the_agent_keeps_its_prompt_when_a_foreign_turn_is_recorded(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok"), prompt="You are a butler.") as house:
        await use_pipeline(house)
        await house.say("tell me a story", room="Kitchen")
        await hear(house, "turn on the bed light", room="Kitchen")
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        assert session.instructions == "You are a butler."


async def test_many_unanswered_sentences_do_not_hide_a_new_one(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await use_pipeline(house)
        for _ in range(MAX_CONVERSATIONS + 1):
            with (
                chat_session.async_get_chat_session(hass) as session,
                conversation.async_get_chat_log(hass, session) as chat_log,
            ):
                chat_log.async_add_user_content(conversation.UserContent("hello?"))
        await hear(house, "turn on the bed light", room="Kitchen")
        assert await read_transcript(house) == ["turn on the bed light", "Turned on the light"]
