"""Turns that end with their caller: if a pipeline, a service call or a task is cancelled, so is its turn."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from homeassistant.core import HomeAssistant, callback

from sash.engine.runtime import Runtime
from sash.errors import ContinuationFinal, ContinuationNotFound, SashError
from sash.values.continuations import Continuation

_LOGGER = logging.getLogger(__name__)


async def begin_turn(
    hass: HomeAssistant, runtime: Runtime, beginning: Coroutine[Any, Any, Continuation]
) -> Continuation:
    """Return the turn that a call of the runtime begins.

    The runtime begins a turn even if its caller goes away meanwhile. Such a turn is cancelled.
    """
    task = hass.async_create_background_task(beginning, "begin a turn of sash", eager_start=True)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:

        async def cancel_when_begun() -> None:
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                await cancel_turn(runtime, task.result())

        hass.async_create_background_task(cancel_when_begun(), "cancel a turn of sash that begins")
        raise


@callback
def cancel_soon(hass: HomeAssistant, runtime: Runtime, turn: Continuation) -> None:
    """Cancel a turn in the background, because its caller is being cancelled and cannot wait."""
    hass.async_create_background_task(cancel_turn(runtime, turn), f"cancel turn {turn.id}")


async def cancel_turn(runtime: Runtime, turn: Continuation) -> None:
    """Cancel a turn whose caller has gone. A turn that has ended stays as it is."""
    try:
        await runtime.cancel(turn.id, owner=turn.owner, reason="the caller has gone")
    except ContinuationFinal, ContinuationNotFound:
        return
    except SashError as error:  # The entry is being unloaded, so that the turn is interrupted anyway.
        _LOGGER.info("turn %s was not cancelled: %s", turn.id, error.message)
