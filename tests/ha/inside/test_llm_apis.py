"""Home Assistant's LLM APIs as tools of our agents: which ones, under which policy, and never ourselves."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import probatio
import pytest
from homeassistant.auth.models import User
from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.const import Platform
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import llm, selector
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from tests.ha.inside.talking_house import ACTING, TalkingHouse, calls, open_house, said_by
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")

READING = llm.ToolAnnotations(read_only=True, open_world=False)
OPEN = {"allow_actuation": True, "allowlisted_services": ["light", "script", "todo", "media_player"]}


class Tool(llm.Tool):
    """A tool that records its calls."""

    integration = "garden"

    def __init__(self, name: str, answer: Any = None, **fields: Any) -> None:
        self.name = name
        self.description = f"The tool {name}."
        self.asked: list[tuple[llm.ToolInput, llm.LLMContext]] = []
        self._answer = answer
        for field, value in fields.items():
            setattr(self, field, value)

    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        self.asked.append((tool_input, llm_context))
        if isinstance(self._answer, Callable):
            return llm.ToolResult({"said": await self._answer()})
        return self._answer or llm.ToolResult({"done": True})


class API(llm.API):
    """An API with these tools."""

    def __init__(self, hass: HomeAssistant, *tools: Tool, api_id: str = "garden", prompt: str = "") -> None:
        super().__init__(hass=hass, id=api_id, name=api_id.capitalize())
        self._tools = tools
        self._prompt = prompt

    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        return llm.APIInstance(self, self._prompt, llm_context, list(self._tools))


def list_tools(house: TalkingHouse) -> dict[str, dict[str, Any]]:
    """Return the tools that the model saw in its last request, by name."""
    tools = house.wire.requests[-1].body.get("tools", ())
    return {tool["function"]["name"]: tool["function"] for tool in tools}


def read_results(house: TalkingHouse) -> list[str]:
    """Return the tool results that the model saw in its last request."""
    return [m["content"] for m in house.wire.requests[-1].body["messages"] if m["role"] == "tool"]


async def test_an_agent_uses_the_tools_of_its_apis(hass: HomeAssistant, hass_admin_user: User) -> None:
    parameters = probatio.Schema(
        {
            probatio.Required("plant", description="Its name."): str,
            probatio.Optional("at"): selector.selector({"time": {}}),
        }
    )
    look = Tool("look", annotations=READING, parameters=parameters)
    api = API(hass, look, prompt="Roses come first.")
    replies = (calls("garden__look", plant="rose", at="07:30"), said("It is dry."))
    async with open_house(hass, *replies, llm_hass_api=["garden"]) as house:
        llm.async_register_api(hass, api)
        assert said_by(await house.say("how is the rose?", user=hass_admin_user)) == "It is dry."
        [(asked, context)] = look.asked
        assert (asked.tool_name, asked.tool_args) == ("look", {"plant": "rose", "at": "07:30"})
        assert (context.platform, context.assistant, context.language) == ("sash", "conversation", "en")
        assert context.context is not None and context.context.user_id == hass_admin_user.id
        shown = list_tools(house)["garden__look"]
        assert shown["description"] == "The tool look."
        assert shown["parameters"]["properties"]["plant"] == {"type": "string", "description": "Its name."}
        assert shown["parameters"]["required"] == ["plant"]
        assert read_results(house) == ['{"done": true}']
        assert "Roses come first." in house.read_prompts()[0]


async def test_an_agent_without_apis_has_its_own_tools_only(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")) as house:
        llm.async_register_api(hass, API(hass, Tool("look", annotations=READING)))
        await house.say("how is the rose?")
        assert "get_states" in list_tools(house)
        assert not [name for name in list_tools(house) if "__" in name]


async def test_a_stateless_agent_and_the_device_of_the_speaker(hass: HomeAssistant) -> None:
    look = Tool("look", annotations=READING)
    options = {"llm_hass_api": ["garden"], "session_scope": "stateless"}
    async with open_house(hass, calls("garden__look"), said("Dry."), **options) as house:
        llm.async_register_api(hass, API(hass, look))
        await house.say("how is the rose?", room="Kitchen")
        [(_, context)] = look.asked
        assert context.device_id == house.devices["Kitchen"]


async def test_a_missing_api_is_a_warning_and_the_turn_goes_on(
    hass: HomeAssistant, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"llm_hass_api": ["gone", "garden"]}
    async with open_house(hass, said("Fine."), **options) as house:
        llm.async_register_api(hass, API(hass, Tool("look", annotations=READING)))
        for _ in range(2):
            assert said_by(await house.say("how is the rose?")) == "Fine."
        assert "garden__look" in list_tools(house)
        warnings = [r for r in caplog.records if r.levelno == logging.WARNING and "gone" in r.getMessage()]
        assert len(warnings) == 1


async def test_a_broken_api_or_tool_does_not_take_the_others_away(
    hass: HomeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(API):
        async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
            raise RuntimeError("no")

    class Slow(API):
        async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("custom_components.sash.llm_api_tools.MAX_OPEN_S", 0.01)
    odd = Tool("odd", annotations=READING, parameters=probatio.Schema([str]))
    tools = API(hass, odd, Tool("look", annotations=READING), prompt="ü" * 9000)
    others = (Broken(hass, api_id="broken"), Slow(hass, api_id="slow"))
    async with open_house(hass, said("Fine."), llm_hass_api=["broken", "slow", "garden"]) as house:
        for api in (*others, tools):
            llm.async_register_api(hass, api)
        assert said_by(await house.say("how is the rose?")) == "Fine."
        assert [name for name in list_tools(house) if "__" in name] == ["garden__look"]
        assert 900 < house.read_prompts()[0].count("ü") <= 1000


async def test_names_are_valid_and_unique(hass: HomeAssistant) -> None:
    long = "x" * 80
    tools = [Tool(name, annotations=READING) for name in ("remember", "über fluss", "a__b", long, f"{long}2")]
    other = API(hass, Tool("a__b", annotations=READING), api_id="other")
    async with open_house(hass, said("Fine."), llm_hass_api=["garden", "other"]) as house:
        llm.async_register_api(hass, API(hass, *tools))
        llm.async_register_api(hass, other)
        await house.say("how is the rose?")
        foreign = [name for name in list_tools(house) if "__" in name]
        assert {"garden__remember", "garden___ber_fluss", "a__b", "other__a__b"} < set(foreign)
        assert len(foreign) == 6 and max(map(len, foreign)) == 64


async def test_an_error_of_a_tool_is_a_result_for_the_model(hass: HomeAssistant) -> None:
    broken = Tool("look", llm.ToolResult({"error": "it is too dark"}, error=True), annotations=READING)
    async with open_house(
        hass, calls("garden__look"), said("I see nothing."), llm_hass_api=["garden"]
    ) as house:
        llm.async_register_api(hass, API(hass, broken))
        assert said_by(await house.say("how is the rose?")) == "I see nothing."
        assert read_results(house) == ["failed: it is too dark"]


@pytest.mark.parametrize(
    ("options", "is_offered", "done"),
    [
        ({}, False, 0),
        ({"allow_actuation": True}, True, 1),
        ({"allow_actuation": True, "denylisted_services": ["garden.water"]}, False, 0),
        ({"allow_actuation": True, "require_confirmation": ["garden"]}, True, 0),
        ({"allow_actuation": True, "dry_run": True}, True, 0),
    ],
)
async def test_the_policy_judges_a_tool_that_acts(
    hass: HomeAssistant, options: dict[str, Any], is_offered: bool, done: int
) -> None:
    water = Tool("water")
    replies = (calls("garden__water"), said("So be it."))
    async with open_house(hass, *replies, llm_hass_api=["garden"], **options) as house:
        llm.async_register_api(hass, API(hass, water))
        await house.say("water the rose")
        assert ("garden__water" in list_tools(house)) is is_offered
        assert len(water.asked) == done


async def test_assist_gives_us_what_we_do_not_have_ourselves(hass: HomeAssistant) -> None:
    config = {"script": {"party": {"sequence": []}, "night": {"sequence": []}}}
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "script", config)
    async_expose_entity(hass, "conversation", "script.party", True)
    shopping = MockConfigEntry(domain="shopping_list")
    shopping.add_to_hass(hass)
    assert await hass.config_entries.async_setup(shopping.entry_id)
    platforms = [Platform.MEDIA_PLAYER, Platform.CLIMATE, Platform.VACUUM, Platform.COVER]
    async with open_house(hass, said("Fine."), platforms=platforms, llm_hass_api=["assist"], **OPEN) as house:
        async_register_timer_handler(hass, house.devices["Kitchen"], lambda kind, timer: None)
        await house.say("how is the rose?", room="Kitchen")
        foreign = {name for name in list_tools(house) if "__" in name}
        assert "script__party" in foreign and "script__night" not in foreign
        assert {"intent__HassStartTimer", "intent__HassTimerStatus", "todo__HassListAddItem"} < foreign
        assert not [name for name in foreign if name.startswith("sash__")]
        left_out = {
            "intent__HassTurnOn",
            "intent__HassTurnOff",
            "intent__HassSetPosition",
            "light__HassLightSet",
            "climate__HassClimateSetTemperature",
            "homeassistant__GetLiveContext",
            "llm__GetDateTime",
            "vacuum__HassVacuumStart",
            "media_player__HassMediaPause",
            # The policy does not allow these.
            "assist_satellite__HassBroadcast",
            "vacuum__HassVacuumCleanArea",
        }
        assert not left_out & foreign
        timer = list_tools(house)["intent__HassStartTimer"]["parameters"]
        assert "minutes" in timer["properties"] and "conversation_command" not in timer["properties"]
        assert "anyOf" not in timer


@pytest.mark.parametrize("asks", [False, True])
async def test_a_script_is_judged_by_what_it_does(hass: HomeAssistant, asks: bool) -> None:
    target = {"action": "lock.unlock", "target": {"entity_id": "lock.front_door"}}
    light = {"action": "light.turn_on", "target": {"entity_id": "light.bed_light"}}
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(
        hass, "script", {"script": {"party": {"sequence": [light, *([target] if asks else [])]}}}
    )
    async_expose_entity(hass, "conversation", "script.party", True)
    replies = (calls("script__party"), said("The party is on."))
    async with open_house(hass, *replies, llm_hass_api=["assist"], **OPEN) as house:
        result = await house.say("let us have a party", room="Kitchen")
        assert said_by(result).endswith("?") is asks
        assert hass.states.get("light.bed_light").state == ("off" if asks else "on")


async def test_scripts_need_a_place_in_the_allowlist(hass: HomeAssistant) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "script", {"script": {"party": {"sequence": []}}})
    async_expose_entity(hass, "conversation", "script.party", True)
    async with open_house(hass, said("No."), llm_hass_api=["assist"], **ACTING) as house:
        await house.say("let us have a party")
        assert "script__party" not in list_tools(house)


async def test_our_own_tools_are_not_given_to_us(hass: HomeAssistant) -> None:
    mirror = Tool("sash__recall", annotations=READING, integration="garden")
    ours = Tool("ask_sash", annotations=READING, integration="sash")
    wrapped = llm.NamespacedTool("far", ours)
    async with open_house(hass, said("Fine."), llm_hass_api=["garden", "assist"]) as house:
        llm.async_register_api(hass, API(hass, mirror, ours, wrapped))
        await house.say("how is the rose?")
        assert not [name for name in list_tools(house) if "sash" in name]


async def test_a_tool_that_talks_to_us_ends_at_once(hass: HomeAssistant) -> None:
    """A nested turn in the same conversation would wait for itself, and one elsewhere would go on for ever."""
    answers: list[str] = []

    async def ask_again(room: str | None) -> str:
        result = await conversation.async_converse(
            hass,
            "how is the rose?",
            None,
            Context(),
            agent_id=house.agent_id,
            device_id=None if room is None else house.devices[room],
        )
        answers.append(said_by(result))
        return answers[-1]

    again = Tool("again", lambda: ask_again("Kitchen"), annotations=READING)
    elsewhere = Tool("elsewhere", lambda: ask_again(None), annotations=READING)
    replies = (
        calls("garden__again", "call_1"),
        calls("garden__elsewhere", "call_2"),
        said("A nested answer."),
        said("Enough."),
    )
    async with open_house(hass, *replies, llm_hass_api=["garden"]) as house:
        llm.async_register_api(hass, API(hass, again, elsewhere))
        async with asyncio.timeout(20):
            result = await house.say("how is the rose?", room="Kitchen")
        assert said_by(result) == "Enough."
        assert answers == [
            "I am still answering in this conversation. Ask again in a moment.",
            "A nested answer.",
        ]
        nested = house.wire.requests[2].body["tools"]
        assert not [tool for tool in nested if tool["function"]["name"].startswith("garden__")]
        # After the turn, the conversation goes on as usual.
        assert said_by(await house.say("and now?", room="Kitchen")) == "Enough."


async def test_a_call_is_repeated_after_a_stop_only_if_the_tool_says_so(hass: HomeAssistant) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        await go_on.wait()
        return "done"

    steady = Tool("steady", wait, annotations=llm.ToolAnnotations(idempotent=True))
    once = Tool("once", wait)
    async with open_house(
        hass, calls("garden__steady"), said("Done."), llm_hass_api=["garden"], allow_actuation=True
    ) as house:
        llm.async_register_api(hass, API(hass, steady, once))
        for tool, count in ((steady, 2), (once, 1)):
            house.wire.replies[0] = calls(f"garden__{tool.name}")
            house.wire.requests.clear()
            begun.clear(), go_on.clear()
            talk = hass.async_create_task(house.say("go", room="Kitchen"))
            async with asyncio.timeout(10):
                await begun.wait()
            assert await hass.config_entries.async_reload(house.entry.entry_id)
            await asyncio.wait([talk], timeout=10)
            talk.exception()
            go_on.set()
            runtime = house.data.runtime
            [session] = (await runtime.list_sessions(owner="house")).items
            [turn] = await runtime.open_continuations(session.id, owner="house")
            await runtime.resume(turn.id, owner="house")
            result = await runtime.await_continuation(turn.id, owner="house", timeout_s=10)
            assert (result.status, len(tool.asked)) == ("completed", count)
