"""MCP on standard input and output (`sash mcp`), until the input ends or a signal stops the process.

The SDK's `stdio_server` reads and writes the messages. `_StdioRelay` stands between it and the SDK's server
and adds three things that the SDK lacks: responses to requests that are pending when the input ends, error
responses to malformed lines, and a reader that does not block the shutdown.
"""

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast

import anyio
import mcp.types as t
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from sash.app.access import Caller
from sash.app.assembly import make_runtime
from sash.app.early_answer import find_early_wait_s
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server.mcp.handlers import McpHandlers
from sash.server.timeouts import Timeouts
from sash.values.sessions import DEFAULT_OWNER

STDIN = 0
CHUNK_BYTES = 1 << 16
# Seconds to wait for pending responses after the client closes its input.
PENDING_S = 50.0


def serve_stdio(settings: Settings, owner: str = DEFAULT_OWNER) -> None:
    """Serve one client as `owner`. Standard output carries only MCP messages."""
    asyncio.run(_serve(settings, Caller(owner)))


async def _serve(settings: Settings, caller: Caller) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runtime = make_runtime(settings)
    # The client chose these settings, so turns of another server are not resumed with them.
    await runtime.open(recover=False)
    try:
        stopping = asyncio.create_task(stop.wait())
        service = AgentService(runtime, early_wait_s=find_early_wait_s(settings))
        handlers = McpHandlers(service, Timeouts(), caller)
        serving = asyncio.create_task(_serve_client(handlers))
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        else:
            stopping.cancel()
            await serving
    finally:
        await runtime.close()


async def _serve_client(handlers: McpHandlers) -> None:
    server, relay = handlers.build_server(), _StdioRelay()
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    responses, from_server = anyio.create_memory_object_stream[SessionMessage]()
    async with (
        requests,
        responses,
        stdio_server(stdin=cast(Any, relay.read_lines(STDIN))) as (received, to_client),
        asyncio.TaskGroup() as group,
    ):
        group.create_task(relay.forward_requests(cast(Any, received), to_server, cast(Any, to_client)))
        group.create_task(relay.forward_responses(from_server, cast(Any, to_client)))
        await server.run(requests, responses, server.create_initialization_options())


class _StdioRelay:
    """Forwards messages in both directions and keeps the ids of requests without a response."""

    def __init__(self) -> None:
        self._pending: set[t.RequestId] = set()
        self._is_answered = asyncio.Event()
        self._last_line = ""

    async def read_lines(self, descriptor: int) -> AsyncIterator[str]:
        """Yield the client's non-empty lines. A line is read only after the last one was forwarded."""
        async for line in _read_lines(descriptor):
            if line.strip():
                self._last_line = line
                yield line

    async def forward_requests(
        self,
        received: ObjectReceiveStream[SessionMessage | Exception],
        to_server: ObjectSendStream[SessionMessage | Exception],
        to_client: ObjectSendStream[SessionMessage],
    ) -> None:
        """Forward the client's messages. At the end of the input, wait for the pending responses."""
        async with received, to_server:
            async for item in received:
                if isinstance(item, Exception):
                    await to_client.send(_make_parse_error(self._last_line))
                    continue
                self._track(item.message)
                await to_server.send(item)
            with suppress(TimeoutError):
                async with asyncio.timeout(PENDING_S):
                    while self._pending:
                        self._is_answered.clear()
                        await self._is_answered.wait()

    async def forward_responses(
        self, from_server: ObjectReceiveStream[SessionMessage], to_client: ObjectSendStream[SessionMessage]
    ) -> None:
        async with from_server, to_client:
            async for item in from_server:
                await to_client.send(item)
                if isinstance(item.message, t.JSONRPCResponse | t.JSONRPCError):
                    self._untrack(item.message.id)

    def _track(self, message: t.JSONRPCMessage) -> None:
        if isinstance(message, t.JSONRPCRequest):
            self._pending.add(message.id)
        elif isinstance(message, t.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._untrack((message.params or {}).get("requestId"))

    def _untrack(self, request_id: Any) -> None:
        self._pending.discard(request_id)
        self._is_answered.set()


def _make_parse_error(line: str) -> SessionMessage:
    """Return the error response to a malformed line, with the `id` in the line if that can be read."""
    request_id: t.RequestId | None = None
    code = t.PARSE_ERROR
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"id": str() | int() as known}:
                request_id = known
        code = t.INVALID_REQUEST
    error = t.ErrorData(code=code, message="This line is not a JSON-RPC message: send one message per line.")
    return SessionMessage(t.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    """Yield lines that a daemon thread reads. A blocked read does not delay the end of the process."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        rest = b""
        with suppress(OSError):  # An unreadable input counts as ended.
            while chunk := os.read(descriptor, CHUNK_BYTES):
                *complete, rest = (rest + chunk).split(b"\n")
                for line in complete:
                    put(line)
        if rest:
            put(rest)
        put(None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line.decode(errors="replace")
