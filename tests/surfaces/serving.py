"""A real server on a free port, for tests."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from sash import Runtime
from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE, make_defaults
from sash.app.settings import Settings
from sash.ports.model import Stop, TextDelta
from sash.server.listener import listen as listen_at
from sash.server.metrics import Metrics
from sash.server.timeouts import Timeouts
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.sessions import OperatorLimits

# Upper bounds, not sleeps: they are long for slow machines. A client waits longer than the server.
WAIT_S = 45
REQUEST_S = 60


@dataclass
class Served:
    """A running server and a client for it."""

    url: str
    client: httpx.AsyncClient
    runtime: Runtime
    settings: Settings

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.settings.folder / TOKENS_FILE)

    def token(self, owner="local", *scopes) -> dict[str, str]:
        """Create a token, and return the headers that send it."""
        _, text = self.tokens.create(owner, scopes or ("read", "converse", "act", "admin"))
        return {"Authorization": f"Bearer {text}"}

    async def start(self, **body) -> str:
        started = await self.client.post("/v1/sessions", json=body)
        assert started.status_code == 201, started.text
        return started.json()["session_id"]

    async def send(self, session_id: str, message: str = "hi", **body) -> str:
        sent = await self.client.post(
            f"/v1/sessions/{session_id}/messages", json={"message": message, **body}
        )
        assert sent.status_code == 202, sent.text
        return sent.json()["continuation_id"]

    async def wait(self, continuation_id: str) -> dict:
        shown = await self.client.get(
            f"/v1/continuations/{continuation_id}", params={"wait_ms": WAIT_S * 1000}
        )
        assert shown.status_code == 200, shown.text
        return shown.json()


@asynccontextmanager
async def serving(
    folder: Path,
    *lines,
    model=None,
    tools=(),
    home=None,
    on_turn=None,
    tracing=None,
    timeouts=None,
    clock=None,
    **options,
):
    """Serve a runtime whose model answers with these lines; `timeouts` are fields of `Timeouts`."""
    settings = Settings(port=0, data=folder, **options)
    defaults = make_defaults(settings)
    runtime = Runtime(
        SqliteStore(folder / "sash.db", clock=clock),
        model or ScriptedModel(*(lines or ("ok",))),
        tools,
        home=home,
        defaults=defaults,
        operator=OperatorLimits(defaults.policy, defaults.budgets),
        on_turn=on_turn,
        partial_interval_s=0,
        allow_image_urls=settings.allow_image_urls,
        max_open_turns=settings.max_open_continuations_per_session,
        clock=clock,
    )
    async with (
        runtime,
        listen_at(runtime, settings, Metrics(), tracing, Timeouts(**timeouts or {})) as url,
        httpx.AsyncClient(base_url=url, timeout=REQUEST_S) as client,
    ):
        yield Served(url, client, runtime, settings)


async def listen(client: httpx.AsyncClient, session_id: str, until, **options) -> list[dict]:
    """Return the events of a session, up to the first for which `until` is true."""
    events = []
    async with asyncio.timeout(WAIT_S), client.stream("GET", f"/events/{session_id}", **options) as stream:
        assert stream.status_code == 200, await stream.aread()
        async with aclosing(frames(stream)) as found:
            async for event in found:
                events.append(event)
                if until(event):
                    break
    return events


async def frames(stream: httpx.Response):
    """Yield the frames of an event stream. Comments, which are heartbeats, are skipped."""
    event: dict = {}
    async with aclosing(stream.aiter_lines()) as lines:
        async for line in lines:
            name, _, value = line.partition(":")
            if line == "":
                if event:
                    yield event
                event = {}
            elif name == "data":
                event["data"] = json.loads(value)
            elif name:
                event[name] = value.strip()


async def until(holds: Callable[[], object], meanwhile: asyncio.Task | None = None) -> None:
    """Wait until `holds()` is true. Fail if the task `meanwhile` ends before."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            if meanwhile is not None and meanwhile.done():
                raise AssertionError(f"the task ended too early, with {meanwhile.result()!r}")
            await asyncio.sleep(0.01)


class WaitingModel:
    """A model that waits for `go` in the middle of its answer."""

    def __init__(self):
        self.go = asyncio.Event()
        self.asked = asyncio.Event()

    async def stream(self, request):
        self.asked.set()
        yield TextDelta("Let me see ")
        await self.go.wait()
        yield TextDelta("what there is.")
        yield Stop("stop")


def is_final(event: dict) -> bool:
    return event.get("event") == "final"


def problem(response, status, code):
    """Assert that a response is this problem, and return its body."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] and body["title"] and body["detail"]
    return body
