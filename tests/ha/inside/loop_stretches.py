"""Measures how long the event loop works without a pause."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class LoopStretches:
    """The longest stretch in seconds. It is CPU time of the loop's thread, so that a busy machine adds nothing."""

    longest_s: float = 0.0


@asynccontextmanager
async def measure_stretches() -> AsyncIterator[LoopStretches]:
    """Measure while the block runs."""
    stretches = LoopStretches()

    async def tick() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            stretches.longest_s = max(stretches.longest_s, now - before)
            before = now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        yield stretches
        await asyncio.sleep(0)
    finally:
        ticker.cancel()
