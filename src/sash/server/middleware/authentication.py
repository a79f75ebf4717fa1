"""Finds the caller of a request by its bearer token."""

from collections.abc import Callable, Iterable
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sash.app.access import Caller, Tokens
from sash.app.settings import Settings, is_loopback
from sash.errors import InvalidConfig, SashError, Unauthorized
from sash.server.http_errors import make_error_response
from sash.values.sessions import DEFAULT_OWNER

OPEN_PATHS = frozenset({"/", "/health", "/ready", "/docs", "/openapi.json"})
# The files of the web page.
OPEN_PREFIX = "/page/"
LOCAL_CALLER = Caller(DEFAULT_OWNER)


class TokenCheck:
    """Checks the token of a long connection again, at most once in `interval_s` seconds."""

    def __init__(
        self, authenticate: Callable[[], Caller], interval_s: float, now: Callable[[], float] = monotonic
    ) -> None:
        self._authenticate = authenticate
        self._interval_s = interval_s
        self._now = now
        self._last_check_s: float | None = None

    def __call__(self) -> None:
        """Raise `Unauthorized` if the token was revoked or has expired."""
        now = self._now()
        if self._last_check_s is None or now - self._last_check_s >= self._interval_s:
            self._authenticate()
            self._last_check_s = now


class Authentication:
    """Puts the caller of a request into `scope["caller"]`, and a check for later into `scope["check_token"]`.

    The open pages need no token. On a loopback address no request needs a token until the first one is
    created.
    """

    def __init__(self, app: ASGIApp, settings: Settings, tokens: Tokens, token_check_s: float) -> None:
        self._app = app
        self._is_public = not is_loopback(settings.host)
        self._tokens = tokens
        self._token_check_s = token_check_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_open(scope):
            headers = Headers(scope=scope)
            try:
                scope["caller"] = self._authenticate(headers)
            except SashError as error:
                await make_error_response(error)(scope, receive, send)
                return
            scope["check_token"] = TokenCheck(lambda: self._authenticate(headers), self._token_check_s)
        await self._app(scope, receive, send)

    def _authenticate(self, headers: Headers) -> Caller:
        values = headers.getlist("authorization")
        if not values and not self._is_public and not self._tokens.needed:
            return LOCAL_CALLER
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            raise Unauthorized("a token is needed: send one in the Authorization header, as a bearer token")
        return self._tokens.caller(token.strip())


def _is_open(scope: Scope) -> bool:
    path = scope["path"]
    return (path in OPEN_PATHS or path.startswith(OPEN_PREFIX)) and scope["method"] in ("GET", "HEAD")


def check_bind_address(settings: Settings, tokens: Iterable[object]) -> None:
    """Raise `InvalidConfig` if other machines can reach the server's address and no token exists."""
    if not is_loopback(settings.host) and not tuple(tokens):
        raise InvalidConfig(
            f"{settings.host} can be reached from other machines, and there is no token: create one with "
            "`sash token create`, or listen at 127.0.0.1",
            option="host",
        )
