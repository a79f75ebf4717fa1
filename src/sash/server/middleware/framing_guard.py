"""Refuses requests whose end two servers could find at different places (request smuggling)."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sash.errors import SashError
from sash.server.http_errors import make_error_response


class LengthAmbiguous(SashError):
    """The request has two different statements about the length of its body."""

    code = "length_ambiguous"


class FramingGuard:
    """Refuses a request with both Content-Length and Transfer-Encoding, and closes its connection.

    The bytes after such a request may be hidden from a proxy, so no later request of the connection is read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if "content-length" in headers and "transfer-encoding" in headers:
                error = LengthAmbiguous("send Content-Length or Transfer-Encoding, not both")
                response = make_error_response(error)
                response.headers["Connection"] = "close"
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
