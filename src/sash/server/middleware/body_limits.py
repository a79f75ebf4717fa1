"""Limits for request bodies: size and time."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.app.settings import Settings
from sash.errors import SashError
from sash.server.http_errors import make_error_response
from sash.server.timeouts import Timeouts

IMPORT_PATH = "/v1/sessions/import"
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class BodyTooLarge(SashError):
    """The body exceeds the size limit."""

    code = "body_too_large"


class BodyTooSlow(SashError):
    """The body did not arrive in time."""

    code = "body_too_slow"


class BodyLimits:
    """Reads the whole body before any parser sees it, and refuses a body that exceeds a limit."""

    def __init__(self, app: ASGIApp, settings: Settings, timeouts: Timeouts) -> None:
        self._app = app
        self._settings = settings
        self._timeouts = timeouts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in METHODS_WITH_BODY:
            try:
                receive = await self._read_body(scope, receive)
            except SashError as error:
                await make_error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body and return a `receive` that delivers it. Raise `BodyTooLarge` or `BodyTooSlow`."""
        settings, timeouts = self._settings, self._timeouts
        limit = settings.max_import_bytes if scope["path"] == IMPORT_PATH else settings.max_body_bytes
        timeout_s = timeouts.body_s + limit / timeouts.body_bytes_per_s
        length = Headers(scope=scope).get("content-length", "0")
        too_large = BodyTooLarge(f"the body is larger than the limit of {limit:,} bytes")
        if not length.isdigit() or int(length) > limit:
            raise too_large
        chunks, size, has_more = [], 0, True
        try:
            async with asyncio.timeout(timeout_s):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return _receive_disconnect
                    chunks.append(message.get("body", b""))
                    size, has_more = size + len(chunks[-1]), message.get("more_body", False)
                    if size > limit:
                        raise too_large
        except TimeoutError as error:
            raise BodyTooSlow(f"the body did not arrive within {timeout_s:.0f} seconds") from error
        return _BodyReplay(b"".join(chunks), receive)


class _BodyReplay:
    """A `receive` that delivers a body that was read already, then passes on later messages."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}
