"""MCP: wrong arguments, missing things and failed turns."""

import json

import pytest
from mcp import MCPError

from sash.errors import ContextTooLong
from tests.surfaces.serving import serving
from tests.surfaces.speaking import eras, refused, talking, use

WRONG = [
    ("ha_agent_send_message", {"session_id": "x"}, "message: the field is missing"),
    ("ha_agent_send_message", {"session_id": "x", "message": ""}, "message"),
    ("ha_agent_send_message", {"session_id": "x", "message": 5}, "message"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi", "mesage": "hi"}, "mesage"),
    ("ha_agent_send_message", {"session_id": "x", "message": "hi", "busy": "never"}, "busy"),
    ("ha_agent_start_session", {"policy": {"allow_actuation": "false"}}, "policy.allow_actuation"),
    ("ha_agent_start_session", {"budgets": {"max_stepz": 8}}, "budgets.max_stepz"),
    ("ha_agent_start_session", {"model": {"options": {"messages": []}}}, "messages"),
    ("ha_agent_await_continuation", {}, "continuation_id"),
    ("ha_agent_await_continuation", {"continuation_id": "x", "timeout_ms": "1000"}, "timeout_ms"),
    ("ha_agent_await_continuation", {"continuation_id": "x", "timeout_ms": -1}, "timeout_ms"),
    ("ha_agent_list_sessions", {"status": "gone"}, "status"),
    ("ha_agent_list_sessions", {"limit": 0}, "limit"),
    ("ha_agent_ask", {"message": "hi", "timeout_ms": True}, "timeout_ms"),
    ("ha_agent_approve", {"continuation_id": "x"}, "call_id"),
    ("get_states", {}, "entity_ids"),
    ("get_states", {"entity_ids": ["light.hallway"], "colour": 1}, "get_states"),
    ("get_states", {"entity_ids": ["light.hallway"], "session_id": 5}, "session_id"),
    ("get_history", {"entity_ids": ["light.hallway"], "plot": True}, "session_id"),
]


async def test_invalid_arguments_are_an_error_result(house):
    for name, arguments, says in WRONG:
        result = await use(house, name, arguments, tasks=False)
        assert result["isError"], (name, arguments)
        assert result["structuredContent"]["code"] == "invalid_input", (name, arguments)
        assert says in result["content"][0]["text"], (name, arguments)
    assert (await house.client.get("/v1/sessions")).json()["sessions"] == []


async def test_an_error_does_not_repeat_secret_arguments(served):
    secret = "sk-abcdefghijklmnopqrstuvwxyz"
    result = await use(served, "ha_agent_start_session", {"name": {"key": secret}, secret: 1}, tasks=False)
    assert result["isError"] and secret not in json.dumps(result)


@eras
async def test_missing_things_are_reported(served, era):
    async with talking(served.url, era) as mcp:
        for name in ("get_session", "end_session"):
            assert await refused(mcp, f"ha_agent_{name}", session_id="none") == "session_not_found"
        assert await refused(mcp, "ha_agent_send_message", session_id="none", message="hi") == (
            "session_not_found"
        )
        for name in ("await_continuation", "resume", "retry"):
            assert await refused(mcp, f"ha_agent_{name}", continuation_id="none") == "continuation_not_found"
        for name in ("dance", "ha_agent.dance", "get.states", "ha_agent_start.session"):
            with pytest.raises(MCPError, match="Unknown tool") as error:
                await mcp.call_tool(name, {})
            assert error.value.code == -32602
        with pytest.raises(MCPError, match="Unknown prompt"):
            await mcp.get_prompt("dance", {})
        with pytest.raises(MCPError, match="entity"):
            await mcp.get_prompt("diagnose", {})


@eras
async def test_a_failed_turn_is_an_error_with_its_reason(tmp_path, era):
    async with serving(tmp_path, ContextTooLong("too much was said")) as served:
        async with talking(served.url, era) as mcp:
            result = await mcp.call_tool("ha_agent_ask", {"message": "hi"})
        assert result.is_error
        assert result.structured_content["status"] == "failed"
        assert result.structured_content["error"]["code"] == "context_too_long"
