"""A client that gives a session jobs while its server is killed again and again, and records what it was told."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp

from tests.soak.jobs import DIM, NOTIFY, TALK, make_message

FINAL = ("completed", "failed", "cancelled")
RETRY_S = 0.05
REQUEST_S = 10.0
WAIT_MS = 2_000
MAX_QUEUED = 3
# A session may do 30 actions per minute, so most jobs only talk.
KINDS = (TALK, TALK, TALK, NOTIFY, DIM)
CANCELLED_SHARE = 0.1
UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)


@dataclass
class Job:
    """A job that was accepted: the id of its turn, and the final status and the answer that were reported."""

    kind: str
    turn_id: str
    status: str = ""
    answer: str = ""


@dataclass
class Told:
    """Everything that the server told the client of a session.

    `requested` are the kinds of all jobs that were sent, by their id. `events` are in the order of arrival.
    """

    requested: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    events: list[tuple[int, Any]] = field(default_factory=list)
    preference: int = 0
    problems: list[str] = field(default_factory=list)


class Client:
    """Gives jobs to one session, and listens to its events."""

    def __init__(self, http: aiohttp.ClientSession, address: str, number: int, seed: int) -> None:
        self.number = number
        self.told = Told()
        self.session_id = ""
        self._http = http
        self._address = address
        self._random = Random(f"{seed}-{number}")
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Start the session and begin to listen."""
        self.session_id = (await self.request("POST", "/v1/sessions", {}))["session_id"]
        self._listener = asyncio.create_task(self._listen())

    async def work(self) -> None:
        """Send some jobs at a time and wait until they have ended, until `stop` is called."""
        count = 0
        while not self._stopping.is_set():
            batch = range(count + 1, count + 1 + self._random.randint(1, MAX_QUEUED))
            count = batch[-1]
            for number in batch:
                await self._send(f"{self.number}-{number}", self._random.choice(KINDS))
            await self.request("PATCH", f"/v1/sessions/{self.session_id}", {"preferences": {"count": count}})
            self.told.preference = count
            for number in batch:
                await self._await_end(self.told.jobs[f"{self.number}-{number}"])

    def stop(self) -> None:
        """Let `work` end after the jobs that are under way."""
        self._stopping.set()

    async def end(self) -> list[tuple[int, Any]]:
        """End the session, and return its stored events. Wait until the listener has received them too."""
        await self.request("POST", f"/v1/sessions/{self.session_id}/end")
        stored: list[tuple[int, Any]] = []
        await self._read_stream(stored)
        async with asyncio.timeout(REQUEST_S):
            while not self.told.events or self.told.events[-1][0] < stored[-1][0]:
                await asyncio.sleep(RETRY_S)
        self._listener.cancel()
        return stored

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request again until the server answers it, and return the JSON of the response."""
        while True:
            try:
                async with self._http.request(
                    method, self._address + path, json=body, timeout=aiohttp.ClientTimeout(REQUEST_S)
                ) as response:
                    content = await response.json(content_type=None)
                    if response.status < 500:
                        break
                    if response.status != 503:
                        self.told.problems.append(f"{method} {path}: {response.status} {content}")
            except (*UNREACHABLE, ValueError):
                pass
            await asyncio.sleep(RETRY_S)
        if response.status >= 400 and response.status != 409:
            raise AssertionError(f"{method} {path}: {response.status} {content}")
        return content

    async def _send(self, job_id: str, kind: str) -> None:
        self.told.requested[job_id] = kind
        body = {"message": make_message(job_id, kind), "idempotency_key": job_id, "busy": "enqueue"}
        sent = await self.request("POST", f"/v1/sessions/{self.session_id}/messages", body)
        self.told.jobs[job_id] = Job(kind, sent["continuation_id"])
        if self._random.random() < CANCELLED_SHARE:
            await asyncio.sleep(self._random.uniform(0, 0.1))
            await self.request("POST", f"/v1/continuations/{sent['continuation_id']}/cancel", {})

    async def _await_end(self, job: Job) -> None:
        while job.status not in FINAL:
            shown = await self.request("GET", f"/v1/continuations/{job.turn_id}?wait_ms={WAIT_MS}")
            job.status = shown["status"]
            if job.status == "interrupted":
                await self.request("POST", f"/v1/continuations/{job.turn_id}/resume")
        job.answer = (shown["response"] or {}).get("final_message", "")

    async def _listen(self) -> None:
        """Record all stored events. After each loss of the connection, continue after the last one."""
        while True:
            with suppress(*UNREACHABLE):
                await self._read_stream(self.told.events)
            await asyncio.sleep(RETRY_S)

    async def _read_stream(self, events: list[tuple[int, Any]]) -> None:
        """Add the stored events after the last one of a list, until the stream ends."""
        after = events[-1][0] if events else 0
        async with self._http.get(
            f"{self._address}/events/{self.session_id}?after={after}",
            timeout=aiohttp.ClientTimeout(None, sock_connect=REQUEST_S),
        ) as response:
            fields: dict[str, str] = {}
            async for line in response.content:
                text = line.decode().rstrip("\r\n")
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                    continue
                if "id" in fields and "data" in fields:
                    events.append((int(fields["id"]), json.loads(fields["data"])))
                fields = {}

    async def read_messages(self) -> list[Any]:
        """Read the whole transcript."""
        messages: list[Any] = []
        cursor: str | None = "0"
        while cursor is not None:
            path = f"/v1/sessions/{self.session_id}/messages?limit=500&cursor={cursor}"
            page = await self.request("GET", path)
            messages += page["messages"]
            cursor = page["next_cursor"]
        return messages
