"""Runs one attack of a greedy owner against a server, in its own process, and prints the counts as JSON.

    python -m benchmarks._attacks PLAN

The process prints a line when its data is ready and waits for a line. Then it attacks for the planned time.
Each attack uses only requests that a token with the scopes `read` and `converse` may send.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvloop

# 128 words of one letter each, the longest query that the server reads.
WORDS = [chr(code) for code in (*range(ord("a"), ord("z") + 1), *range(0x3B1, 0x3CA), *range(0x430, 0x450))]
WORDS += [chr(code) for code in range(0x561, 0x587)]
WORDS += [chr(code) for code in range(0x10D0, 0x10F1)]
QUERY_WORDS = WORDS[:128]

MAX_MESSAGE_CHARS = 1 << 20
PAUSE_S = 0.05
MAX_RESPONSE_S = 120.0


@dataclass(frozen=True)
class AttackPlan:
    """An attack: its name, the server, the attacker's token and large session, and the time."""

    name: str
    address: str
    token: str
    session_id: str
    export_file: str
    seconds: float


class Attacker:
    """Sends the requests of an attack, and counts the statuses of the responses."""

    def __init__(self, plan: AttackPlan) -> None:
        self.plan = plan
        self.statuses: Counter[str] = Counter()
        self.held: list[asyncio.StreamWriter] = []
        self._host = plan.address.removeprefix("http://")
        self.export = Path(plan.export_file).read_bytes()
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._until

    def start(self) -> None:
        self._until = time.perf_counter() + self.plan.seconds

    async def wait_for_end(self) -> None:
        await asyncio.sleep(self._until - time.perf_counter())

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._host.split(":")
        return await asyncio.open_connection(host, int(port))

    def make_request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self.plan.token}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
        """Send a request on a new connection, count its status, and return the status and the body."""
        reader, writer = await self.connect()
        try:
            writer.write(self.make_request(method, path, body))
            response = await asyncio.wait_for(reader.read(), MAX_RESPONSE_S)
        except (TimeoutError, OSError):
            response = b""
        finally:
            writer.close()
        status = response[9:12].decode() or "none"
        self.statuses[status] += 1
        return status, response.partition(b"\r\n\r\n")[2]

    async def repeat(self, work: Callable[[], Awaitable[Any]], clients: int) -> None:
        """Repeat some work until the time is over, from several clients at once."""

        async def run_client() -> None:
            while not self.is_over:
                await work()

        await asyncio.gather(*(run_client() for _ in range(clients)))

    async def hold(self, method: str, path: str) -> None:
        """Send a request, read the status line, and keep the connection open without reading more.

        The status is "none" if there is no response until the end of the attack.
        """
        reader, writer = await self.connect()
        self.held.append(writer)
        writer.write(self.make_request(method, path))
        try:
            line = await asyncio.wait_for(reader.readline(), max(1.0, self._until - time.perf_counter()))
        except (TimeoutError, OSError):
            line = b""
        self.statuses[line[9:12].decode() or "none"] += 1
        # A reader that is paused does not empty the receive buffer of the socket.
        writer.transport.pause_reading()  # type: ignore[attr-defined]


async def search(attacker: Attacker) -> None:
    """Search for 128 words and for 32 words in turn, from 12 clients."""
    counts = cycle((128, 32))

    async def work() -> None:
        query = quote(" ".join(QUERY_WORDS[: next(counts)]))
        path = f"/v1/sessions/{attacker.plan.session_id}/search?q={query}&limit=500"
        status, _ = await attacker.send("GET", path)
        if status == "429":
            await asyncio.sleep(PAUSE_S)

    await attacker.repeat(work, 12)


async def export_unread(attacker: Attacker) -> None:
    """Request 25 exports, and read none of them."""
    path = f"/v1/sessions/{attacker.plan.session_id}/export"
    await asyncio.gather(*(attacker.hold("GET", path) for _ in range(25)))
    await attacker.wait_for_end()


