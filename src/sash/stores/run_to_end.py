"""Work that must not stop halfway."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end. A cancellation of the caller is raised after the end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
