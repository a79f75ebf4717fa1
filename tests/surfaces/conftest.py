"""The fixtures of the surfaces' tests."""

import pytest

from sash import Runtime
from sash.app.service import AgentService
from sash.server.conversation_service import ConversationService
from sash.stores.memory import MemoryStore
from sash.stores.sqlite.store import SqliteStore
from sash.testing import FakeClock, ScriptedModel
from tests.surfaces.command_line import CommandLine
from tests.surfaces.conversations import WAIT_S
from tests.surfaces.serving import WaitingModel, serving


@pytest.fixture
def cli(tmp_path):
    return CommandLine(tmp_path)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path, lambda request: "ok") as served:
        yield served


@pytest.fixture
async def waiting(tmp_path):
    """A server, and its model, which does not answer until the test lets it."""
    model = WaitingModel()
    async with serving(tmp_path, model=model) as served:
        yield served, model
        model.go.set()


@pytest.fixture(params=["memory", "sqlite"])
async def serve(request, tmp_path, clock):
    """Return a function that stops the running service, if any, and starts a new one."""
    memory, running = MemoryStore(clock=clock), []

    async def serve(max_turns=10, model=None, answer_s=WAIT_S):
        if running:
            await running.pop().close()
        store = memory if request.param == "memory" else SqliteStore(tmp_path / "sash.db", clock=clock)
        runtime = Runtime(store, model or ScriptedModel("ok"), clock=clock)
        await runtime.open()
        running.append(runtime)
        return ConversationService(AgentService(runtime), max_turns, answer_s=answer_s)

    yield serve
    for runtime in running:
        await runtime.close()