async def export(attacker: Attacker) -> None:
    """Read exports, from three clients."""
    path = f"/v1/sessions/{attacker.plan.session_id}/export"
    await attacker.repeat(lambda: attacker.send("GET", path), 3)


async def import_large(attacker: Attacker) -> None:
    """Import large sessions, from three clients."""
    text, old_id = attacker.export, attacker.plan.session_id.encode()
    numbers = iter(range(10**6))

    async def work() -> None:
        new_id = old_id[:-6] + f"{next(numbers):06}".encode()
        await attacker.send("POST", "/v1/sessions/import", text.replace(old_id, new_id))

    await attacker.repeat(work, 3)


async def fork(attacker: Attacker) -> None:
    """Copy a large session, from three clients."""
    path = f"/v1/sessions/{attacker.plan.session_id}/fork"
    await attacker.repeat(lambda: attacker.send("POST", path), 3)


async def deny_many(attacker: Attacker) -> None:
    """Start sessions with 330,000 patterns in their denylist, from three clients, and send messages."""
    body = json.dumps({"policy": {"denylisted_services": [f"x.{n}" for n in range(330_000)]}})

    async def work() -> None:
        _, response = await attacker.send("POST", "/v1/sessions", body.encode())
        with suppress(ValueError, KeyError):
            path = f"/v1/sessions/{json.loads(response)['session_id']}/messages"
            await attacker.send("POST", path, b'{"message": "Is the front door locked?"}')

    await attacker.repeat(work, 3)


async def prefer_much(attacker: Attacker) -> None:
    """Start sessions with 3 MB of preferences, from three clients."""
    body = json.dumps({"preferences": {f"key{n}": "x" * 100 for n in range(28_000)}}).encode()
    await attacker.repeat(lambda: attacker.send("POST", "/v1/sessions", body), 3)


async def open_streams(attacker: Attacker) -> None:
    """Open 5,200 event streams as fast as possible, and keep them open."""
    path = f"/events/{attacker.plan.session_id}?after=0"
    numbers = iter(range(5_200))

    async def run_client() -> None:
        for _ in numbers:
            await attacker.hold("GET", path)

    await asyncio.gather(*(run_client() for _ in range(50)))
    await attacker.wait_for_end()


async def enqueue(attacker: Attacker) -> None:
    """Enqueue up to 10,000 turns in one session, from 20 clients."""
    _, started = await attacker.send("POST", "/v1/sessions")
    path = f"/v1/sessions/{json.loads(started)['session_id']}/messages"
    body = b'{"message": "Is the front door locked?", "busy": "enqueue"}'
    numbers = iter(range(10_000))

    async def run_client() -> None:
        for _ in numbers:
            if attacker.is_over:
                return
            await attacker.send("POST", path, body)

    await asyncio.gather(*(run_client() for _ in range(20)))
    await attacker.wait_for_end()


async def converse(attacker: Attacker) -> None:
    """Run turns in 50 sessions at once, each as soon as the last one is answered."""

    async def run_client() -> None:
        _, started = await attacker.send("POST", "/v1/sessions")
        path = f"/v1/sessions/{json.loads(started)['session_id']}/messages"
        while not attacker.is_over:
            status, sent = await attacker.send("POST", path, b'{"message": "Is the front door locked?"}')
            if status == "202":
                turn = json.loads(sent)["continuation_id"]
                await attacker.send("GET", f"/v1/continuations/{turn}?wait_ms=30000")
            else:
                await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(run_client() for _ in range(50)))


