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


class Switch:
    """A tool that acts. `count` is the number of its calls."""

    def __init__(self):
        self.count = 0
        self.tool = tool("switch", self._act, action=True)

    def _act(self, arguments, context):
        self.count += 1
        return "done"
