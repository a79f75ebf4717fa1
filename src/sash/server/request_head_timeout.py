"""A time limit for request heads, which uvicorn lacks: slow or silent clients would hold connections forever.

A connection and the ASGI calls of its requests share a `HeadTimer` through a context variable. So this needs
only the asyncio methods of uvicorn's protocol class, and no state inside it.
"""

import asyncio
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol


class HeadTimer:
    """Closes a connection if no request begins within `timeout_s` after it connects or sends data."""

    def __init__(self, transport: asyncio.Transport, timeout_s: float) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._open_requests = 0
        self._timer: asyncio.TimerHandle | None = None
        self.start()

    def start(self) -> None:
        """Start the countdown, unless it already runs or a request is being served."""
        if self._timer is None and not self._open_requests:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._close)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def begin_request(self) -> None:
        self._open_requests += 1
        self.stop()

    def end_request(self) -> None:
        self._open_requests -= 1

    def _close(self) -> None:
        self._timer = None
        self._transport.close()


_head_timer: ContextVar[HeadTimer | None] = ContextVar("head_timer", default=None)


def make_protocol(timeout_s: float) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol class with a time limit for request heads."""

    class TimedProtocol(H11Protocol):
        _timer: HeadTimer

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = HeadTimer(transport, timeout_s)

        def data_received(self, data: bytes) -> None:
            # uvicorn starts the ASGI call here, and its task inherits the context.
            token = _head_timer.set(self._timer)
            try:
                super().data_received(data)
            finally:
                _head_timer.reset(token)
            self._timer.start()

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.stop()
            super().connection_lost(exc)

    return TimedProtocol


class RequestHeadTimeout:
    """ASGI middleware that stops the timeout for request heads while the connection serves a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        timer = _head_timer.get() if scope["type"] == "http" else None
        if timer is None:
            await self._app(scope, receive, send)
            return
        timer.begin_request()
        try:
            await self._app(scope, receive, send)
        finally:
            timer.end_request()
