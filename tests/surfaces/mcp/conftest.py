"""Servers for the tests of MCP: a plain one, one with a door to unlock, one with a home."""

import pytest

from sash.demo.demo_home import demo_home
from sash.models.offline import OfflineModel
from sash.testing import calling
from tests.surfaces.mcp.unlocking import LET_IT_UNLOCK
from tests.surfaces.serving import WAIT_S, serving
from tests.tools import tool


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, "It is 21.5 °C.") as served:
        yield served


@pytest.fixture
async def locked(tmp_path):
    """A server whose agent wants to unlock a door."""
    unlock = tool("lock_unlock", lambda a, c: "unlocked", action=True)

    def want(request):
        return calling("lock_unlock") if request.messages[-1]["role"] == "user" else "It is open."

    async with serving(tmp_path, want, tools=[unlock], **LET_IT_UNLOCK) as served:
        yield served


@pytest.fixture
async def house(tmp_path):
    home = demo_home()
    async with serving(tmp_path, model=OfflineModel(), home=home, timeouts={"home_s": 0.05}) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        served.home = home
        yield served
