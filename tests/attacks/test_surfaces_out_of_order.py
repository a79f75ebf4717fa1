"""Every surface tells events in the order of the journal, also if the model is faster than the store."""

import asyncio
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from anyio.from_thread import start_blocking_portal
from rich.console import Console

from sash import Runtime
from sash.app.access import Caller
from sash.app.service import AgentService
from sash.cli.terminal.turn_follower import TurnFollower
from sash.cli.terminal.turn_view import TurnView
from sash.ports.model import Model, Stop, TextDelta, ToolCallDelta
from sash.server.mcp.turn_progress import WRITING
from sash.values.requests import SendMessage, StartSession
from tests.backends import BACKENDS
from tests.golden.serving import serving
from tests.pausing_store import PausingStore
from tests.runtime.talk import WAIT_S
from tests.surfaces.serving import listen, until
from tests.surfaces.speaking import eras, talking
from tests.tools import tool

# A subscriber in this process receives an event within fewer passes of the event loop.
PASSES = 50


async def pass_loop():
    for _ in range(PASSES):
        await asyncio.sleep(0)


class FastModel(Model):
    """Calls a tool, with or without a text before it, and writes an answer.

    `written` is set within the answer. The call waits for `begin`, and the end of the answer for `go_on`.
    """

    def __init__(self, first_text="", *, waits=False):
        self._first_text, self.written = first_text, asyncio.Event()
        self.begin, self.go_on = asyncio.Event(), asyncio.Event()
        if not waits:
            self.begin.set()
            self.go_on.set()

    async def stream(self, request):
        if request.messages[-1]["role"] != "tool":
            await self.begin.wait()
            yield TextDelta(self._first_text)
            yield ToolCallDelta(0, "c1", "look", "{}")
            yield Stop("tool_calls")
            return
        yield TextDelta("All is ")
        self.written.set()
        await self.go_on.wait()
        await pass_loop()
        yield TextDelta("well.")
        yield Stop("stop")


async def look(arguments, context):
    context.progress("in the hall")
    return "fine"


@asynccontextmanager
async def open_fast_runtime(store, model):
    """Open a runtime whose store writes no step before the model writes its answer."""

    async def pause(verb):
        if verb == "append" and not model.written.is_set():
            await model.written.wait()
            await pass_loop()

    async with Runtime(
        PausingStore(store, pause), model, [tool("look", look, safety="idempotent")], partial_interval_s=0
    ) as runtime:
        yield runtime


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    return BACKENDS[request.param](tmp_path, None)


ORDER = [
    ("partial", "I look."),
    ("step", "plan"),
    ("step", "tool_call"),
    ("progress", "Calling look"),
    ("progress", "in the hall"),
    ("step", "tool_result"),
    ("partial", "All is well."),
    ("final", "summary"),
]


async def test_the_event_stream_tells_text_and_progress_in_their_places(tmp_path, store):
    model = FastModel("I look.")
    async with (
        asyncio.timeout(WAIT_S),
        open_fast_runtime(store, model) as runtime,
        serving(tmp_path, runtime) as served,
    ):
        session_id = await served.start()
        listening = asyncio.create_task(
            listen(served.client, session_id, lambda frame: frame.get("event") == "final")
        )
        await until(lambda: runtime.count_subscribers(session_id) >= 2)
        await served.send(session_id)
        frames = await listening
    told = []
    for frame in frames[1:]:
        payload = frame["data"]["payload"]
        shown = payload.get("partial_response") or payload.get("message") or payload["step"]["type"]
        if told and told[-1][0] == frame["event"] == "partial":
            shown = told.pop()[1] + shown
        told.append((frame["event"], shown))
    assert told == ORDER


@eras
async def test_mcp_reports_the_answer_after_the_tool_has_answered(tmp_path, store, era):
    model, reports = FastModel(waits=True), []

    async def report(number, total, message):
        reports.append((number, message))
        if message == WRITING:
            model.go_on.set()

    async with (
        asyncio.timeout(WAIT_S),
        open_fast_runtime(store, model) as runtime,
        serving(tmp_path, runtime) as served,
        talking(served.url, era) as mcp,
    ):
        asked = asyncio.create_task(
            mcp.call_tool("ha_agent_ask", {"message": "How is the hall?"}, progress_callback=report)
        )
        await until(lambda: runtime.count_subscribers() >= 2)
        model.begin.set()
        await asked
        await until(lambda: len(reports) >= 4)
    messages = [message for _, message in sorted(reports)]
    assert messages == ["Calling look", "in the hall", "look has answered", WRITING]


def test_the_terminal_prints_the_answer_below_the_tool_call(store):
    shown = StringIO()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_fast_runtime(store, FastModel("I look."))) as runtime,
    ):
        service, caller = AgentService(runtime), Caller("local")
        session = portal.call(service.start_session, caller, StartSession())
        view = TurnView(Console(file=shown, width=100))
        follower = TurnFollower(portal, service, caller, view, lambda waiting: None)
        sent = portal.call(service.send_message, caller, session.id, SendMessage(message="How is the hall?"))
        view.show_end(follower.follow(session.id, sent.id))
    lines = [line.strip() for line in shown.getvalue().splitlines()]
    assert lines[:3] == ["I look.", "· used “look”", "All is well."]
