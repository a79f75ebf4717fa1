"""Runs many listeners to the events of sessions in its own process, and prints the measurements as JSON.

    python -m benchmarks._listeners ADDRESS LISTENERS SESSION...

The listeners are spread over the sessions. The process prints a line when all listeners are connected, and
waits until all streams have ended. Then it reads a line with a time, and measures the delays of the events
since that time. The delay of an event is the time from the timestamp of its step until its arrival.
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

from benchmarks._load import compute_percentiles

CONNECTIONS_AT_ONCE = 50
MAX_S = 600.0


@dataclass
class ReceivedEvents:
    """The events that all listeners received, with the delays of each event in seconds."""

    events: int = 0
    not_stored: int = 0
    duplicates: int = 0
    skipped: int = 0
    delays_s: "dict[tuple[str, int], array[float]]" = field(default_factory=dict)
    written_at: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, session_id: str, cursor: int, data: bytes) -> None:
        """Add an event. It is the same for all listeners, so its JSON is read once."""
        now, key = time.time(), (session_id, cursor)
        if key not in self.written_at:
            step = json.loads(data)["payload"]["step"]
            self.written_at[key] = datetime.fromisoformat(step["ts"]).timestamp()
            self.delays_s[key] = array("d")
        self.delays_s[key].append(now - self.written_at[key])
        self.events += 1

    def percentiles_s(self, since: float) -> dict[str, float]:
        """Return the percentiles of the delays of the events since a time."""
        keys = (key for key, written_at in self.written_at.items() if written_at >= since)
        return compute_percentiles(chain.from_iterable(self.delays_s[key] for key in keys))


class Listener(asyncio.Protocol):
    """Listens to one session, from its first event to the end of the stream."""

    def __init__(self, host: str, session_id: str, received: ReceivedEvents) -> None:
        loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.cursor = 0
        self.connected: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._host, self._received = host, received
        self._buffer, self._text, self._in_body = b"", b"", False

    def connection_made(self, transport: Any) -> None:
        transport.write(f"GET /events/{self.session_id} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._in_body:
            head, self._in_body, rest = _split_head(self._buffer)
            if not self._in_body:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self.connected.set_exception(RuntimeError(head.decode()))
                return
            self._buffer = rest
        self._decode_chunks()
        *frames, self._text = self._text.split(b"\r\n\r\n")
        for frame in frames:
            self._read_frame(frame)

    def _decode_chunks(self) -> None:
        start = 0
        while (line := self._buffer.find(b"\r\n", start)) >= 0:
            size = int(self._buffer[start:line], 16)
            end = line + 2 + size
            if len(self._buffer) < end + 2:
                break
            self._text += self._buffer[line + 2 : end]
            start = end + 2
            if size == 0:
                self._end()
        self._buffer = self._buffer[start:]

    def _read_frame(self, frame: bytes) -> None:
        head, _, data = frame.partition(b"data: ")
        if not head.startswith(b"id: "):
            self._received.not_stored += bool(data)
            return
        cursor = int(head[4:].split(b"\r\n")[0])
        if not data:
            self.connected.set_result(None)
            return
        self._received.add(self.session_id, cursor, data)
        self._received.duplicates += cursor <= self.cursor
        self._received.skipped += max(0, cursor - self.cursor - 1)
        self.cursor = max(self.cursor, cursor)

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _split_head(received: bytes) -> tuple[bytes, bool, bytes]:
    head, end, rest = received.partition(b"\r\n\r\n")
    return head, bool(end), rest


async def listen(address: str, count: int, sessions: list[str]) -> dict[str, Any]:
    """Connect all listeners, wait for the ends of their streams, and return the measurements."""
    received, host_and_port = ReceivedEvents(), address.removeprefix("http://")
    host, port = host_and_port.split(":")
    listeners = [Listener(host_and_port, sessions[n % len(sessions)], received) for n in range(count)]
    connect = asyncio.get_running_loop().create_connection
    for begin in range(0, count, CONNECTIONS_AT_ONCE):
        batch = listeners[begin : begin + CONNECTIONS_AT_ONCE]
        for listener in batch:
            await connect(lambda listener=listener: listener, host, int(port))
        await asyncio.gather(*(listener.connected for listener in batch))
    print("all connected", flush=True)
    started, cpu = time.perf_counter(), time.process_time()
    _, still_open = await asyncio.wait([listener.ended for listener in listeners], timeout=MAX_S)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    last_cursors: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for listener in listeners:
        last_cursors[listener.session_id][listener.cursor] += 1
    return {
        "events": received.events,
        "not_stored": received.not_stored,
        "duplicates": received.duplicates,
        "skipped": received.skipped,
        "still_open": len(still_open),
        "delays_s": received.percentiles_s(float(sys.stdin.readline())),
        "last_cursors": last_cursors,
        "seconds": seconds,
        "cpu_s": cpu_s,
    }


def main() -> None:
    address, count, *sessions = sys.argv[1:]
    print(json.dumps(uvloop.run(listen(address, int(count), sessions))))


if __name__ == "__main__":
    main()
