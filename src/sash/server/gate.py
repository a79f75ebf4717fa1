"""What every request passes first: Host and Origin, the token, the size and depth of its body.

Plain ASGI, so that it holds for all routes alike, MCP's among them.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sash.app.access import Caller, Tokens
from sash.app.settings import LOOPBACK, Settings, is_loopback
from sash.errors import InvalidConfig, SashError, Unauthorized
from sash.server.problems import of_error
from sash.values.sessions import DEFAULT_OWNER

MAX_DEPTH = 64
LARGE = 1 << 16
# A body has so many seconds, and more the larger it may be.
BODY_S = 20.0
SLOWEST_BYTES_S = 100_000
OPEN_PATHS = frozenset({"/", "/health", "/ready", "/docs", "/openapi.json"})
IMPORT_PATH = "/v1/sessions/import"
LOCAL = Caller(DEFAULT_OWNER)

# The closing quote may be missing: else each quote of an endless string would be looked at to its end.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_HOST = re.compile(r"(?:\[(?P<address>[^\]]*)\]|(?P<name>[^:]*))(?::[0-9]{1,5})?", re.ASCII)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class Refused(SashError):
    """A request that does not get in, with the code of why."""

    code = "refused"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]


class Gate:
    """Lets in who may come in, and notes in the scope who that is."""

    def __init__(self, app: ASGIApp, settings: Settings, tokens: Tokens) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._hosts = {host.lower() for host in (*settings.allowed_hosts, *LOOPBACK, settings.host)}
        if not is_loopback(settings.host):
            self._hosts.add(socket.gethostname().lower())
        self._origins = settings.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            host = self._check_host(headers)
            self._check_origin(headers, host)
            if scope["path"] not in OPEN_PATHS or scope["method"] not in ("GET", "HEAD"):
                scope["caller"] = self._caller(headers)
                scope["still"] = lambda: self._caller(headers)
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                receive = await self._read(scope, headers, receive)
        except SashError as error:
            await of_error(error)(scope, receive, send)
            return
        if scope["method"] == "HEAD" and scope["path"] in OPEN_PATHS:
            scope = {**scope, "method": "GET"}  # The server leaves the body out, by the scope that it has.
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> str:
        """Refuse a name that is not ours: somebody's page may have pointed its own at this machine."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            raise Refused("host_refused", "a request needs one Host header")
        name = _name(hosts[0])
        if name not in self._hosts and not (_is_address(name) and not is_loopback(self._settings.host)):
            raise Refused(
                "host_refused", f"this server is not called {name!r:.80}: add the name to allowed_hosts"
            )
        return hosts[0].lower()

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Refuse what a page of somebody else sends; a program sends no Origin."""
        for origin in headers.getlist("origin"):
            _, _, asked = origin.lower().partition("://")
            if asked != host and origin.lower().rstrip("/") not in self._origins:
                raise Refused(
                    "origin_refused", f"pages of {origin!r:.80} may not call: add it to allowed_origins"
                )

    def _caller(self, headers: Headers) -> Caller:
        """Return who calls: once there was a token everybody needs one, and beyond this machine always."""
        shown = headers.getlist("authorization")
        if not shown and is_loopback(self._settings.host) and not self._tokens.needed:
            return LOCAL
        scheme, _, text = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            raise Unauthorized(
                "a token is needed: send a header Authorization that says Bearer, and the token"
            )
        return self._tokens.caller(text.strip())

    async def _read(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Read the body before anybody parses it, and no more of it than is allowed."""
        settings = self._settings
        limit = settings.max_import_bytes if scope["path"] == IMPORT_PATH else settings.max_body_bytes
        patience = BODY_S + limit / SLOWEST_BYTES_S
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(patience):
                body = await _body(receive, limit)
        except TimeoutError as error:
            raise Refused("body_too_slow", f"the body did not come within {patience:.0f} seconds") from error
        if body is None:
            return _gone
        if await asyncio.to_thread(_too_deep, body) if len(body) > LARGE else _too_deep(body):
            raise Refused("invalid_json", f"the body is nested deeper than {MAX_DEPTH}: flatten it")
        return _Replay(body, receive)


async def _body(receive: Receive, limit: int) -> bytes | None:
    """Read a body of at most so many bytes; None if whoever sent it is gone."""
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        size, more = size + len(chunks[-1]), message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
    return b"".join(chunks)


class _Replay:
    """Gives a body that was read already, and then whatever else comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _gone() -> Message:
    return {"type": "http.disconnect"}


def _too_large(limit: int) -> Refused:
    return Refused("body_too_large", f"the body has more than the {limit:,} bytes that are allowed")


def _too_deep(body: bytes) -> bool:
    """Whether JSON is nested too deep: pairs of brackets are taken out from the inside, level by level."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(inner) == len(brackets):
            break  # there is none, or it is not JSON, which is for the parser to say
        brackets = inner
    return b"[]" in brackets or b"{}" in brackets


def _name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found else host.lower()


def _is_address(name: str) -> bool:
    """Whether a name is an address, which nobody can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def refuse_open_bind(settings: Settings, tokens: Iterable[object]) -> None:
    """Refuse to listen beyond this machine while nobody needs a token."""
    if not is_loopback(settings.host) and not tuple(tokens):
        raise InvalidConfig(
            f"{settings.host} can be reached by others, and there is no token: make one with "
            "`sash token create`, or listen at 127.0.0.1",
            option="host",
        )
