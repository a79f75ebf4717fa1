"""Our tools for other agents and for Home Assistant's MCP server: reading the home, and the caller's memory."""

from typing import Any

import pytest
from homeassistant.auth.models import User
from homeassistant.components import mcp_server
from homeassistant.components.recorder import Recorder
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import llm
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from tests.ha.inside.talking_house import open_house
from tests.models.wire import said

pytestmark = pytest.mark.usefixtures("socket_enabled")

HOME = {
    "sash__analyze_errors",
    "sash__analyze_history",
    "sash__diagnose_entity",
    "sash__get_history",
    "sash__get_logbook",
    "sash__get_states",
    "sash__list_services",
    "sash__query_service",
    "sash__search_index",
}
MEMORY = {"sash__recall", "sash__list_facts", "sash__remember", "sash__forget"}


async def open_assist(
    hass: HomeAssistant,
    user: User | None = None,
    platform: str = "mcp_server",
    assistant: str = "conversation",
) -> llm.APIInstance:
    """Return the Assist API as another agent gets it."""
    context = llm.LLMContext(platform, Context(user_id=user.id if user else None), "en", assistant, None)
    return await llm.async_get_api(hass, "assist", context)


def find_ours(instance: llm.APIInstance) -> dict[str, llm.Tool]:
    return {tool.name: tool for tool in instance.tools if tool.integration == "sash"}