async def send_long(attacker: Attacker) -> None:
    """Send messages of 1 MiB that are hard to redact or to count, from three clients."""
    texts = cycle(
        part * (MAX_MESSAGE_CHARS // len(part)) for part in ("eyJaaaaaaaa-", "1 ", "a@", "lamp on ")
    )

    async def work() -> None:
        _, started = await attacker.send("POST", "/v1/sessions")
        path = f"/v1/sessions/{json.loads(started)['session_id']}/messages"
        status, sent = await attacker.send("POST", path, json.dumps({"message": next(texts)}).encode())
        if status == "202":
            turn = json.loads(sent)["continuation_id"]
            await attacker.send("GET", f"/v1/continuations/{turn}?wait_ms=30000")

    await attacker.repeat(work, 3)


async def list_large(attacker: Attacker) -> None:
    """Read pages of 500 messages, from eight clients."""
    path = f"/v1/sessions/{attacker.plan.session_id}/messages?limit=500"
    await attacker.repeat(lambda: attacker.send("GET", path), 8)


async def delete(attacker: Attacker) -> None:
    """Copy the large session and delete the copy, again and again."""
    path = f"/v1/sessions/{attacker.plan.session_id}/fork"

    async def work() -> None:
        status, response = await attacker.send("POST", path)
        if status == "201":
            await attacker.send("DELETE", f"/v1/sessions/{json.loads(response)['session_id']}")

    await attacker.repeat(work, 1)


async def request_little(attacker: Attacker) -> None:
    """Read a session, and a path that does not exist, from 200 clients."""
    paths = cycle((f"/v1/sessions/{attacker.plan.session_id}", "/nothing"))
    await attacker.repeat(lambda: attacker.send("GET", next(paths)), 200)


async def send_values(attacker: Attacker) -> None:
    """Send bodies of 250 kB with 86,000 values, and with 19,000 unknown fields, from 50 clients."""
    values = {"message": "hi", "metadata": {"values": [0] * 86_000}}
    fields = {f"field{n}": 1 for n in range(19_000)}
    bodies = cycle((json.dumps(values).encode(), json.dumps(fields).encode()))
    path = f"/v1/sessions/{attacker.plan.session_id}/messages"
    await attacker.repeat(lambda: attacker.send("POST", path, next(bodies)), 50)


async def call_tools(attacker: Attacker) -> None:
    """Read the logbook of a week by MCP, from 50 clients."""
    call = {"name": "get_logbook", "arguments": {"hours": 168, "limit": 100}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    await attacker.repeat(lambda: attacker.send("POST", "/mcp", body), 50)


async def speak(attacker: Attacker) -> None:
    """Send long sentences and many languages, which are hard to understand, in 50 sessions at once."""
    texts = cycle(
        (
            "turn on the " + "kitchen light and the " * 8,
            "why " + "did the bedroom lights flicker and " * 28,
            "1 " * 8_000,
        )
    )
    languages = cycle(("de", "fr", "es", "it", "nl", "pl", "ru", "sv", "da", "fi", "pt", "cs"))

    async def work() -> None:
        options = {"preferences": {"language": next(languages)}}
        _, started = await attacker.send("POST", "/v1/sessions", json.dumps(options).encode())
        path = f"/v1/sessions/{json.loads(started)['session_id']}/messages"
        status, sent = await attacker.send("POST", path, json.dumps({"message": next(texts)}).encode())
        if status == "202":
            turn = json.loads(sent)["continuation_id"]
            await attacker.send("GET", f"/v1/continuations/{turn}?wait_ms=30000")

    await attacker.repeat(work, 50)


ATTACKS: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    "searches": search,
    "unread exports": export_unread,
    "exports": export,
    "imports": import_large,
    "forks": fork,
    "deletions": delete,
    "denylists": deny_many,
    "preferences": prefer_much,
    "streams": open_streams,
    "queued turns": enqueue,
    "turns": converse,
    "long messages": send_long,
    "pages": list_large,
    "small requests": request_little,
    "many values": send_values,
    "MCP calls": call_tools,
    "sentences": speak,
}


async def run(plan: AttackPlan) -> dict[str, int]:
    attacker = Attacker(plan)
    print("ready", flush=True)
    sys.stdin.readline()
    attacker.start()
    with suppress(TimeoutError):
        # A server that does not answer must not extend the attack for ever.
        await asyncio.wait_for(ATTACKS[plan.name](attacker), plan.seconds + MAX_RESPONSE_S)
    print("attacked", flush=True)
    sys.stdin.readline()
    for writer in attacker.held:
        writer.close()
    return dict(attacker.statuses)


def main() -> None:
    print(json.dumps(uvloop.run(run(AttackPlan(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
