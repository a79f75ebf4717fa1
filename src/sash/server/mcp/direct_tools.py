"""The MCP tools that read the home directly, without the agent. They come from the runtime's tool list."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sash.app.service import AgentService
from sash.errors import HomeUnavailable, InvalidInput
from sash.ports.tools import ToolSpec
from sash.server.mcp.tool import CallContext, Handler, Tool


def make_home_tools(service: AgentService, home_wait_s: float) -> Iterator[Tool]:
    """Yield the runtime's tools that may be called directly.

    A call waits up to `home_wait_s` for a home that is not connected, and is then tried once more.
    """
    for spec in service.runtime.direct_tools:
        yield Tool(
            spec.name,
            spec.name.replace("_", " ").capitalize(),
            spec.description,
            _make_handler(spec, home_wait_s),
            _add_session_id(spec) if spec.keeps_artifacts else {**spec.input_schema, "type": "object"},
            spec.output_schema,
            dict,
            is_read_only=True,
            is_idempotent=True,
        )


def _make_handler(spec: ToolSpec, home_wait_s: float) -> Handler:
    async def call_home_tool(context: CallContext, arguments: dict[str, Any]) -> Any:
        session_id = arguments.pop("session_id", None) if spec.keeps_artifacts else None
        if not isinstance(session_id, str | None):
            raise InvalidInput("session_id must be a string, the id of a session")
        call = partial(context.service.call_tool, context.caller, spec.name, arguments, session_id)
        try:
            return await call()
        except HomeUnavailable:
            await context.service.runtime.home_ready(timeout_s=home_wait_s)
            return await call()

    return call_home_tool


def _add_session_id(spec: ToolSpec) -> dict[str, Any]:
    """Return the tool's input schema with an optional `session_id`: in that session it stores images."""
    description = "The session in which to store an image. Only a call that draws an image needs it."
    session_id = {"type": "string", "description": description}
    properties = {**spec.input_schema.get("properties", {}), "session_id": session_id}
    return {**spec.input_schema, "type": "object", "properties": properties}
