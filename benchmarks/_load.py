"""Turns of many clients by one of the surfaces, in a process of its own: it prints what it measured as JSON.

    python -m benchmarks._load PLAN

It stops at three points, each with a line, and goes on when it is given one: when its sessions have begun,
when they are warm, and when the turns that are measured are over. What it talks to is measured from outside
meanwhile. It speaks HTTP by hand, so that it takes little from what it measures.
"""

import asyncio
import itertools
import json
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvloop

from sash import Runtime
from sash.app.assembly import make_runtime
from sash.app.settings import Settings

COMMANDS = ("Turn on the {on}", "Turn off the {off}")
QUESTIONS = (
    "Is the front door locked?",
    "Is the {on} on?",
    "How warm is it in the living room?",
    "Is the bedroom window open?",
)
MIXED = (COMMANDS[0], *QUESTIONS[:2], COMMANDS[1], *QUESTIONS[2:])
# There are not enough lights for all, and two who switch one are in each other's way.
OWN_LIGHTS = ("floor lamp", "bedside lamp", "mirror light", "hallway light", "kitchen ceiling light")
ALWAYS_ON, ALWAYS_OFF = "living room ceiling light", "bedroom ceiling light"

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WAIT_MS = 30_000
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def shares(values: Iterable[float]) -> dict[str, float]:
    """Return the median and the like."""
    ordered = sorted(values)
    return {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in SHARES.items()}


@dataclass(frozen=True)
class Plan:
    """What to do: each client says so much to get warm, then so many turns, or all it can in a time.

    With commands they need `sessions` that allow them, as the server lets nobody have many a minute.
    """

    surface: str
    at: str
    clients: int
    warm_turns: int
    turns: int | None = None
    seconds: float = float("inf")
    pause_s: float = 0.0
    sessions: Sequence[str] = ()


@dataclass
class Measured:
    """How long turns and their requests took, and what went wrong."""

    turns: list[float] = field(default_factory=list)
    requests: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0

    def result(self) -> dict[str, Any]:
        """Return what to print of it."""
        return {
            "turns": len(self.turns),
            "times": {"a turn": shares(self.turns)}
            | {what: shares(took) for what, took in self.requests.items()},
            "requests": sum(map(len, self.requests.values())),
            "errors": self.errors,
            "seconds": self.seconds,
            "client_cores": self.cpu_s / self.seconds,
        }


class Connection:
    """A connection that is kept, for one request at a time."""

    def __init__(self, address: str) -> None:
        self._host = address.removeprefix("http://")

    async def open(self) -> None:
        host, port = self._host.split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))

    async def request(self, method: str, path: str, body: Any = None, headers: str = "") -> Any:
        """Send a request, and return the JSON of its answer; one that is refused is an error."""
        if self._reader.at_eof():
            await self.open()
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(content)}\r\n"
        head += f"Content-Type: application/json\r\n{headers}\r\n"
        self._writer.write(head.encode() + content)
        answer_head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = answer_head.partition("content-length: ")[2].partition("\r\n")[0]
        answer = await self._reader.readexactly(int(length))
        if not answer_head.startswith("http/1.1 2"):
            raise RuntimeError(f"{method} {path}: {answer.decode()[:300]}")
        return json.loads(answer)

    def close(self) -> None:
        self._writer.close()


class Surface(ABC):
    """How one client talks; each request of a turn is timed."""

    def __init__(self, measured: Measured) -> None:
        self.session_id = ""
        self._measured = measured

    @abstractmethod
    async def start(self, name: str) -> None:
        """Begin a session."""

    @abstractmethod
    async def turn(self, sentence: str) -> None:
        """Say something, and wait for the answer."""

    @abstractmethod
    async def end(self) -> None:
        """End the session."""

    async def timed(self, what: str, request: Awaitable[Any]) -> Any:
        """Make a request, and note how long it took."""
        started = time.perf_counter()
        answer = await request
        self._measured.requests.setdefault(what, []).append(time.perf_counter() - started)
        return answer


