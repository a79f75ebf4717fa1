"""`sash mcp`: MCP on standard input and output, until the input ends or somebody says that it is enough."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

from mcp.server.stdio import stdio_server

from sash.access import Caller
from sash.assembly import make_runtime
from sash.desk import Desk
from sash.runtime import DEFAULT_OWNER
from sash.server.mcp.server import Mcp
from sash.settings import Settings

STDIN = 0
CHUNK = 1 << 16


def serve_stdio(settings: Settings, owner: str = DEFAULT_OWNER) -> None:
    """Serve one client, which is the owner. Nothing but MCP goes to standard output."""
    asyncio.run(_serve(settings, Caller(owner)))


async def _serve(settings: Settings, caller: Caller) -> None:
    enough = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, enough.set)
    async with make_runtime(settings) as runtime:
        stopping = asyncio.create_task(enough.wait())
        talking = asyncio.create_task(_talk(Mcp(Desk(runtime), caller)))
        await asyncio.wait((talking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            await _break_off(talking)
        else:
            stopping.cancel()
            await talking


async def _break_off(talking: asyncio.Task[None]) -> None:
    """Stop in the middle of whatever is said, so that nobody minds how that ends."""
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)


async def _talk(mcp: Mcp) -> None:
    server = mcp.server()
    async with stdio_server(stdin=cast(Any, _lines(STDIN, mcp))) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _lines(descriptor: int, mcp: Mcp) -> AsyncIterator[str]:
    """Give the lines of an input, read by a thread that nobody has to wait for when it is time to go.

    Who has said all that it has to say may still wait for answers: it gets them before this ends.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        rest = b""
        while chunk := os.read(descriptor, CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                put(line)
        put(None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line.decode(errors="replace")
    await mcp.settle()
