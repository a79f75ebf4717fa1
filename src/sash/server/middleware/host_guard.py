"""Checks the Host and Origin headers, against DNS rebinding and against pages of other sites."""

import ipaddress
import re
import socket

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sash.app.settings import LOOPBACK, Settings, is_loopback
from sash.errors import SashError
from sash.server.http_errors import make_error_response

_HOST = re.compile(r"(?:\[(?P<address>[^\]]*)\]|(?P<name>[^:]*))(?::[0-9]{1,5})?", re.ASCII)


class HostRefused(SashError):
    """The Host header names another server."""

    code = "host_refused"


class OriginRefused(SashError):
    """The request comes from a web page of an origin that is not allowed."""

    code = "origin_refused"


class HostGuard:
    """Lets a request pass if its Host is one of ours and its Origin, if any, is allowed."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._is_public = not is_loopback(settings.host)
        self._hosts = {host.lower() for host in (*settings.allowed_hosts, *LOOPBACK, settings.host)}
        if self._is_public:
            self._hosts.add(socket.gethostname().lower())
        self._origins = settings.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                self._check_host(headers)
                self._check_origin(headers)
            except SashError as error:
                await make_error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            raise HostRefused("a request needs exactly one Host header")
        name = _parse_host(hosts[0])
        # A foreign site can point its own name at this machine, but not an IP address.
        if name not in self._hosts and not (self._is_public and _is_address(name)):
            raise HostRefused(f"this server is not called {name!r:.80}: add the name to allowed_hosts")

    def _check_origin(self, headers: Headers) -> None:
        """Raise `OriginRefused` for a web page of another origin. Programs send no Origin header."""
        for origin in headers.getlist("origin"):
            _, _, host = origin.lower().partition("://")
            if host != headers["host"].lower() and origin.lower().rstrip("/") not in self._origins:
                raise OriginRefused(
                    f"web pages of {origin!r:.80} may not call this server: add it to allowed_origins"
                )


def _parse_host(host: str) -> str:
    """Return the name or address in a Host header, in lower case and without the port."""
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found else host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
