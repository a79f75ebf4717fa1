"""The services for sessions and what happened in them: reset, export, search and explain."""

from itertools import zip_longest
from typing import Any

from homeassistant.const import ATTR_DEVICE_ID, ATTR_ENTITY_ID
from homeassistant.core import ServiceCall, ServiceResponse
from homeassistant.util.json import JsonValueType

from sash.ports.store import StoredMessage

from .service_caller import ATTR_USER_ID, find_caller
from .service_targets import (
    ATTR_CONTINUATION_ID,
    ATTR_SESSION_ID,
    find_newest_action,
    find_session,
    list_entries,
    names_session,
)
from .session_scope import HOUSE

ATTR_LIMIT = "limit"
ATTR_QUERY = "query"


async def reset_conversation(call: ServiceCall) -> ServiceResponse:
    """Empty the window of a session. The transcript and the facts stay."""
    data, session = await find_session(call, await find_caller(call))
    await data.runtime.reset_session(session.id, owner=session.owner)
    return {ATTR_SESSION_ID: session.id}


async def export_conversation(call: ServiceCall) -> ServiceResponse:
    """Return a whole session, in the format that Sash can import."""
    data, session = await find_session(call, await find_caller(call))
    return await data.runtime.export_session(session.id, owner=session.owner)


async def search(call: ServiceCall) -> ServiceResponse:
    """Find messages by their words: in one session, or in all sessions that the caller reaches.

    Each owner of each provider has its own order. The best messages of all come first, then the second best.
    """
    caller, query, limit = await find_caller(call), call.data[ATTR_QUERY], call.data[ATTR_LIMIT]
    ranked: list[list[dict[str, Any]]] = []
    if names_session(call):
        data, session = await find_session(call, caller)
        messages = await data.runtime.search(query, owner=session.owner, session_id=session.id, limit=limit)
        ranked.append([_describe_message(message, session.owner) for message in messages])
    else:
        for entry in list_entries(call):
            for owner in caller.owners:
                messages = await entry.runtime_data.runtime.search(query, owner=owner, limit=limit)
                ranked.append([_describe_message(message, owner) for message in messages])
    found: list[JsonValueType] = [
        message for of_one_rank in zip_longest(*ranked) for message in of_one_rank if message is not None
    ]
    return {"messages": found[:limit]}


async def explain(call: ServiceCall) -> ServiceResponse:
    """Return the sentence that led to an action: to the newest one, or to the newest one on an entity."""
    _, found = await find_newest_action(call, await find_caller(call), call.data.get(ATTR_ENTITY_ID))
    return {
        "sentence": found.sentence,
        "asked_at": found.asked_at.isoformat(),
        "acted_at": found.acted_at.isoformat(),
        ATTR_USER_ID: None if found.caller is None else found.caller.user_id,
        ATTR_DEVICE_ID: None if found.caller is None else found.caller.device_id,
        ATTR_SESSION_ID: found.session_id,
        ATTR_CONTINUATION_ID: found.continuation_id,
        "way": found.way,
        "service": found.service or found.tool,
        "entity_ids": list(found.entity_ids),
        "outcome": found.outcome,
        "verified": found.verified,
        "allowed_by": found.allowed_by,
        "approved": found.approved,
    }


def _describe_message(stored: StoredMessage, owner: str) -> dict[str, Any]:
    message = stored.message
    return {
        "role": message.role,
        "text": message.text,
        "time": message.timestamp.isoformat(),
        ATTR_SESSION_ID: stored.session_id,
        ATTR_CONTINUATION_ID: stored.continuation_id,
        "shared": owner == HOUSE,
    }