class Direct(Surface):
    """The runtime itself, in this process."""

    def __init__(self, measured: Measured, runtime: Runtime) -> None:
        super().__init__(measured)
        self._runtime = runtime

    async def start(self, name: str) -> None:
        self.session_id = (await self._runtime.start_session()).id

    async def turn(self, sentence: str) -> None:
        sent = await self.timed("send", self._runtime.send_message(self.session_id, sentence))
        result = await self.timed("await", self._runtime.await_continuation(sent.id))
        stats, response = result.continuation.stats, result.response
        check(result.status, response and response.final_message, stats and stats.model_calls)

    async def end(self) -> None:
        await self._runtime.end_session(self.session_id)


class DirectAsk(Direct):
    """The runtime itself: a session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        result = await self.timed("ask", self._runtime.ask(sentence))
        stats, response = result.continuation.stats, result.response
        check(result.status, response and response.final_message, stats and stats.model_calls)

    async def end(self) -> None:
        pass


class Rest(Surface):
    """`/v1`: a message, then its continuation."""

    def __init__(self, measured: Measured, connection: Connection) -> None:
        super().__init__(measured)
        self.connection = connection

    async def start(self, name: str) -> None:
        self.session_id = (await self.connection.request("POST", "/v1/sessions"))["session_id"]

    async def turn(self, sentence: str) -> None:
        path = f"/v1/sessions/{self.session_id}/messages"
        sent = await self.timed("send", self.connection.request("POST", path, {"message": sentence}))
        path = f"/v1/continuations/{sent['continuation_id']}?wait_ms={WAIT_MS}"
        check_shown(await self.timed("await", self.connection.request("GET", path)))

    async def end(self) -> None:
        await self.connection.request("POST", f"/v1/sessions/{self.session_id}/end")


class Ask(Rest):
    """`/v1/ask`: a session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        asking = self.connection.request("POST", "/v1/ask", {"message": sentence})
        check_shown(await self.timed("ask", asking))

    async def end(self) -> None:
        pass


class Conversation(Ask):
    """`/conversation`: a turn is one request."""

    async def start(self, name: str) -> None:
        self._name = name

    async def turn(self, sentence: str) -> None:
        body = {"text": sentence, "conversation_id": self._name}
        said = await self.timed("say", self.connection.request("POST", "/conversation", body))
        check(said["extra"]["status"], said["response_text"], 0)


class Mcp(Rest):
    """`/mcp`, newest revision: two tools are called in a turn."""

    async def start(self, name: str) -> None:
        self.session_id = (await self.call("start_session"))["session_id"]

    async def turn(self, sentence: str) -> None:
        sending = self.call("send_message", session_id=self.session_id, message=sentence)
        turn = (await self.timed("send", sending))["continuation_id"]
        waiting = self.call("await_continuation", continuation_id=turn, timeout_ms=WAIT_MS)
        check_shown(await self.timed("await", waiting))

    async def end(self) -> None:
        await self.call("end_session", session_id=self.session_id)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool of the agent, and return its result."""
        name = f"ha_agent_{tool}"
        params = {"name": name, "arguments": arguments, "_meta": META}
        headers = (
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
        )
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = (await self.connection.request("POST", "/mcp", body, headers))["result"]
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result['content']}")
        return result["structuredContent"]


class McpAsk(Mcp):
    """`/mcp`, newest revision: a session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        check_shown(await self.timed("ask", self.call("ask", message=sentence)))

    async def end(self) -> None:
        pass


DIRECT: dict[str, type[Direct]] = {"direct": Direct, "direct, ask": DirectAsk}
SERVED: dict[str, type[Rest]] = {
    "REST": Rest,
    "REST, ask": Ask,
    "REST, conversation": Conversation,
    "MCP": Mcp,
    "MCP, ask": McpAsk,
}


