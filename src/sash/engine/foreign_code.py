"""Calls into code that is not ours: tools, models, intents."""

import asyncio
from inspect import isawaitable
from typing import Any


async def run_foreign(call: Any) -> Any:
    """Await a foreign call, or return its value if it is not awaitable.

    A `CancelledError` that the call raises by itself becomes a RuntimeError, so that it does not look like a
    cancellation of our own task. All other exceptions are raised unchanged.
    """
    try:
        return await call if isawaitable(call) else call
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise RuntimeError(f"the call was ended by {type(error).__name__}") from error
