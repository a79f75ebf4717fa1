"""Whether `sash serve` would start: where it would listen, and whom it would let in."""

import socket
from datetime import UTC, datetime
from errno import EADDRINUSE

from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE
from sash.app.settings import Settings, is_loopback
from sash.cli.doctor.finding import Finding
from sash.errors import SashError


def check_bind(settings: Settings) -> Finding:
    """Whether the server may listen where it is told to."""
    where = f"{settings.host}:{settings.port}"
    try:
        tokens = Tokens(settings.folder / TOKENS_FILE).list()
    except SashError as error:
        return Finding("server", "wrong", error.message)
    if not _is_address(settings.host):
        found = f"{settings.host!r} is no address: `sash serve` could not listen there"
        return Finding("server", "wrong", found, "listen at 127.0.0.1, or at an address of this machine")
    now = datetime.now(UTC)
    good = [token for token in tokens if token.expires_at is None or token.expires_at > now]
    if not is_loopback(settings.host) and not tokens:
        found = f"{where} can be reached by others and there is no token: `sash serve` would be refused"
        return Finding("server", "wrong", found, "make one with `sash token create`, or listen at 127.0.0.1")
    if tokens and not good:
        found = f"{where}, all {len(tokens)} tokens have expired: nobody would be let in"
        return Finding("server", "wrong", found, "make one with `sash token create`")
    who = f"{len(good)} tokens that are good" if good else "no token: everybody on this machine is let in"
    if problem := _cannot_listen(settings):
        found = f"{where}, {(problem.strerror or str(problem)).lower()}; {who}"
        if problem.errno != EADDRINUSE:
            return Finding("server", "wrong", found, "choose another with --host and --port")
        advice = "if it is not Sash that listens there, choose another with --port or SASH_PORT"
        return Finding("server", "note", found, advice)
    return Finding("server", "ok", f"{where}, {who}")


def _is_address(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False


def _cannot_listen(settings: Settings) -> OSError | None:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            return error
    return None
