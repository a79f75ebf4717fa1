"""Events of Home Assistant that tell of turns and actions. They never have the words of a conversation."""

import re
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers import entity_registry as er

from sash.engine.turn.continuation_result import ContinuationResult
from sash.values.continuations import Action
from sash.values.stats import NO_STATS, Stats, summary

from .const import DOMAIN
from .turn_signal import find_agent_id, find_error_code, follow_turns, is_recorded

EVENT_TURN_FINISHED = f"{DOMAIN}_turn_finished"
EVENT_ACTION = f"{DOMAIN}_action"

# A model writes the names of services. Other text than a name does not belong into an event.
_SERVICE_NAME = re.compile(r"[a-z0-9_]{1,64}\.[a-z0-9_]{1,64}")
_ENTITY_ID = _SERVICE_NAME


@callback
def fire_turn_events(hass: HomeAssistant, entry: ConfigEntry) -> CALLBACK_TYPE:
    """Fire an event for each turn that ends, and for each of its actions. Return a function that stops."""

    @callback
    def fire(result: ContinuationResult) -> None:
        if not result.continuation.is_final or is_recorded(result):
            return
        event = describe_turn(hass, entry, result)
        for action in event["actions"]:
            place = {key: event[key] for key in _PLACE_KEYS}
            hass.bus.async_fire(EVENT_ACTION, {**place, **action})
        hass.bus.async_fire(EVENT_TURN_FINISHED, event)

    return follow_turns(hass, entry, fire)


_PLACE_KEYS = ("config_entry_id", "agent_id", "session_id", "continuation_id", "device_id")


@callback
def describe_turn(hass: HomeAssistant, entry: ConfigEntry, result: ContinuationResult) -> dict[str, Any]:
    """Return the data of the event for a turn that has ended. `agent_id` is the entity of the agent."""
    turn = result.continuation
    stats, agent_id, caller = turn.stats or NO_STATS, find_agent_id(result), turn.request.caller
    return {
        "config_entry_id": entry.entry_id,
        "agent_id": None if agent_id is None else find_agent_entity(hass, agent_id),
        "session_id": turn.session_id,
        "continuation_id": turn.id,
        "device_id": None if caller is None else caller.device_id,
        "status": turn.status,
        "way": "local" if stats.local_turns else "model",
        "duration_ms": stats.duration_ms,
        "tokens": stats.total_tokens,
        "cached_share": summary(stats)["cached_share"],
        "cost_usd": find_cost(stats),
        "actions": [describe_action(action) for action in turn.response.actions] if turn.response else [],
        "error": find_error_code(result),
    }


def find_cost(stats: Stats) -> float | None:
    """Return the dollars of turns, or None if the price of a model call is unknown."""
    return None if stats.unpriced_calls else round(stats.cost_usd, 6)


def describe_action(action: Action) -> dict[str, Any]:
    """Return an action without its arguments, which may have words of the user."""
    service = str(action.arguments.get("service") or "")
    entities = action.after or action.before
    return {
        "service": service if _SERVICE_NAME.fullmatch(service) else action.name,
        "entity_ids": sorted(key for key in entities if _ENTITY_ID.fullmatch(key)),
        "outcome": action.outcome,
        "verified": action.verified,
    }


@callback
def find_agent_entity(hass: HomeAssistant, agent_id: str) -> str | None:
    """Return the entity of an agent or an AI task, by the id of its subentry."""
    registry = er.async_get(hass)
    found = (registry.async_get_entity_id(domain, DOMAIN, agent_id) for domain in ("conversation", "ai_task"))
    return next((entity_id for entity_id in found if entity_id is not None), None)
