"""Tools for tests, made from plain functions."""

import asyncio

from sash.ports.tools import ToolSpec

ANY = {"type": "object"}


def tool(name, invoke, **options):
    """Return a tool that calls `invoke(arguments, context)`, a plain or an async function."""

    async def call(arguments, context):
        result = invoke(arguments, context)
        return await result if asyncio.iscoroutine(result) else result

    return ToolSpec(name, f"The tool {name}.", options.pop("input_schema", ANY), call, **options)
