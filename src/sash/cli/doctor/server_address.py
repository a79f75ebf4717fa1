"""Checks that `sash serve` could start: its address, and the tokens of its clients."""

import json
import socket
from datetime import UTC, datetime
from errno import EADDRINUSE
from http.client import HTTPConnection, HTTPException

from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE
from sash.app.settings import Settings, is_loopback
from sash.cli.doctor.finding import Finding
from sash.errors import SashError

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1000


def check_server_address(settings: Settings) -> Finding:
    """Check that the server could listen on its address, and that clients could get access."""
    address = f"{settings.host}:{settings.port}"
    stored = Tokens(settings.folder / TOKENS_FILE)
    try:
        tokens = stored.list()
    except SashError as error:
        return Finding("server", "wrong", error.message)
    if not _is_address(settings.host):
        found = f"{settings.host!r} is not an address: `sash serve` could not listen there"
        return Finding("server", "wrong", found, "listen on 127.0.0.1, or on an address of this machine")
    now = datetime.now(UTC)
    valid = [token for token in tokens if token.expires_at is None or token.expires_at > now]
    if not is_loopback(settings.host) and not tokens:
        found = (
            f"other machines can reach {address} and there is no token: `sash serve` would refuse to start"
        )
        advice = "create one with `sash token create`, or listen on 127.0.0.1"
        return Finding("server", "wrong", found, advice)
    if stored.needed and not valid:
        found = f"{address}, all tokens have expired or were revoked: no client could get in"
        return Finding("server", "wrong", found, "create one with `sash token create`")
    count = "1 valid token" if len(valid) == 1 else f"{len(valid)} valid tokens"
    access = count if valid else "no token: every local user may use the server"
    try:
        _bind_briefly(settings)
    except OSError as problem:
        found = f"{address}, {(problem.strerror or str(problem)).lower()}; {access}"
        if problem.errno == EADDRINUSE and _is_sash(settings):
            return Finding("server", "ok", f"Sash runs at {address}; {access}")
        if problem.errno != EADDRINUSE:
            return Finding("server", "wrong", found, "choose another address with --host and --port")
        advice = "another program listens there: choose another port with --port or SASH_PORT"
        return Finding("server", "note", found, advice)
    return Finding("server", "ok", f"{address}, {access}")


def _is_address(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False


def _is_sash(settings: Settings) -> bool:
    """Return True if a Sash server answers at the address of the settings."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    connection = HTTPConnection(host, settings.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        return set(json.loads(connection.getresponse().read(MAX_ANSWER_BYTES))) == {"status", "version"}
    except (OSError, HTTPException, ValueError, TypeError):
        return False
    finally:
        connection.close()


def _bind_briefly(settings: Settings) -> None:
    """Bind the address for a moment. Return the error if that fails, else None."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((settings.host, settings.port))