async def call(instance: llm.APIInstance, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the data of a successful call."""
    result = await instance.async_call_tool(llm.ToolInput(f"sash__{name}", arguments))
    assert not result.error, result.data
    return dict(result.data)


async def test_another_agent_gets_our_tools_with_true_annotations(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")):
        tools = find_ours(await open_assist(hass))
        assert set(tools) == HOME | MEMORY
        reading = {name for name, tool in tools.items() if tool.annotations.read_only}
        assert reading == HOME | {"sash__recall", "sash__list_facts"}
        destructive = {name for name, tool in tools.items() if tool.annotations.destructive}
        assert destructive == {"sash__forget"}
        assert not any(tool.annotations.open_world for tool in tools.values())
        assert all(tool.annotations.idempotent and tool.title and tool.description for tool in tools.values())


@pytest.mark.parametrize(
    ("platform", "assistant"), [("sash", "conversation"), ("mcp_server", "cloud.alexa"), ("sash", "ai_task")]
)
async def test_nobody_else_gets_them(hass: HomeAssistant, platform: str, assistant: str) -> None:
    async with open_house(hass, said("Fine.")):
        assert find_ours(await open_assist(hass, platform=platform, assistant=assistant)) == {}


async def test_without_a_loaded_entry_there_are_none(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")) as house:
        await hass.config_entries.async_unload(house.entry.entry_id)
        assert find_ours(await open_assist(hass)) == {}


async def test_the_home_is_read(hass: HomeAssistant, recorder_mock: Recorder) -> None:
    for component in ("history", "logbook"):
        assert await async_setup_component(hass, component, {})
    async with open_house(hass, said("Fine.")):
        assist = await open_assist(hass)
        found = await call(assist, "search_index", query="bed light", limit=3.0)
        assert "light.bed_light" in str(found)
        states = await call(assist, "get_states", entity_ids=["light.bed_light"])
        assert "off" in str(states)
        history = await call(assist, "get_history", entity_ids=["light.bed_light"], hours=2.0)
        assert history["entities"][0]["entity_id"] == "light.bed_light"
        assert "entries" in await call(assist, "get_logbook", limit=5.0)
        assert (await call(assist, "diagnose_entity", entity_id="light.bed_light"))["name"]
        assert "incidents" in await call(assist, "analyze_errors")
        sql = "SELECT state FROM states"
        analysis = await call(assist, "analyze_history", entity_ids=["light.bed_light"], sql=sql)
        assert analysis["rows"] == [["off"]]


async def test_a_wrong_call_is_an_error_with_the_reason(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Fine.")):
        assist = await open_assist(hass)
        for name, arguments, reason in (
            ("diagnose_entity", {"entity_id": "light.nowhere"}, "light.nowhere"),
            ("get_states", {"entity_ids": "light.bed_light"}, "entity_ids"),
            ("recall", {}, "query"),
            ("get_history", {"entity_ids": ["light.bed_light"], "plot": True}, "plot"),
            ("remember", {"text": "x" * 5000}, "400"),
        ):
            result = await assist.async_call_tool(llm.ToolInput(f"sash__{name}", arguments))
            assert result.error and reason in str(result.data["error"]), (name, result.data)


async def test_memory_belongs_to_the_user_of_the_request(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(
        hass, said("The code is on the fridge."), use_home_assistant_intents=False
    ) as house:
        await house.say("where is the wifi code?", user=hass_admin_user)
        await house.say("where is the wifi code?", room="Kitchen")
        admin, reader, home = [
            await open_assist(hass, u) for u in (hass_admin_user, hass_read_only_user, None)
        ]
        for assist, count in ((admin, 1), (reader, 0), (home, 1)):
            for query in ("wifi", "the wifi", "wifi refrigerator"):
                assert len((await call(assist, "recall", query=query))["messages"]) == count
        [message, *_] = (await call(admin, "recall", query="fridge"))["messages"]
        assert (message["from"], message["text"]) == ("assistant", "The code is on the fridge.")

        await call(admin, "remember", text="I am allergic to nuts.")
        await call(home, "remember", text="The bins go out on Monday.")
        facts = [
            {each["fact"] for each in (await call(assist, "list_facts"))["facts"]}
            for assist in (admin, reader, home)
        ]
        nuts, bins = "I am allergic to nuts.", "The bins go out on Monday."
        assert facts == [{nuts, bins}, {bins}, {bins}]
        assert await call(reader, "forget", about="nuts") == {"forgotten": []}
        assert await call(admin, "forget", about="nuts") == {"forgotten": [nuts]}


async def test_what_a_stateless_agent_heard_is_not_recalled(hass: HomeAssistant) -> None:
    async with open_house(hass, said("On the fridge."), session_scope="stateless") as house:
        await house.say("where is the wifi code?")
        assert (await call(await open_assist(hass), "recall", query="wifi"))["messages"] == []


async def test_home_assistant_itself_is_not_a_person(hass: HomeAssistant) -> None:
    supervisor = await hass.auth.async_create_system_user("Supervisor")
    async with open_house(hass, said("Fine.")) as house:
        await call(await open_assist(hass, supervisor), "remember", text="The bins go out on Monday.")
        assert [fact.text for fact in await house.data.runtime.list_facts(owner="house")]


async def test_the_mcp_server_publishes_our_tools(
    hass: HomeAssistant, hass_client: ClientSessionGenerator
) -> None:
    async with open_house(hass, said("Fine.")):
        server = MockConfigEntry(domain=mcp_server.DOMAIN, data={"llm_hass_api": ["assist"]})
        server.add_to_hass(hass)
        assert await hass.config_entries.async_setup(server.entry_id)
        client = await hass_client()

        async def ask(method: str, **params: Any) -> dict[str, Any]:
            answer = await client.post(
                "/api/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                headers={"accept": "application/json, text/event-stream"},
            )
            assert answer.status == 200, await answer.text()
            return (await answer.json())["result"]

        listed = {tool["name"]: tool for tool in (await ask("tools/list"))["tools"]}
        assert set(listed) >= HOME | MEMORY
        assert listed["sash__get_states"]["annotations"]["readOnlyHint"]
        assert listed["sash__get_states"]["inputSchema"]["required"] == ["entity_ids"]
        result = await ask(
            "tools/call", name="sash__get_states", arguments={"entity_ids": ["light.bed_light"]}
        )
        assert "Bed Light" in result["content"][0]["text"]
        await hass.config_entries.async_unload(server.entry_id)
