"""A model behind OpenAI's API on loopback. A test says what it answers, and reads what it was asked."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

from tests.models.wire import chunk, usage

MODEL = "house-model"
FIRST_PIECES = 4
WRONG_KEY = {"error": {"message": "wrong key", "type": "invalid_request_error", "code": "invalid_api_key"}}


class ModelServer:
    """Streams the answer of `answer`, a function of the messages that returns a text or the calls of tools.

    It also takes the notifications for a phone, in place of the service that delivers them.

    It runs in a thread of its own, so that it lives longer than the event loop of a test. A request without the
    right key is refused. Between `hold` and `release`, answers wait; after `hold_rest` they wait after a few words.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.answer: Callable[[list[dict[str, Any]]], str | list[dict[str, Any]]] = lambda _: "Fine."
        self.requests: list[dict[str, Any]] = []
        self.notifications: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._is_open = asyncio.Event()
        self._may_end = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def hold(self) -> None:
        """Let answers wait."""
        self._loop.call_soon_threadsafe(self._is_open.clear)

    def hold_rest(self) -> None:
        """Let answers wait after their first words."""
        self._loop.call_soon_threadsafe(self._may_end.clear)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._is_open.set)
        self._loop.call_soon_threadsafe(self._may_end.set)

    def reset(self) -> None:
        """Forget what the last test said."""
        self.release()
        self.answer = lambda _: "Fine."
        self.requests.clear()
        self.notifications.clear()

    async def _start(self) -> None:
        self._is_open.set()
        self._may_end.set()
        app = web.Application()
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/push", self._push)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    def read_last_prompt(self) -> str:
        """Return the last prompt as one text."""
        return "\n".join(str(message.get("content")) for message in self.requests[-1]["messages"])

    def _is_refused(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") != f"Bearer {self.key}"

    async def _list_models(self, request: web.Request) -> web.Response:
        if self._is_refused(request):
            return web.json_response(WRONG_KEY, status=401)
        model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "tests"}
        return web.json_response({"object": "list", "data": [model]})

    async def _push(self, request: web.Request) -> web.Response:
        self.notifications.append(await request.json())
        return web.json_response({}, status=201)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if self._is_refused(request):
            return web.json_response(WRONG_KEY, status=401)
        body = await request.json()
        self.requests.append(body)
        await self._is_open.wait()
        said = self.answer(body["messages"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if isinstance(said, str):
            pieces = [chunk(piece) for piece in said.split(" ") for piece in (piece, " ")][:-1]
        else:
            pieces = [chunk(calls=said)]
        end = chunk(finish="stop" if isinstance(said, str) else "tool_calls")
        for number, piece in enumerate((*pieces, end, usage(100, 10))):
            if number == FIRST_PIECES:
                await self._may_end.wait()
            await response.write(f"data: {json.dumps(piece)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


def call_tool(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return an answer that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function}]


def has_result(messages: list[dict[str, Any]]) -> bool:
    """Return True if the last message is the result of a tool."""
    return messages[-1]["role"] == "tool"
