"""A catalog with a price that a few turns reach, and answers and tools that are paid for."""

import asyncio

from sash.models.catalog import Catalog, ModelFacts
from sash.ports.model import Answer, Usage
from sash.ports.tools import ToolSpec
from sash.values.sessions import ModelConfig

# A dollar for a thousand tokens, so that a few turns reach a limit.
DEAR = Catalog({"dear": ModelFacts(input_usd=1000, output_usd=2000, cached_usd=100)})
USED = Usage(input_tokens=1000, output_tokens=100, cached_tokens=500, reasoning_tokens=40, model="dear")
DEAR_MODEL = ModelConfig(name="dear")
# A budget that one call can be made with, and no second one after it.
ONE_CALL = 1.3
PRICE = 0.5 + 0.05 + 0.2


def saying(text, usage=USED):
    """Return an answer with its usage."""
    return Answer(text, usage=usage)


async def look(arguments, context):
    return "seen"


LOOK = ToolSpec("look", "Look.", {"type": "object"}, look, safety="idempotent")


def a_tool_that_waits():
    """Return a tool, an event that is set when it is called, and an event that lets it continue."""
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(arguments, context):
        started.set()
        await go_on.wait()
        return "waited"

    tool = ToolSpec("wait", "Wait.", {"type": "object"}, wait, safety="idempotent")
    return tool, started, go_on
