"""The conversation entity: what a person says, hears, and finds remembered."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from homeassistant.auth.models import User
from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import chat_session
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.typing import WebSocketGenerator

from sash.stores.sqlite.store import SqliteStore
from tests.ha.inside.talking_house import ACTING, TalkingHouse, calls, open_house, said_by
from tests.models.wire import Reply, chunk, failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")


async def test_the_agent_answers_with_the_words_of_the_model(hass: HomeAssistant) -> None:
    async with open_house(hass, said("It is ", "fine.")) as house:
        result = await house.say("how are the plants doing?")
        assert said_by(result) == "It is fine."
        assert not result.continue_conversation


async def test_the_agent_is_offered_for_every_language(
    hass: HomeAssistant, hass_ws_client: WebSocketGenerator
) -> None:
    async with open_house(hass, said("ok")) as house:
        client = await hass_ws_client(hass)
        await client.send_json_auto_id({"type": "conversation/agent/list", "language": "tlh"})
        agents = (await client.receive_json())["result"]["agents"]
        [ours] = [agent for agent in agents if agent["id"] == house.agent_id]
        assert ours["supported_languages"] == "*"


async def test_home_assistant_knows_that_the_agent_controls_devices_and_streams(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        features = hass.states.get(house.agent_id).attributes["supported_features"]
        assert features & conversation.ConversationEntityFeature.CONTROL
        agent = conversation.async_get_agent_info(hass, house.agent_id)
        assert agent is not None and agent.supports_streaming


async def test_the_language_of_a_message_is_that_of_the_device(hass: HomeAssistant) -> None:
    """Two satellites of one conversation may have pipelines of two languages."""
    async with open_house(hass, failed(500), session_scope="house", **ACTING) as house:
        answered = await house.say("turn off the kitchen lights", room="Kitchen")
        assert said_by(answered) == "Turned off the kitchen lights."
        answered = await house.say("schalte Bed Light ein", room="Bedroom", language="de")
        assert said_by(answered) == "Bed Light ist jetzt an."
        assert hass.states.get("light.bed_light").state == "on"
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        turns = await house.data.runtime.list_turns(session.id, owner="house")
        told = {(turn.request.language, turn.request.area, turn.request.caller.device_id) for turn in turns}
        kitchen, bedroom = house.devices["Kitchen"], house.devices["Bedroom"]
        assert told == {("en", "Kitchen", kitchen), ("de", "Bedroom", bedroom)}


async def test_a_question_of_the_agent_keeps_the_microphone_open(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Which plants?")) as house:
        assert (await house.say("water the plants for me")).continue_conversation


async def test_a_local_sentence_needs_no_model_and_switches_the_light(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        assert hass.states.get("light.bed_light").state == "off"
        result = await house.say("turn on the bed light")
        assert hass.states.get("light.bed_light").state == "on"
        assert house.wire.requests == []
        assert [target.id for target in result.response.success_results] == ["light.bed_light"]


async def test_the_area_of_the_satellite_is_meant(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("turn off the lights", room="Kitchen")
        assert hass.states.get("light.kitchen_lights").state == "off"
        assert hass.states.get("light.ceiling_lights").state == "on"


async def test_the_logbook_can_say_who_asked(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, failed(500), **ACTING) as house:
        await house.say("turn on the bed light", user=hass_admin_user)
        assert hass.states.get("light.bed_light").context.user_id == hass_admin_user.id


async def test_actions_are_off_by_default(hass: HomeAssistant) -> None:
    async with open_house(hass, said("I must not do that.")) as house:
        result = await house.say("turn on the bed light")
        assert hass.states.get("light.bed_light").state == "off"
        assert said_by(result) == "I must not do that."
        assert "allow" in house.wire.requests[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("reply", "language", "spoken"),
    [
        (failed(401, "invalid_api_key"), "en", "refuses the key"),
        (failed(401, "invalid_api_key"), "de-AT", "lehnt den Schlüssel ab"),
        (failed(404, "model_not_found"), "fr", "ne connaît pas"),
        (failed(429, "insufficient_quota"), "es", "no acepta"),
        (failed(400, "other", "bad field"), "it", "non ha potuto rispondere"),
        (Reply(chunks=[]), "nl", "niet bereikbaar"),
        (failed(400, "context_length_exceeded"), "pt", "too long for the language model"),
    ],
)
async def test_a_failed_turn_is_told_in_the_language_of_the_user_and_logged_with_its_cause(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture, reply: Reply, language: str, spoken: str
) -> None:
    async with open_house(hass, reply) as house:
        result = await house.say("tell me a story", language=language)
        assert result.response.error_code is not None
        assert spoken in said_by(result)
        assert "HTTP" not in said_by(result) and "api_key" not in said_by(result)
        [record] = [each for each in caplog.records if " failed: " in each.getMessage()]
        assert record.levelname == "WARNING" and "model m " in record.getMessage()


async def test_a_message_that_is_too_long_is_refused_in_the_language_of_the_user(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Yes.")) as house:
        result = await house.say("ja " * 400_000, language="de")
        assert said_by(result) == "Diese Nachricht ist zu lang."


@pytest.mark.parametrize(
    ("budget", "spoken"),
    [
        ({"max_steps": 1}, "Ich habe aufgehört"),
        ({"max_cost_per_day_usd": 0.0, "model": "gpt-5-mini"}, "Das heutige Budget"),
    ],
)
async def test_a_reached_budget_is_told_in_the_language_of_the_user(
    hass: HomeAssistant, budget: dict[str, Any], spoken: str
) -> None:
    async with open_house(hass, calls("search_index", query="light"), **budget) as house:
        assert said_by(await house.say("erzähl mir etwas", language="de")).startswith(spoken)


async def test_the_prompt_is_a_template(hass: HomeAssistant, hass_admin_user: User) -> None:
    prompt = "You are the butler of {{ ha_name }}. Serve {{ user_name }}."
    async with open_house(hass, said("Yes."), prompt=prompt) as house:
        await house.say("tell me a story", user=hass_admin_user)
        expected = f"You are the butler of {hass.config.location_name}. Serve {hass_admin_user.name}."
        assert expected in house.read_prompts()[0]


async def test_a_wrong_template_is_an_error_with_the_reason(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Yes."), prompt="{{ 1 / 0 }}") as house:
        result = await house.say("tell me a story")
        assert result.response.error_code is not None
        assert said_by(result).startswith("The instructions of Sash are wrong: ")


async def test_what_an_automation_says_about_the_turn_reaches_the_model(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")) as house:
        await house.say("tell me more", extra_system_prompt="The washing machine is done.")
        assert "The washing machine is done." in house.read_prompts()[0]


async def test_the_first_message_of_a_started_conversation_reaches_the_model(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Done.")) as house:
        with (
            chat_session.async_get_chat_session(hass) as session,
            conversation.async_get_chat_log(hass, session) as chat_log,
        ):
            content = conversation.AssistantContent("assist_satellite.kitchen", "Shall I water the plants?")
            chat_log.async_add_assistant_content_without_tools(content)
        await house.say("do it in ten minutes please", conversation_id=session.conversation_id)
        assert "Shall I water the plants?" in house.read_prompts()[0]
        await house.say("tell me what you asked", conversation_id=session.conversation_id)
        assert "Shall I water the plants?" in house.read_prompts()[1]


async def test_a_later_conversation_on_the_same_satellite_remembers(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted."), said("Rex.")) as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("write a poem about the dog", room="Kitchen")
        assert "beagle named Rex" in house.read_prompts()[1]


async def test_two_satellites_have_separate_conversations(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted.")) as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("tell me a story about him", room="Bedroom")
        assert "beagle" not in house.read_prompts()[1]


async def test_in_the_scope_of_the_house_two_satellites_share_a_conversation(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted."), session_scope="house") as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("tell me a story about him", room="Bedroom")
        assert "beagle" in house.read_prompts()[1]


async def test_in_the_scope_of_an_area_its_satellites_share_a_conversation(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted."), session_scope="area") as house:
        kitchen = ar.async_get(hass).async_get_area_by_name("Kitchen")
        # The area of a satellite counts, and not that of its device.
        entities = er.async_get(hass)
        satellite = entities.async_get_or_create(
            "assist_satellite", "satellites", "2", device_id=house.devices["Bedroom"], original_name="2"
        )
        entities.async_update_entity(satellite.entity_id, area_id=kitchen.id)
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("tell me a story about him", satellite=satellite.entity_id)
        await house.say("tell me a story about him", room="Bedroom")
        assert "beagle" in house.read_prompts()[1]
        assert "beagle" not in house.read_prompts()[2]


async def test_in_the_scope_of_a_user_the_devices_of_the_user_share_a_conversation(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("Noted."), session_scope="user") as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen", user=hass_admin_user)
        await house.say("tell me a story about him", room="Kitchen", user=hass_read_only_user)
        assert "beagle" not in house.read_prompts()[-1]
        await house.say("tell me a story about him", room="Bedroom", user=hass_admin_user)
        assert "beagle" in house.read_prompts()[-1]


async def test_in_the_scope_of_a_conversation_each_one_begins_anew(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted."), session_scope="conversation") as house:
        first = await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("tell me a story about him", room="Kitchen")
        assert "beagle" not in house.read_prompts()[-1]
        await house.say("tell me a story", room="Kitchen", conversation_id=first.conversation_id)
        assert "beagle" in house.read_prompts()[-1]


async def test_two_speakers_of_one_conversation_are_answered_one_after_the_other(
    hass: HomeAssistant,
) -> None:
    may_answer = asyncio.Event()
    replies = (said("A cat.", after=may_answer), said("A dog."))
    async with open_house(hass, *replies, session_scope="house") as house:
        first = asyncio.create_task(house.say("tell me about your first pet", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0)
        second = asyncio.create_task(house.say("tell me about your second pet", room="Bedroom"))
        async with asyncio.timeout(10):
            while len(await list_open_turns(house)) < 2:
                await asyncio.sleep(0)
        assert len(house.wire.requests) == 1
        may_answer.set()
        assert [said_by(await first), said_by(await second)] == ["A cat.", "A dog."]
        assert "A cat." in house.read_prompts()[1]


async def list_open_turns(house: TalkingHouse) -> list[str]:
    """Return the states of the turns of the only conversation of the house that have not ended."""
    (session,) = (await house.data.runtime.list_sessions(owner="house")).items
    turns = await house.data.runtime.open_continuations(session.id, owner="house")
    return [turn.status for turn in turns]


async def test_without_memory_every_turn_starts_anew(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted."), session_scope="stateless") as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await house.say("tell me a story about him", room="Kitchen")
        assert "beagle" not in house.read_prompts()[1]


async def test_a_fact_that_a_satellite_learned_is_known_to_a_user(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, said("Fine.")) as house:
        await house.say("remember that the spare key is under the pot", room="Kitchen")
        await house.say("tell me a story", user=hass_admin_user)
        assert "spare key is under the pot" in house.read_prompts()[-1]


async def test_a_fact_of_a_user_is_unknown_to_other_users_and_to_satellites(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("Fine.")) as house:
        await house.say("remember that my present for Ben is a kite", user=hass_admin_user)
        await house.say("tell me a story", user=hass_read_only_user)
        await house.say("tell me a story", room="Kitchen")
        assert not any("kite" in prompt for prompt in house.read_prompts()[-2:])


async def test_memory_survives_a_restart(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Noted.")) as house:
        await house.say("my dog is a beagle named Rex, tell him hello", room="Kitchen")
        await hass.config_entries.async_reload(house.entry.entry_id)
        await house.say("tell me a story about him", room="Kitchen")
        assert "beagle" in house.read_prompts()[-1]


async def test_changed_options_apply_to_older_sessions(hass: HomeAssistant) -> None:
    async with open_house(hass, said("I must not do that.")) as house:
        await house.say("turn on the bed light", room="Kitchen")
        (subentry,) = house.entry.subentries.values()
        hass.config_entries.async_update_subentry(house.entry, subentry, data={**subentry.data, **ACTING})
        await hass.async_block_till_done()
        await house.data.runtime.home_ready(timeout_s=30)
        await house.say("turn on the bed light", room="Kitchen")
        assert hass.states.get("light.bed_light").state == "on"


async def test_a_changed_model_prompt_budget_and_window_apply_to_older_sessions(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine."), prompt="You are a butler.") as house:
        await house.say("tell me a story", room="Kitchen")
        (subentry,) = house.entry.subentries.values()
        changed = {
            "model": "n",
            "prompt": "You are a pirate.",
            "max_steps": 7,
            "sliding_window_max_tokens": 3000,
        }
        hass.config_entries.async_update_subentry(house.entry, subentry, data=changed)
        await hass.async_block_till_done()
        await house.say("tell me another story", room="Kitchen")
        assert house.wire.requests[-1].body["model"] == "n"
        prompt = house.read_prompts()[-1]
        assert "You are a pirate." in prompt and "butler" not in prompt
        assert "tell me a story" in prompt
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        assert (session.budgets.max_steps, session.window.max_tokens) == (7, 3000)


async def test_text_is_streamed_as_the_model_writes_it(hass: HomeAssistant) -> None:
    writing = Reply(chunks=[chunk("It is a long "), chunk("story. ")], then="hang")
    deltas: list[dict] = []
    spoken = asyncio.Event()

    def listen(_: conversation.ChatLog, delta: dict) -> None:
        deltas.append(delta)
        if delta.get("content"):
            spoken.set()

    async with open_house(hass, writing) as house:
        with (
            chat_session.async_get_chat_session(hass) as session,
            conversation.async_get_chat_log(hass, session, chat_log_delta_listener=listen) as _,
        ):
            task = asyncio.create_task(house.say("tell me a story?", conversation_id=session.conversation_id))
            async with asyncio.timeout(10):
                await spoken.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert "".join(delta.get("content") or "" for delta in deltas).startswith("It is a long")


async def test_a_claim_that_grounding_corrects_is_never_spoken(hass: HomeAssistant) -> None:
    deltas: list[str] = []

    def listen(_: conversation.ChatLog, delta: dict) -> None:
        deltas.append(delta.get("content") or "")

    async with open_house(hass, said("I have turned on ", "the bed light."), **ACTING) as house:
        with (
            chat_session.async_get_chat_session(hass) as session,
            conversation.async_get_chat_log(hass, session, chat_log_delta_listener=listen) as _,
        ):
            result = await house.say("make it cosy in here please", conversation_id=session.conversation_id)
        assert "I have turned on" not in "".join(deltas)
        assert said_by(result) == "".join(deltas)
        assert hass.states.get("light.bed_light").state == "off"


async def test_cancelling_the_pipeline_cancels_the_turn(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[chunk("Well, ")], then="hang")) as house:
        task = asyncio.create_task(house.say("tell me a story?", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await hass.async_block_till_done(wait_background_tasks=True)
        assert house.data.runtime.running_turns == 0


async def test_a_pipeline_that_is_cancelled_while_its_turn_begins_cancels_it(hass: HomeAssistant) -> None:
    async with open_house(hass, said("I was not cancelled.")) as house:
        store, begins, goes_on = house.data.store, asyncio.Event(), asyncio.Event()
        begin = store.begin

        async def begin_slowly(*arguments: Any, **options: Any) -> Any:
            begins.set()
            await goes_on.wait()
            return await begin(*arguments, **options)

        with patch.object(
            SqliteStore, "begin", lambda _, *arguments, **options: begin_slowly(*arguments, **options)
        ):
            task = asyncio.create_task(house.say("tell me a story?", room="Kitchen"))
            async with asyncio.timeout(10):
                await begins.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            goes_on.set()
            await hass.async_block_till_done(wait_background_tasks=True)
        [session] = (await house.data.runtime.list_sessions(owner="house")).items
        [turn] = await store.list_continuations("house", session.id)
        assert turn.status == "cancelled"


@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_turn_of_an_entry_that_is_unloaded_is_an_error_that_says_so(
    hass: HomeAssistant, is_removed: bool
) -> None:
    async with open_house(hass, Reply(chunks=[chunk("Once upon a time ")], then="hang")) as house:
        task = asyncio.create_task(house.say("tell me a story?", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0)
        end = hass.config_entries.async_remove if is_removed else hass.config_entries.async_unload
        await end(house.entry.entry_id)
        async with asyncio.timeout(10):
            result = await task
        assert result.response.error_code is not None
        assert said_by(result) == "The answer was interrupted. Please ask again."


async def test_arguments_that_are_nested_too_deeply_do_no_harm(hass: HomeAssistant) -> None:
    deep = calls("search_index")
    deep.chunks[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = "[" * 100_000
    async with open_house(hass, deep, said("Pardon?"), max_tokens_per_turn=1_000_000) as house:
        assert said_by(await house.say("look around", room="Kitchen")) == "Pardon?"


async def test_a_template_switch_that_unlocks_a_door_needs_an_approval(hass: HomeAssistant) -> None:
    unlock = [{"action": "lock.unlock", "target": {"entity_id": "lock.front_door"}}]
    script = {"open_up": {"sequence": unlock}}
    switches = [
        {"name": "Sneaky", "unique_id": "s", "state": "{{ false }}", "turn_on": unlock, "turn_off": []},
        {
            "name": "Sly",
            "unique_id": "t",
            "state": "{{ false }}",
            "turn_on": [{"action": "script.open_up"}],
            "turn_off": [],
        },
        {
            "name": "Honest",
            "unique_id": "h",
            "state": "{{ is_state('lock.front_door', 'locked') }}",
            "turn_on": [],
            "turn_off": [{"action": "light.turn_on", "target": {"entity_id": "light.bed_light"}}],
        },
    ]
    async with open_house(hass, said("Hm."), allow_actuation=True, session_scope="stateless") as house:
        assert await async_setup_component(hass, "script", {"script": script})
        assert await async_setup_component(hass, "template", {"template": [{"switch": switches}]})
        await hass.async_block_till_done()
        for name in ("sneaky", "sly", "honest"):
            async_expose_entity(hass, "conversation", f"switch.{name}", True)
        await hass.async_block_till_done()
        async with asyncio.timeout(10):
            while "switch.honest" not in house.data.runtime.home.index.entities:
                await asyncio.sleep(0.01)
        for name in ("sneaky", "sly"):
            asked = await house.say(f"turn on {name}")
            assert said_by(asked).endswith("?")
            assert hass.states.get("lock.front_door").state == "locked"
        await house.say("turn off honest")
        assert hass.states.get("light.bed_light").state == "on"


async def test_a_tool_call_of_the_model_switches_the_light_and_is_read_back(hass: HomeAssistant) -> None:
    on = calls("call_service", service="light.turn_on", entity_ids=["light.bed_light"])
    async with open_house(hass, on, said("Cosy now."), **ACTING) as house:
        result = await house.say("make it cosy in here please")
        assert said_by(result) == "Cosy now."
        assert hass.states.get("light.bed_light").state == "on"
        assert [target.id for target in result.response.success_results] == ["light.bed_light"]
