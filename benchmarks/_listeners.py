"""Many who listen to the events of sessions, in a process of its own: it prints what they heard as JSON.

    python -m benchmarks._listeners ADDRESS LISTENERS SESSION...

They are spread over the sessions. It says so when all listen, and waits until all streams have ended. Then it
waits for a line with the time from which on it is to count how late events are: from when a step was written,
as it says itself, until its event is here.
"""

import asyncio
import json
import sys
import time
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

import uvloop

from benchmarks._load import shares

AT_A_TIME = 50
MAX_S = 600.0


@dataclass
class Utterance:
    """What all listeners have heard: when each event was written, and how late everybody heard it."""

    events: int = 0
    others: int = 0
    doubled: int = 0
    skipped: int = 0
    late_s: "dict[tuple[str, int], array[float]]" = field(default_factory=dict)
    written_at: dict[tuple[str, int], float] = field(default_factory=dict)

    def hear(self, session_id: str, cursor: int, data: bytes) -> None:
        """Note an event. All who hear it are told the same, so one of them reads when it was."""
        now, key = time.time(), (session_id, cursor)
        if key not in self.written_at:
            step = json.loads(data)["payload"]["step"]
            self.written_at[key] = datetime.fromisoformat(step["ts"]).timestamp()
            self.late_s[key] = array("d")
        self.late_s[key].append(now - self.written_at[key])
        self.events += 1

    def late(self, since: float) -> dict[str, float]:
        """Return by how much shares of the events since then are late at most."""
        keys = (key for key, written_at in self.written_at.items() if written_at >= since)
        return shares(chain.from_iterable(self.late_s[key] for key in keys))


class Listener(asyncio.Protocol):
    """One who listens to a session, from its first event to the end of the stream."""

    def __init__(self, host: str, session_id: str, heard: Utterance) -> None:
        loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.cursor = 0
        self.listens: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self._host, self._heard = host, heard
        self._received, self._text, self._in_body = b"", b"", False

    def connection_made(self, transport: Any) -> None:
        transport.write(f"GET /events/{self.session_id} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._in_body:
            head, self._in_body, rest = _cut(self._received)
            if not self._in_body:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self.listens.set_exception(RuntimeError(head.decode()))
                return
            self._received = rest
        self._take_chunks()
        *frames, self._text = self._text.split(b"\r\n\r\n")
        for frame in frames:
            self._take(frame)

    def _take_chunks(self) -> None:
        start = 0
        while (line := self._received.find(b"\r\n", start)) >= 0:
            size = int(self._received[start:line], 16)
            end = line + 2 + size
            if len(self._received) < end + 2:
                break
            self._text += self._received[line + 2 : end]
            start = end + 2
            if size == 0:
                self._end()
        self._received = self._received[start:]

    def _take(self, frame: bytes) -> None:
        head, _, data = frame.partition(b"data: ")
        if not head.startswith(b"id: "):
            self._heard.others += bool(data)
            return
        cursor = int(head[4:].split(b"\r\n")[0])
        if not data:
            self.listens.set_result(None)
            return
        self._heard.hear(self.session_id, cursor, data)
        self._heard.doubled += cursor <= self.cursor
        self._heard.skipped += max(0, cursor - self.cursor - 1)
        self.cursor = max(self.cursor, cursor)

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


def _cut(received: bytes) -> tuple[bytes, bool, bytes]:
    head, end, rest = received.partition(b"\r\n\r\n")
    return head, bool(end), rest


async def listen(address: str, count: int, sessions: list[str]) -> dict[str, Any]:
    """Let all listen until the streams are over."""
    heard, name = Utterance(), address.removeprefix("http://")
    host, port = name.split(":")
    listeners = [Listener(name, sessions[n % len(sessions)], heard) for n in range(count)]
    for begin in range(0, count, AT_A_TIME):
        some = listeners[begin : begin + AT_A_TIME]
        for listener in some:
            await asyncio.get_running_loop().create_connection(lambda one=listener: one, host, int(port))  # type: ignore[misc]
        await asyncio.gather(*(listener.listens for listener in some))
    print("all listen", flush=True)
    started, cpu = time.perf_counter(), time.process_time()
    _, open_still = await asyncio.wait([listener.over for listener in listeners], timeout=MAX_S)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    last: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for listener in listeners:
        last[listener.session_id][listener.cursor] += 1
    return {
        "events": heard.events,
        "others": heard.others,
        "doubled": heard.doubled,
        "skipped": heard.skipped,
        "open_still": len(open_still),
        "late_s": heard.late(float(sys.stdin.readline())),
        "last": last,
        "seconds": seconds,
        "cpu_s": cpu_s,
    }


def main() -> None:
    address, count, *sessions = sys.argv[1:]
    print(json.dumps(uvloop.run(listen(address, int(count), sessions))))


if __name__ == "__main__":
    main()
