"""The signal of Home Assistant that tells of the turns of a config entry."""

from collections.abc import Callable

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant
from homeassistant.helpers.dispatcher import async_dispatcher_connect, async_dispatcher_send
from homeassistant.util.signal_type import SignalTypeFormat

from sash.engine.turn.continuation_result import ContinuationResult
from sash.values.steps import Interrupted, Recorded

from .const import DOMAIN

# A turn begins or continues to run, pauses, or ends.
TURN_CHANGED = SignalTypeFormat[ContinuationResult](f"{DOMAIN}_turn_{{}}")

# The metadata of a turn have the id of its agent, which is the id of a subentry.
AGENT_KEY = "agent"


def make_turn_signal(hass: HomeAssistant, entry: ConfigEntry) -> Callable[[ContinuationResult], None]:
    """Return a function that sends the signal of a config entry, for `Runtime(on_turn_change=…)`."""
    signal = TURN_CHANGED.format(entry.entry_id)
    return lambda result: async_dispatcher_send(hass, signal, result)


def follow_turns(
    hass: HomeAssistant, entry: ConfigEntry, listener: Callable[[ContinuationResult], None]
) -> CALLBACK_TYPE:
    """Call a listener for every change of a turn. Return a function that stops this."""
    return async_dispatcher_connect(hass, TURN_CHANGED.format(entry.entry_id), listener)


def find_agent_id(result: ContinuationResult) -> str | None:
    """Return the id of the agent that has answered a turn, or None if it was another agent."""
    agent_id = result.continuation.request.metadata.get(AGENT_KEY)
    return agent_id if isinstance(agent_id, str) and not is_recorded(result) else None


def find_error_code(result: ContinuationResult) -> str | None:
    """Return the code of the error that ended or interrupted a turn, or None."""
    if result.continuation.error is not None:
        return result.continuation.error.code
    last = result.steps[-1].body if result.steps else None
    return last.code if result.status == "interrupted" and isinstance(last, Interrupted) else None


def is_recorded(result: ContinuationResult) -> bool:
    """Return True for a turn that another agent has answered."""
    return any(isinstance(step.body, Recorded) for step in result.steps)
