"""Keeps long work out of the event loop."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

MAX_INLINE_CHARS = 16 << 10


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` and return its result. Work on more than `MAX_INLINE_CHARS` runs in a thread.

    `size` is the length of the work's input. Short work runs at once, because a switch of threads costs more.
    """
    if size <= MAX_INLINE_CHARS:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
