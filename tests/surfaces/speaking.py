"""MCP clients for tests: the official SDK's client, and plain requests that it would not send."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from sash.server.mcp.agent_tools import AGENT_TOOLS
from sash.server.mcp.tasks import EXTENSION
from tests.surfaces.serving import REQUEST_S, Served

ERAS = ("legacy", "2026-07-28")
PROTOCOL = "io.modelcontextprotocol/"
AGENT_TOOL_NAMES = [one.name for one in AGENT_TOOLS]

eras = pytest.mark.parametrize("era", ERAS)


@asynccontextmanager
async def talking(url: str, era: str, headers: dict | None = None):
    """Connect a client to a server over HTTP."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=REQUEST_S) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


def program(folder: Path, *options: str, **environment: str) -> StdioServerParameters:
    """Return the parameters with which a client starts `sash mcp`."""
    arguments = ["-m", "sash", "mcp", "--data", str(folder), *options]
    return StdioServerParameters(
        command=sys.executable, args=arguments, env={"PYTHONWARNINGS": "error", **environment}
    )


async def call(client: Client, name: str, /, **arguments):
    """Call a tool, and return its structured content."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    return result.structured_content


async def refused(client: Client, name: str, /, **arguments) -> str:
    """Call a tool that fails, and return the code of its error."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    told = result.structured_content
    assert told["message"] and result.content[0].text == told["message"]
    return told["code"]


async def rpc(served: Served, method: str, params: dict, *, tasks=True, headers=None, name=None, **options):
    """Make one request of the newest revision. With `tasks`, declare the Tasks extension."""
    about = {
        f"{PROTOCOL}protocolVersion": "2026-07-28",
        f"{PROTOCOL}clientCapabilities": {"extensions": {EXTENSION: {}}} if tasks else {},
    }
    named = name or params.get("name") or params.get("taskId") or params.get("uri")
    sent = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({"mcp-name": named} if named else {}),
        **(headers or {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": about}}
    answer = await served.client.post("/mcp", json=body, headers=sent, **options)
    return answer.json()


async def use(served: Served, name: str, arguments: dict, **options) -> dict:
    """Call a tool by a plain request, and return its result."""
    answer = await rpc(served, "tools/call", {"name": name, "arguments": arguments}, **options)
    return answer["result"]
