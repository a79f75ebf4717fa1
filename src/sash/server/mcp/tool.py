"""A tool that MCP clients can call, independent of the protocol."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from sash.app.access import Caller
from sash.app.service import AgentService

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallContext:
    """The caller of a tool, and the service to call."""

    service: AgentService
    caller: Caller


Handler = Callable[[CallContext, Any], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its description, schemas, handler, and the hints that MCP shows to clients.

    `parse_arguments` raises `InvalidInput` for wrong arguments. The handler of a tool that `waits_for_turn`
    returns a continuation id; the server then waits for that turn.
    """

    name: str
    title: str
    description: str
    handler: Handler
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    parse_arguments: Callable[[dict[str, Any]], Any]
    waits_for_turn: bool = False
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    is_open_world: bool = False


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a short change to its end, even if the client disconnects meanwhile."""
    return await asyncio.shield(asyncio.create_task(work))
