"""What is begun is done, also for who has gone away meanwhile."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do something short that must not stop half way when its caller is cancelled."""
    return await asyncio.shield(asyncio.create_task(work))
