"""Answers the requests that the server cancels when it stops."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.errors import ShuttingDown
from sash.server.http_errors import make_error_response


class StoppedRequests:
    """Sends a 503 to a client whose request is cancelled before its response has started.

    The server cancels requests that are unfinished when its time to stop is over, such as a body that never
    arrives. Without this, the client would get a 500.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_observed(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        except asyncio.CancelledError:
            if has_started:
                raise
            response = make_error_response(ShuttingDown("Sash is shutting down: try again in a moment"))
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
