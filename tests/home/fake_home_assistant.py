"""A fake Home Assistant on the loopback interface, with real HTTP and WebSockets, that can also misbehave."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

TOKEN = "eyJhbGciOi.a-good-and-secret-token.5xQ"
CONFIG = {"state": "RUNNING", "location_name": "Hub House", "language": "de", "components": ["conversation"]}
LIGHT = {"s": "on", "a": {"friendly_name": "Lamp", "brightness": 10}, "c": "x", "lc": 100.0, "lu": 200.0}
OWNER = {"id": "u1", "name": "Ada", "is_admin": True}
ERROR = "error"


class FakeHomeAssistant:
    """Answers each request with its entry in `answers`.

    An entry is a result, an error `(ERROR, code, message)`, a function of the request, or None for no answer.
    A `greeting` of None sends nothing. `asked` records all requests.
    """

    def __init__(self, **answers: Any) -> None:
        self.states: dict[str, Any] = {"light.lamp": LIGHT}
        self.answers: dict[str, Any] = {
            "supported_features": {},
            "get_config": CONFIG,
            "auth/current_user": OWNER,
            "subscribe_events": {},
            "subscribe_entities": {},
            **{f"config/{name}_registry/list": [] for name in ("entity", "device", "area", "floor", "label")},
            "config/entity_registry/get_entries": {},
            "homeassistant/expose_entity/list": {"exposed_entities": {}},
            **answers,
        }
        self.asked: list[dict[str, Any]] = []
        self.got: list[web.Request] = []
        self.rest: dict[str, Any] = {}
        self.answers_pings = True
        self.page: Callable[[web.Request], web.StreamResponse] | None = None
        self.greeting: Any = {"type": "auth_required", "ha_version": "2026.10.4"}
        self._port = 0
        self.sockets: dict[web.WebSocketResponse, dict[str, list[int]]] = {}
        self._requests: list[web.Request] = []

    async def __aenter__(self) -> "FakeHomeAssistant":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/websocket", self._serve)
        app.router.add_get("/api/states/{entity_id}", self._state)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        self.cut()
        await self._runner.cleanup()

    def cut(self) -> None:
        """Close all connections without a goodbye."""
        for request in self._requests:
            if request.transport is not None:
                request.transport.abort()

    async def tell(self, kind: str, *events: Any) -> None:
        """Send events to the subscribers of a kind. Several events share one frame."""
        for socket, subscriptions in self.sockets.items():
            for number in subscriptions.get(kind, ()):
                frames = [{"id": number, "type": "event", "event": event} for event in events]
                await socket.send_json(frames if len(frames) > 1 else frames[0])

    def kinds(self) -> list[str]:
        """Return the types of all requests."""
        return [question["type"] for question in self.asked]

    async def _state(self, request: web.Request) -> web.Response:
        self.got.append(request)
        status, content = self.rest.get(request.match_info["entity_id"], (404, {"message": "not found"}))
        return web.json_response(content, status=status)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.page is not None:
            return self.page(request)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self._requests.append(request)
        if self.greeting is not None:
            text = self.greeting if isinstance(self.greeting, str) else json.dumps(self.greeting)
            await socket.send_str(text)
        try:
            auth = await socket.receive_json()
            self.asked.append(auth)
            if auth.get("access_token") != TOKEN:
                await socket.send_json({"type": "auth_invalid", "message": f"Invalid: {auth}"})
                return socket
            await socket.send_json({"type": "auth_ok", "ha_version": "2026.10.4"})
            await self._talk(socket)
        except (ConnectionError, TypeError, RuntimeError):
            pass
        finally:
            self.sockets.pop(socket, None)
            self._requests.remove(request)
        return socket

    async def _talk(self, socket: web.WebSocketResponse) -> None:
        self.sockets[socket] = {}
        async for message in socket:
            if message.type is WSMsgType.PING:
                if self.answers_pings:
                    await socket.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                question = json.loads(message.data)
                self.asked.append(question)
                await self._answer(socket, question)

    async def _answer(self, socket: web.WebSocketResponse, question: dict[str, Any]) -> None:
        kind, number = question["type"], question["id"]
        answer = self.answers.get(kind, (ERROR, "unknown_command", "Unknown command."))
        if callable(answer):
            answer = answer(question)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is None:
            return
        if isinstance(answer, tuple) and answer[0] == ERROR:
            error = {"code": answer[1], "message": answer[2]}
            await socket.send_json({"id": number, "type": "result", "success": False, "error": error})
            return
        if kind.startswith("subscribe_"):
            topic = question.get("event_type", kind)
            self.sockets[socket].setdefault(topic, []).append(number)
        await socket.send_json({"id": number, "type": "result", "success": True, "result": answer})
        if kind == "subscribe_entities":
            await socket.send_json({"id": number, "type": "event", "event": {"a": self.states}})
