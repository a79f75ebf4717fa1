"""Limits for request bodies: size, time, and the number of large bodies at a time."""

import asyncio
from contextlib import AsyncExitStack

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.app.owner_shares import OwnerShares, Work
from sash.app.settings import Settings
from sash.engine.owner_pacing import OwnerPacing
from sash.errors import InvalidInput, SashError
from sash.server.http_errors import make_error_response
from sash.server.timeouts import Timeouts
from sash.values.large_json import has_more_values

MAX_VALUES = 5_000
# A message of an export has about fifty values, with its turn and its steps.
MAX_IMPORT_VALUES = 2_000_000
# A larger body uses the share of its owner.
SHARED_BYTES = 1 << 14
IMPORT_PATH = "/v1/sessions/import"
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class BodyTooLarge(SashError):
    """The body exceeds the size limit."""

    code = "body_too_large"


class BodyTooSlow(SashError):
    """The body did not arrive in time."""

    code = "body_too_slow"


class BodyLimits:
    """Reads the whole body before any parser sees it, and refuses a body that exceeds a limit.

    A large body uses the share of its owner until the response has ended.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, timeouts: Timeouts, shares: OwnerShares, pacing: OwnerPacing
    ) -> None:
        self._app = app
        self._pacing = pacing
        self._shares = shares
        self._settings = settings
        self._timeouts = timeouts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in METHODS_WITH_BODY:
            await self._app(scope, receive, send)
            return
        async with AsyncExitStack() as stack:
            try:
                if _may_be_large(scope):
                    work: Work = "import" if scope["path"] == IMPORT_PATH else "upload"
                    await stack.enter_async_context(self._shares.use(scope["caller"].owner, work))
                receive = await self._read_body(scope, receive)
            except SashError as error:
                await make_error_response(error)(scope, receive, send)
                return
            if "caller" in scope:  # Requests whose bodies have arrived together do not start together.
                await self._pacing.wait(scope["caller"].owner)
            await self._app(scope, receive, send)

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body and return a `receive` that delivers it. Raise an error if it exceeds a limit."""
        settings, timeouts, is_import = self._settings, self._timeouts, scope["path"] == IMPORT_PATH
        option = "max_import_bytes" if is_import else "max_body_bytes"
        limit: int = getattr(settings, option)
        timeout_s = timeouts.body_s + limit / timeouts.body_bytes_per_s
        length = Headers(scope=scope).get("content-length", "0")
        too_large = BodyTooLarge(f"the body is larger than {limit:,} bytes: send less, or raise {option}")
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
        body = b"".join(chunks)
        max_values = MAX_IMPORT_VALUES if is_import else MAX_VALUES
        if size > SHARED_BYTES and await asyncio.to_thread(has_more_values, body, max_values):
            raise InvalidInput(f"the body has more than {max_values:,} JSON values: send fewer")
        return _BodyReplay(body, receive)


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


def _may_be_large(scope: Scope) -> bool:
    """Return True if the body is large, or if its length is unknown."""
    headers = Headers(scope=scope)
    length = headers.get("content-length")
    if length is None:
        return "transfer-encoding" in headers
    return not length.isdigit() or int(length) > SHARED_BYTES


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}
