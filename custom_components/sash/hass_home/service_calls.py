"""Calls the services of Home Assistant in the name of the user who asked."""

import asyncio
import logging
from collections.abc import Collection
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import Unauthorized

from sash.errors import ServiceFailed
from sash.values.continuations import TurnCaller

from .json_values import to_json_value
from .turn_contexts import make_context

_logger = logging.getLogger(__name__)


async def call_service(
    hass: HomeAssistant,
    service: str,
    data: dict[str, Any],
    entity_ids: Collection[str],
    *,
    caller: TurnCaller | None,
    turn_id: str | None,
    return_response: bool,
) -> dict[str, Any] | None:
    """Call a service and wait until it has finished.

    The logbook names the user, and the parent of the call's context is the turn. If the caller is cancelled,
    the call runs on: a script that is stopped half-way may leave a valve open.
    """
    context = await make_context(hass, caller, turn_id)
    domain, _, verb = service.partition(".")
    call = hass.async_create_task(
        hass.services.async_call(
            domain,
            verb,
            dict(data),
            blocking=True,
            context=context,
            target={"entity_id": list(entity_ids)} if entity_ids else None,
            return_response=return_response,
        ),
        f"sash calls {service}",
    )
    try:
        await asyncio.wait([call])
    except asyncio.CancelledError:
        call.add_done_callback(lambda call: _log_late_failure(service, call))
        raise
    if call.cancelled():
        raise ServiceFailed(f"{service} was stopped before it had finished")
    if (error := call.exception()) is not None:
        _log_failure(service, error)
        raise ServiceFailed(_explain(error, service, caller)) from error
    return to_json_value(call.result() or {}) if return_response else None


def _explain(error: BaseException, service: str, caller: TurnCaller | None) -> str:
    """Return the reason of a failure in words."""
    if isinstance(error, Unauthorized):
        name = (caller.user_name if caller else None) or "this user"
        return f"Home Assistant does not allow {name} to use {service}"
    return str(error) or type(error).__name__


def _log_failure(service: str, error: BaseException) -> None:
    _logger.warning("%s failed in Home Assistant: %s", service, str(error) or type(error).__name__)
    _logger.debug("%s failed", service, exc_info=error)


def _log_late_failure(service: str, call: asyncio.Task[Any]) -> None:
    """Log the failure of a call whose caller no longer waits."""
    if not call.cancelled() and (error := call.exception()) is not None:
        _log_failure(service, error)
