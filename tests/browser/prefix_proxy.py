"""A reverse proxy that serves a server below a path, as the ingress of Home Assistant does."""

import asyncio
import threading
from typing import Self

from aiohttp import ClientSession, web

PREFIX = "/api/ingress/abc"
DROPPED = {"host", "connection", "transfer-encoding", "content-length", "keep-alive", "origin"}


class PrefixProxy:
    """Passes the requests below `PREFIX` on to `target`, in a thread of its own. Other paths do not exist."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        self._client = ClientSession(auto_decompress=False)
        app = web.Application()
        app.router.add_route("*", PREFIX + "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{PREFIX}/"

    async def _stop(self) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in DROPPED}
        url = f"{self._target}/{request.match_info['path']}"
        if request.query_string:
            url += f"?{request.query_string}"
        async with self._client.request(
            request.method, url, headers=headers, data=await request.read()
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in DROPPED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response
