"""Runs turns of many clients over one surface in its own process, and prints the measurements as JSON.

    python -m benchmarks._load PLAN

The process stops at three points: after its sessions have started, after the warm-up turns, and after the
measured turns. At each point it prints a line and waits for a line. Meanwhile the caller measures the server.
The clients write HTTP themselves, because an HTTP library would use more of the machine's CPU.
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
# There are fewer lights than clients, and two clients that switch the same light would disturb each other.
OWN_LIGHTS = ("floor lamp", "bedside lamp", "mirror light", "hallway light", "kitchen ceiling light")
ALWAYS_ON, ALWAYS_OFF = "living room ceiling light", "bedroom ceiling light"

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WAIT_MS = 30_000
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def compute_percentiles(values: Iterable[float]) -> dict[str, float]:
    """Return the median, the 95th and the 99th percentile."""
    ordered = sorted(values)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in PERCENTILES.items()
    }


@dataclass(frozen=True)
class Plan:
    """The work of the clients: each runs warm-up turns, then `turns` turns, or turns for `seconds`.

    Commands need `sessions` whose policy has no limit of actions per minute. Without sessions, the clients
    ask questions only.
    """

    surface: str
    target: str
    clients: int
    warm_turns: int
    turns: int | None = None
    seconds: float = float("inf")
    pause_s: float = 0.0
    sessions: Sequence[str] = ()


@dataclass
class Measured:
    """The times of turns and of their requests in seconds, and the errors."""

    turns: list[float] = field(default_factory=list)
    requests: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the measurements with percentiles."""
        return {
            "turns": len(self.turns),
            "times": {"turn": compute_percentiles(self.turns)}
            | {name: compute_percentiles(taken) for name, taken in self.requests.items()},
            "requests": sum(map(len, self.requests.values())),
            "errors": self.errors,
            "seconds": self.seconds,
            "client_cores": self.cpu_s / self.seconds,
        }


class Connection:
    """A keep-alive connection, for one request at a time."""

    def __init__(self, address: str) -> None:
        self._host = address.removeprefix("http://")

    async def open(self) -> None:
        host, port = self._host.split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))

    async def request(self, method: str, path: str, body: Any = None, headers: str = "") -> Any:
        """Send a request and return the JSON of its response; raise RuntimeError if it is refused."""
        if self._reader.at_eof():
            await self.open()
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(content)}\r\n"
        head += f"Content-Type: application/json\r\n{headers}\r\n"
        self._writer.write(head.encode() + content)
        response_head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = response_head.partition("content-length: ")[2].partition("\r\n")[0]
        response = await self._reader.readexactly(int(length))
        if not response_head.startswith("http/1.1 2"):
            raise RuntimeError(f"{method} {path}: {response.decode()[:300]}")
        return json.loads(response)

    def close(self) -> None:
        self._writer.close()


class Surface(ABC):
    """One client of a surface. Each request of a turn is timed."""

    def __init__(self, measured: Measured) -> None:
        self.session_id = ""
        self._measured = measured

    @abstractmethod
    async def start(self, name: str) -> None:
        """Start a session."""

    @abstractmethod
    async def turn(self, sentence: str) -> None:
        """Send a sentence and wait for the answer."""

    @abstractmethod
    async def end(self) -> None:
        """End the session."""

    async def timed(self, name: str, request: Awaitable[Any]) -> Any:
        """Make a request and record its time."""
        started = time.perf_counter()
        result = await request
        self._measured.requests.setdefault(name, []).append(time.perf_counter() - started)
        return result


class Direct(Surface):
    """Calls the runtime in this process."""

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
    """Calls the runtime in this process, with a new session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        result = await self.timed("ask", self._runtime.ask(sentence))
        stats, response = result.continuation.stats, result.response
        check(result.status, response and response.final_message, stats and stats.model_calls)

    async def end(self) -> None:
        pass


class Rest(Surface):
    """Uses `/v1`: sends a message, then waits for its continuation."""

    def __init__(self, measured: Measured, connection: Connection) -> None:
        super().__init__(measured)
        self.connection = connection

    async def start(self, name: str) -> None:
        self.session_id = (await self.connection.request("POST", "/v1/sessions"))["session_id"]

    async def turn(self, sentence: str) -> None:
        path = f"/v1/sessions/{self.session_id}/messages"
        sent = await self.timed("send", self.connection.request("POST", path, {"message": sentence}))
        path = f"/v1/continuations/{sent['continuation_id']}?wait_ms={WAIT_MS}"
        check_json(await self.timed("await", self.connection.request("GET", path)))

    async def end(self) -> None:
        await self.connection.request("POST", f"/v1/sessions/{self.session_id}/end")


class Ask(Rest):
    """Uses `/v1/ask`, with a new session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        asking = self.connection.request("POST", "/v1/ask", {"message": sentence})
        check_json(await self.timed("ask", asking))

    async def end(self) -> None:
        pass


class Conversation(Ask):
    """Uses `/conversation`: a turn is one request."""

    async def start(self, name: str) -> None:
        self._name = name

    async def turn(self, sentence: str) -> None:
        body = {"text": sentence, "conversation_id": self._name}
        shown = await self.timed("say", self.connection.request("POST", "/conversation", body))
        check(shown["extra"]["status"], shown["response_text"], 0)


