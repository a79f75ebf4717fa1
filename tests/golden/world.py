"""A runtime that a golden scenario drives, on one of the embedded stores, with a clock that stands still."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

from sash import Runtime
from sash.models.catalog import Catalog, ModelFacts
from sash.ports.model import Answer, Usage
from sash.ports.store import Store
from sash.ports.tools import ToolSpec
from sash.testing import FakeClock, ScriptedModel
from sash.values.continuations import Continuation
from sash.values.sessions import SessionPolicy
from tests.golden.serving import serving

WAIT_S = 30
ANY = {"type": "object"}
FREE = SessionPolicy(allow_actuation=True, allowlisted_services=("*",))
PRICES = Catalog({"dear": ModelFacts(input_usd=1000, output_usd=2000, cached_usd=100)})
USED = Usage(input_tokens=1000, output_tokens=100, cached_tokens=500, reasoning_tokens=40, model="dear")


class World:
    """One store, one clock, and the runtime that is open on them."""

    runtime: Runtime

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self._is_open = False

    async def open(self, *lines: Any, tools: tuple[ToolSpec, ...] = (), **options: Any) -> Runtime:
        """Open a runtime whose model says `lines`; one that is open is closed first, as by a restart."""
        await self.close()
        usual = {
            "clock": self.clock,
            "time_zone": UTC,
            "catalog": PRICES,
            "system_prompt": "Be brief.",
            "memory_tools": False,
            "intents": (),
            "partial_interval_s": 0,
        }
        model = options.pop("model", None) or ScriptedModel(*(lines or ("ok",)))
        self.runtime = Runtime(self.store, model, tools, **usual | options)
        await self.runtime.open()
        self._is_open = True
        return self.runtime

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self.runtime.close()

    async def start(self, **options: Any) -> str:
        """Start a session, and return its id."""
        return (await self.runtime.start_session(**options)).id

    async def settle(self, continuation: Continuation) -> str:
        """Wait until a turn has ended or waits for somebody, and return its id."""
        await self.runtime.await_continuation(continuation.id, timeout_s=WAIT_S)
        return continuation.id

    async def turn(self, session_id: str, message: str = "hi", **options: Any) -> str:
        """Send a message, wait for the end of its turn, and return the turn's id."""
        return await self.settle(await self.runtime.send_message(session_id, message, **options))

    async def read_session(self, folder: Path, session_id: str) -> dict[str, Any]:
        """Return the events of a session and its turns, as the server sends them."""
        await self.runtime.drain()  # A stream ends when the runtime begins no more turns.
        async with asyncio.timeout(WAIT_S), serving(folder, self.runtime) as served:
            stream = await served.client.get(f"/events/{session_id}")
            events = _read_frames(stream.text)
            turns = dict.fromkeys(event["data"]["continuation_id"] for event in events)
            shown = [(await served.client.get(f"/v1/continuations/{turn}")).json() for turn in turns]
        return {"continuations": shown, "events": events}


def _read_frames(text: str) -> list[dict[str, Any]]:
    """Return the frames of an event stream; the first one has only the id where the stream begins."""
    frames = [
        dict(line.split(": ", 1) for line in frame.split("\r\n")) for frame in text.split("\r\n\r\n") if frame
    ]
    return [frame | {"data": json.loads(frame["data"])} for frame in frames if "data" in frame]


def answer(text: str, **options: Any) -> Answer:
    """Return an answer of the model whose prices are known."""
    return Answer(text, usage=USED, **options)


def paid(answer: Answer) -> Answer:
    """Return an answer with the usage that a provider reports."""
    return replace(answer, usage=USED)


def tool(name: str, result: Any = "fine", **options: Any) -> ToolSpec:
    """Return a tool that returns `result`, raises it, or returns what it returns for its arguments and context."""

    async def call(arguments: dict[str, Any], context: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        found = result(arguments, context) if callable(result) else result
        return await found if isinstance(found, Awaitable) else found

    usual = {"safety": "idempotent"}
    return ToolSpec(name, f"The tool {name}.", options.pop("input_schema", ANY), call, **usual | options)


def waiting_tool(name: str = "wait", **options: Any) -> tuple[ToolSpec, asyncio.Event]:
    """Return a tool whose first call does not end, and the event that says that the call has begun.

    The journal has the call by then, unless the tool is idempotent.
    """
    begun = asyncio.Event()

    async def wait(arguments: dict[str, Any], context: Any) -> str:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "done now"

    return tool(name, wait, **{"safety": "unsafe"} | options), begun


async def happens(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), WAIT_S)


Scenario = Callable[[World], Awaitable[str]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario; it returns the id of the session whose journal is compared."""
    SCENARIOS[function.__name__] = function
    return function
