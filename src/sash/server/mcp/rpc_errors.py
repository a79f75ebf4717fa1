"""Errors as JSON-RPC errors: the table from error codes to the protocol's codes."""

from collections.abc import Iterator
from contextlib import contextmanager

import mcp.types as t
from mcp.shared.exceptions import MCPError

from sash.engine.redaction import redact
from sash.errors import SashError

# Unlisted codes are INVALID_PARAMS: the client can fix its request.
RPC_CODE_BY_CODE = {
    "store_unavailable": t.INTERNAL_ERROR,
    "shutting_down": t.INTERNAL_ERROR,
    "home_unavailable": t.INTERNAL_ERROR,
    "home_unauthorized": t.INTERNAL_ERROR,
    "forbidden": t.INVALID_REQUEST,
    "unauthorized": t.INVALID_REQUEST,
}


@contextmanager
def raise_as_rpc_error(**data: str) -> Iterator[None]:
    """Raise `MCPError` in place of a `SashError` within the context. `data` is added to the error."""
    try:
        yield
    except SashError as error:
        rpc_code = RPC_CODE_BY_CODE.get(error.code, t.INVALID_PARAMS)
        raise MCPError(rpc_code, redact(error.message), {"code": error.code, **data}) from error