class Mcp(Rest):
    """Uses `/mcp` with the newest revision: a turn calls two tools."""

    async def start(self, name: str) -> None:
        self.session_id = (await self.call("start_session"))["session_id"]

    async def turn(self, sentence: str) -> None:
        sending = self.call("send_message", session_id=self.session_id, message=sentence)
        turn = (await self.timed("send", sending))["continuation_id"]
        waiting = self.call("await_continuation", continuation_id=turn, timeout_ms=WAIT_MS)
        check_json(await self.timed("await", waiting))

    async def end(self) -> None:
        await self.call("end_session", session_id=self.session_id)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool of the agent and return its result."""
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
    """Uses `/mcp` with the newest revision, with a new session for each question."""

    async def start(self, name: str) -> None:
        pass

    async def turn(self, sentence: str) -> None:
        check_json(await self.timed("ask", self.call("ask", message=sentence)))

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


def check_json(shown: dict[str, Any]) -> None:
    """Check the JSON of a turn as `check` does."""
    response, stats = shown["response"] or {}, shown.get("stats") or {}
    check(shown["status"], response.get("final_message"), stats.get("model_calls", 0))


def check(status: str, answer: str | None, model_calls: int | None) -> None:
    """Raise RuntimeError if a turn has no answer, used a model, or if its command failed."""
    if status != "completed" or not answer or model_calls or "\n" in answer:
        raise RuntimeError(f"{status}, {model_calls} model calls: {answer}")


def choose_sentence(plan: Plan, client: int, n: int) -> str:
    """Return the sentence of a client's nth turn. Each client starts at another sentence."""
    sentences = MIXED if plan.sessions else QUESTIONS
    on, off = (OWN_LIGHTS[client],) * 2 if client < len(OWN_LIGHTS) else (ALWAYS_ON, ALWAYS_OFF)
    return sentences[(client + n) % len(sentences)].format(on=on, off=off)


async def run_client(surface: Surface, sentences: Iterable[str], plan: Plan, measured: Measured) -> None:
    """Run a turn for each sentence until the time is up, or until the first error."""
    until = time.perf_counter() + plan.seconds
    for sentence in sentences:
        await asyncio.sleep(plan.pause_s * random.uniform(0, 2))
        started = time.perf_counter()
        if started >= until:
            return
        try:
            await surface.turn(sentence)
        except Exception as error:
            measured.errors.append(f"{type(error).__name__}: {error}")
            return
        measured.turns.append(time.perf_counter() - started)


async def run_clients(surfaces: list[Surface], plan: Plan, turns: slice, measured: Measured) -> None:
    """Run the turns of all clients at once."""
    measured.turns.clear()
    measured.requests.clear()
    started, cpu = time.perf_counter(), time.process_time()
    clients = []
    for client, surface in enumerate(surfaces):
        numbers = itertools.islice(itertools.count(), turns.start, turns.stop)
        sentences = (choose_sentence(plan, client, n) for n in numbers)
        clients.append(run_client(surface, sentences, plan, measured))
    await asyncio.gather(*clients)
    measured.seconds, measured.cpu_s = time.perf_counter() - started, time.process_time() - cpu


def wait_at(line: str) -> None:
    """Print the line, and wait until the caller sends one."""
    print(line, flush=True)
    sys.stdin.readline()


async def run(plan: Plan) -> Measured:
    """Open the clients of a plan and run their turns."""
    measured = Measured()
    async with AsyncExitStack() as stack:
        surfaces = await make_surfaces(plan, stack, measured)
        for n, surface in enumerate(surfaces):
            if plan.sessions:
                surface.session_id = plan.sessions[n]
            else:
                await surface.start(f"conversation {n}")
        wait_at("started")
        warm_turns = plan.warm_turns
        at_once = replace(plan, seconds=float("inf"), pause_s=0.0)
        await run_clients(surfaces, at_once, slice(0, warm_turns), measured)
        wait_at("warm")
        turns = slice(warm_turns, None if plan.turns is None else warm_turns + plan.turns)
        await run_clients(surfaces, plan, turns, measured)
        wait_at("finished")
        for surface in surfaces:
            await surface.end()
    return measured


async def make_surfaces(plan: Plan, stack: AsyncExitStack, measured: Measured) -> list[Surface]:
    """Return a surface for each client: all with one runtime, or each with its own connection."""
    if plan.surface in DIRECT:
        settings = Settings(data=Path(plan.target))
        runtime = await stack.enter_async_context(make_runtime(settings))
        await runtime.home_ready()
        return [DIRECT[plan.surface](measured, runtime) for _ in range(plan.clients)]
    connections = [Connection(plan.target) for _ in range(plan.clients)]
    for connection in connections:
        await connection.open()
        stack.callback(connection.close)
    return [SERVED[plan.surface](measured, connection) for connection in connections]


def main() -> None:
    measured = uvloop.run(run(Plan(**json.loads(sys.argv[1]))))
    print(json.dumps(measured.to_json()))


if __name__ == "__main__":
    main()
