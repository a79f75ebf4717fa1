"""Passes requests of Home Assistant's HTTP server on to an ASGI application, and its responses back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import ClientPayloadError, web
from homeassistant.core import HomeAssistant

type Message = MutableMapping[str, Any]
type AsgiApp = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

# Seconds that running requests get to end when the bridge is closed. Then they are cancelled.
CLOSE_S = 1.0
# Home Assistant has signed the user in already. The connection is the business of its HTTP server.
HIDDEN_REQUEST_HEADERS = frozenset({b"authorization", b"cookie"})
HIDDEN_RESPONSE_HEADERS = frozenset({b"connection", b"transfer-encoding"})

_LOGGER = logging.getLogger(__name__)


class Exchange:
    """One request and its response. `receive` and `send` are those of the application."""

    def __init__(self, request: web.Request) -> None:
        self.response: web.StreamResponse | None = None
        self.is_complete = False
        self._request = request
        self._has_body = True
        self._is_over = asyncio.Event()
        self._has_client = True

    async def receive(self) -> Message:
        """Return the next part of the body. After it, return `http.disconnect` when the exchange is over."""
        if self._has_body:
            try:
                chunk = await self._request.content.readany()
            except ClientPayloadError, ConnectionError, web.RequestPayloadError:
                self.lose_client()
            else:
                self._has_body = bool(chunk) and not self._request.content.at_eof()
                return {"type": "http.request", "body": chunk, "more_body": self._has_body}
        await self._is_over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response. It is dropped if the client has gone."""
        if not self._has_client:
            return
        try:
            if message["type"] == "http.response.start":
                await self._start(message)
            else:
                await self._send_body(message)
        except ConnectionError:
            self.lose_client()

    def end(self) -> None:
        """Tell the application that no more is expected: it ends an event stream then."""
        self._is_over.set()

    def lose_client(self) -> None:
        """Tell the application that the client has gone."""
        self._has_client = self._has_body = False
        self.end()

    def break_off(self) -> None:
        """Close the connection, so that the client does not take half a response for a whole one."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _start(self, message: Message) -> None:
        response = web.StreamResponse(status=message["status"])
        for name, value in message.get("headers", ()):
            if name.lower() not in HIDDEN_RESPONSE_HEADERS:
                response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
        self.response = response
        await response.prepare(self._request)

    async def _send_body(self, message: Message) -> None:
        assert self.response is not None
        if message.get("body") and self._request.method != "HEAD":
            await self.response.write(message["body"])
        self.is_complete = not message.get("more_body", False)


class AsgiBridge:
    """Runs requests in an application until it is closed."""

    def __init__(self, hass: HomeAssistant, app: AsgiApp) -> None:
        self._hass = hass
        self._app = app
        self._open: dict[asyncio.Task[None], Exchange] = {}
        self._is_closed = False

    async def handle(self, request: web.Request, prefix: str, **scope: Any) -> web.StreamResponse | None:
        """Return the response of the application. Return None if the bridge is closed.

        The application does not see the `prefix` of the path. `scope` is added to its scope. Like other
        servers of ASGI, this one does not cancel a request whose client has gone, but tells it.
        """
        if self._is_closed:
            return None
        exchange = Exchange(request)
        task = self._hass.async_create_background_task(
            self._run({**make_scope(request, prefix), **scope}, exchange),
            f"sash {request.method} {request.path}",
            eager_start=True,
        )
        self._open[task] = exchange
        task.add_done_callback(lambda _: self._open.pop(task))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():  # Home Assistant cancels this coroutine when the client has gone.
                exchange.lose_client()
                raise
            exchange.break_off()
        return exchange.response

    async def close(self) -> None:
        """End the event streams, and cancel requests that do not end soon. Later requests are refused."""
        self._is_closed = True
        for exchange in self._open.values():
            exchange.end()
        if tasks := list(self._open):
            _, pending = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _run(self, scope: Message, exchange: Exchange) -> None:
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:  # The application has answered it. Its message may contain a secret.
            _LOGGER.debug("%s %s failed: %s", scope["method"], scope["path"], type(error).__name__)
            if not exchange.is_complete:
                exchange.break_off()
            return
        # An event stream may end without a last part, and other responses may not.
        response = exchange.response
        if response is not None and not exchange.is_complete and response.content_length is not None:
            exchange.break_off()


def make_scope(request: web.Request, prefix: str) -> Message:
    """Return the scope of a request. Its path is the one below `prefix`."""
    raw_path = request.rel_url.raw_path.removeprefix(prefix).encode()
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": request.scheme,
        "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path,
        "root_path": "",
        "query_string": request.rel_url.raw_query_string.encode(),
        "headers": [
            (name.lower(), value)
            for name, value in request.raw_headers
            if name.lower() not in HIDDEN_REQUEST_HEADERS
        ],
        "client": None if request.remote is None else (request.remote, 0),
        "server": (request.host, None),
        "state": {},
    }
