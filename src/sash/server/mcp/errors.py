"""Errors as JSON-RPC's: the one table from our codes to those of the protocol."""

from collections.abc import Iterator
from contextlib import contextmanager

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.engine.redaction import redact
from sash.errors import SashError

# What the caller cannot mend by asking otherwise.
_INTERNAL = frozenset({"store_unavailable", "shutting_down", "home_unavailable", "home_unauthorized"})
_NOT_ALLOWED = frozenset({"forbidden", "unauthorized"})


@contextmanager
def protocol_error(**data: str) -> Iterator[None]:
    """Let one of our errors be one of the protocol, for requests that have no result to put it in."""
    try:
        yield
    except SashError as error:
        raise MCPError(_code(error.code), redact(error.message), {"code": error.code, **data}) from error


def _code(code: str) -> int:
    if code in _INTERNAL:
        return t.INTERNAL_ERROR
    return t.INVALID_REQUEST if code in _NOT_ALLOWED else t.INVALID_PARAMS