def check_shown(shown: dict[str, Any]) -> None:
    """Refuse a turn that was not answered, as it is shown."""
    response, stats = shown["response"] or {}, shown.get("stats") or {}
    check(shown["status"], response.get("final_message"), stats.get("model_calls", 0))


def check(status: str, answer: str | None, model_calls: int | None) -> None:
    """Refuse a turn that was not answered, or by a model, or whose command the house did not follow."""
    if status != "completed" or not answer or model_calls or "\n" in answer:
        raise RuntimeError(f"{status}, {model_calls} model calls: {answer}")


def sentence(plan: Plan, client: int, n: int) -> str:
    """Return what a client says in its nth turn: each is somewhere else in the talk."""
    said = MIXED if plan.sessions else QUESTIONS
    on, off = (OWN_LIGHTS[client],) * 2 if client < len(OWN_LIGHTS) else (ALWAYS_ON, ALWAYS_OFF)
    return said[(client + n) % len(said)].format(on=on, off=off)


async def talk(surface: Surface, sentences: Iterable[str], plan: Plan, measured: Measured) -> None:
    """Say sentences one after the other, until time is up; the first error ends it."""
    until = time.perf_counter() + plan.seconds
    for said in sentences:
        await asyncio.sleep(plan.pause_s * random.uniform(0, 2))
        started = time.perf_counter()
        if started >= until:
            return
        try:
            await surface.turn(said)
        except Exception as error:
            measured.errors.append(f"{type(error).__name__}: {error}")
            return
        measured.turns.append(time.perf_counter() - started)


async def talk_all(surfaces: list[Surface], plan: Plan, said: slice, measured: Measured) -> None:
    """Let all clients talk at once."""
    measured.turns.clear()
    measured.requests.clear()
    started, cpu = time.perf_counter(), time.process_time()
    talks = []
    for client, surface in enumerate(surfaces):
        numbers = itertools.islice(itertools.count(), said.start, said.stop)
        sentences = (sentence(plan, client, n) for n in numbers)
        talks.append(talk(surface, sentences, plan, measured))
    await asyncio.gather(*talks)
    measured.seconds, measured.cpu_s = time.perf_counter() - started, time.process_time() - cpu


def stop_at(line: str) -> None:
    """Say that a point is reached, and do nothing until it goes on."""
    print(line, flush=True)
    sys.stdin.readline()


async def run(plan: Plan) -> Measured:
    """Open the clients of a plan, and let them talk."""
    measured = Measured()
    async with AsyncExitStack() as stack:
        surfaces = await make(plan, stack, measured)
        for n, surface in enumerate(surfaces):
            if plan.sessions:
                surface.session_id = plan.sessions[n]
            else:
                await surface.start(f"conversation {n}")
        stop_at("begun")
        warm = plan.warm_turns
        at_once = replace(plan, seconds=float("inf"), pause_s=0.0)
        await talk_all(surfaces, at_once, slice(0, warm), measured)
        stop_at("warm")
        turns = slice(warm, None if plan.turns is None else warm + plan.turns)
        await talk_all(surfaces, plan, turns, measured)
        stop_at("over")
        for surface in surfaces:
            await surface.end()
    return measured


async def make(plan: Plan, stack: AsyncExitStack, measured: Measured) -> list[Surface]:
    """Return a surface for each client: with a runtime for all of them, or a connection each."""
    if plan.surface in DIRECT:
        settings = Settings(data=Path(plan.at))
        runtime = await stack.enter_async_context(make_runtime(settings))
        await runtime.home_ready()
        return [DIRECT[plan.surface](measured, runtime) for _ in range(plan.clients)]
    connections = [Connection(plan.at) for _ in range(plan.clients)]
    for connection in connections:
        await connection.open()
        stack.callback(connection.close)
    return [SERVED[plan.surface](measured, connection) for connection in connections]


def main() -> None:
    measured = uvloop.run(run(Plan(**json.loads(sys.argv[1]))))
    print(json.dumps(measured.result()))


if __name__ == "__main__":
    main()
