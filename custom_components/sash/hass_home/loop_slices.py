"""Does long work on the event loop in short slices, so that Home Assistant does not wait."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

SLICE_S = 0.005


async def convert_in_slices[Item, Result](
    items: Iterable[Item], convert: Callable[[Item], Result]
) -> list[Result]:
    """Return the converted items. The event loop does other work after each slice of `SLICE_S` seconds."""
    results = []
    slice_end = monotonic() + SLICE_S
    for item in items:
        results.append(convert(item))
        if monotonic() > slice_end:
            await asyncio.sleep(0)
            slice_end = monotonic() + SLICE_S
    return results
