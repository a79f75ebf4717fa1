"""MCP: the tools of the home, and tools of the application."""

import base64

from sash.server.mcp.agent_tools import AGENT_TOOLS
from tests.surfaces.serving import serving
from tests.surfaces.speaking import AGENT_TOOL_NAMES, ERAS, call, eras, refused, talking
from tests.tools import tool


@eras
async def test_home_tools_return_data_and_plots(house, era):
    async with talking(house.url, era) as mcp:
        found = await call(mcp, "search_index", query="kitchen light", limit=1)
        assert found["entities"][0]["entity_id"] == "light.kitchen_ceiling"
        session_id = await house.start()
        arguments = {"entity_ids": ["sensor.outdoor_temperature"], "plot": True, "session_id": session_id}
        drawn = await mcp.call_tool("get_history", arguments)
        [picture] = [part for part in drawn.content if part.type == "image"]
        assert picture.mime_type == "image/png"
        kept = await mcp.read_resource(f"sash://artifacts/{drawn.structured_content['plot']['artifact']}")
        assert kept.contents[0].blob == picture.data
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")
        assert await refused(mcp, "diagnose_entity", entity_id="light.nowhere") == "entity_not_found"
        house.home.disconnect("the router is down")
        assert await refused(mcp, "get_states", entity_ids=["light.hallway"]) == "home_unavailable"


@eras
async def test_only_tools_that_keep_a_picture_or_a_table_take_a_session(house, era):
    async with talking(house.url, era) as mcp:
        tools = [one for one in (await mcp.list_tools()).tools if one.name not in AGENT_TOOL_NAMES]
        taking = {one.name for one in tools if "session_id" in one.input_schema["properties"]}
        assert taking == {"get_history", "analyze_history"}
        session_id = await house.start()
        assert await refused(mcp, "search_index", query="light", session_id=session_id) == "invalid_input"


@eras
async def test_custom_direct_tools_are_listed(tmp_path, era):
    tools = [
        tool("say", lambda a, c: f"Hello {a.get('name')}", direct=True),
        tool("count", lambda a, c: [1, 2], direct=True, output_schema={"type": "array"}),
        tool("weigh", lambda a, c: {"kg": 3}, direct=True, output_schema={"type": "object"}),
        tool("hide", lambda a, c: "hidden"),
    ]
    async with serving(tmp_path, tools=tools) as served, talking(served.url, era) as mcp:
        listed = {one.name for one in (await mcp.list_tools()).tools}
        assert listed - {*AGENT_TOOL_NAMES} == {"say", "count", "weigh"}
        said = await mcp.call_tool("say", {"name": "Anna"})
        assert (said.content[0].text, said.structured_content) == ("Hello Anna", None)
        assert (await mcp.call_tool("count", {})).content[0].text == "[1, 2]"
        assert await call(mcp, "weigh") == {"kg": 3}


async def test_home_tools_without_a_home_report_that(served):
    async with talking(served.url, ERAS[1]) as mcp:
        assert len((await mcp.list_tools()).tools) == len(AGENT_TOOLS)
        assert await refused(mcp, "get_states", entity_ids=["light.hallway"]) == "home_unavailable"
