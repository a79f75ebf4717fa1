"""The Inspector, an independent client in another language, against Sash in both eras of the protocol."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.values.clock import SystemClock
from tests.mcp_clients.node import Clients, Era
from tests.surfaces.serving import WAIT_S, Served, serving

eras = pytest.mark.parametrize("era", ["legacy", "modern"])
QUESTION = "Why does the bedroom ceiling light flicker?"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    home = demo_home(SystemClock())
    async with serving(tmp_path, model=OfflineModel(), home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        yield served


@eras
async def test_the_inspector_uses_the_agent_over_http(served: Served, clients: Clients, era: Era) -> None:
    url, authorization = f"{served.url}/mcp", served.token()["Authorization"]
    how = {"era": era, "authorization": authorization}
    listed = await clients.inspect(url, "tools/list", **how)
    assert listed.result is not None
    names = [tool["name"] for tool in listed.result["tools"]]
    assert names[0] == "ha_agent_list_sessions" and "get_states" in names
    asked = await clients.call_tool(url, "ha_agent_ask", {"message": QUESTION}, **how)
    assert asked.code == 0 and asked.result is not None
    answer = asked.result["structuredContent"]
    assert "voltage dips" in answer["response"]["final_message"]
    wrong = await clients.call_tool(url, "ha_agent_get_session", {"session_id": "none"}, **how)
    assert wrong.code == 5 and wrong.result is not None
    assert wrong.result["structuredContent"]["code"] == "session_not_found"
    uri = f"sash://sessions/{answer['session_id']}"
    read = await clients.inspect(url, "resources/read", "--uri", uri, **how)
    assert read.result is not None and QUESTION in read.result["contents"][0]["text"]
    assert (await clients.inspect(url, "tools/list", era=era)).code == 3


@eras
async def test_the_inspector_starts_sash_and_reads_the_home(
    tmp_path: Path, clients: Clients, era: Era
) -> None:
    command = [sys.executable, "-m", "sash", "mcp", "--data", str(tmp_path)]
    found = await clients.call_tool(command, "get_states", {"entity_ids": ["light.kitchen_ceiling"]}, era=era)
    assert found.code == 0 and found.result is not None
    [light] = found.result["structuredContent"]["entities"]
    assert light["name"] == "Kitchen ceiling light"
