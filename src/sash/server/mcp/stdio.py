"""`sash mcp`: MCP on standard input and output, until the input ends or somebody says that it is enough."""

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
from sash.app.service import AgentService
from sash.app.settings import Settings
from sash.server.mcp.server import Mcp
from sash.values.sessions import DEFAULT_OWNER

STDIN = 0
CHUNK = 1 << 16
# How long who says no more waits for the answers that it has not got yet.
SETTLE_S = 50.0


def serve_stdio(settings: Settings, owner: str = DEFAULT_OWNER) -> None:
    """Serve one client, which is the owner. Nothing but MCP goes to standard output."""
    asyncio.run(_serve(settings, Caller(owner)))


async def _serve(settings: Settings, caller: Caller) -> None:
    enough = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, enough.set)
    runtime = make_runtime(settings)
    # A client starts this with its own settings: turns that a server has accepted are not for these.
    await runtime.open(recover=False)
    try:
        stopping = asyncio.create_task(enough.wait())
        talking = asyncio.create_task(_talk(Mcp(AgentService(runtime), caller)))
        await asyncio.wait((talking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            await _break_off(talking)
        else:
            stopping.cancel()
            await talking
    finally:
        await runtime.close()


async def _break_off(talking: asyncio.Task[None]) -> None:
    """Stop in the middle of whatever is said, so that nobody minds how that ends."""
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)


async def _talk(mcp: Mcp) -> None:
    server, talk = mcp.server(), _Talk()
    to_server, asked = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, from_server = anyio.create_memory_object_stream[SessionMessage]()
    async with (
        asked,
        answers,
        stdio_server(stdin=cast(Any, talk.lines(STDIN))) as (received, sent),
        asyncio.TaskGroup() as group,
    ):
        group.create_task(talk.hear(cast(Any, received), to_server, cast(Any, sent)))
        group.create_task(talk.answer(from_server, cast(Any, sent)))
        await server.run(asked, answers, server.create_initialization_options())


class _Talk:
    """Carries what is said, and knows what was asked and has no answer yet."""

    def __init__(self) -> None:
        self._unanswered: set[t.RequestId] = set()
        self._answered = asyncio.Event()
        self._line = ""

    async def lines(self, descriptor: int) -> AsyncIterator[str]:
        """Give the lines that the client writes; the next is read when the last was passed on."""
        async for line in _lines(descriptor):
            if line.strip():
                self._line = line
                yield line

    async def hear(
        self,
        received: ObjectReceiveStream[SessionMessage | Exception],
        to_server: ObjectSendStream[SessionMessage | Exception],
        sent: ObjectSendStream[SessionMessage],
    ) -> None:
        """Pass on what the client says; when it has said all, it still gets its answers."""
        async with received, to_server:
            async for item in received:
                if isinstance(item, Exception):
                    await sent.send(_not_understood(self._line))
                    continue
                self._note(item.message)
                await to_server.send(item)
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    while self._unanswered:
                        self._answered.clear()
                        await self._answered.wait()

    async def answer(
        self, from_server: ObjectReceiveStream[SessionMessage], sent: ObjectSendStream[SessionMessage]
    ) -> None:
        """Pass on what the server says."""
        async with from_server, sent:
            async for item in from_server:
                await sent.send(item)
                if isinstance(item.message, t.JSONRPCResponse | t.JSONRPCError):
                    self._forget(item.message.id)

    def _note(self, message: t.JSONRPCMessage) -> None:
        if isinstance(message, t.JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, t.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._forget((message.params or {}).get("requestId"))

    def _forget(self, request_id: Any) -> None:
        self._unanswered.discard(request_id)
        self._answered.set()


def _not_understood(line: str) -> SessionMessage:
    """Say that a line is no message, to whoever waits for its answer."""
    request_id: t.RequestId | None = None
    code = t.PARSE_ERROR
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"id": str() | int() as known}:
                request_id = known
        code = t.INVALID_REQUEST
    error = t.ErrorData(code=code, message="This line is no JSON-RPC message: send one in each line.")
    return SessionMessage(t.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """Give the lines of an input, read by a thread that nobody has to wait for when it is time to go."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        rest = b""
        with suppress(OSError):  # An input that cannot be read has ended.
            while chunk := os.read(descriptor, CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    put(line)
        if rest:
            put(rest)
        put(None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line.decode(errors="replace")
