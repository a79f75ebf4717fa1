"""Finds the agent, the session or the turn that a service call is about, in all loaded config entries."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from homeassistant.const import ATTR_CONFIG_ENTRY_ID, ATTR_DEVICE_ID
from homeassistant.core import HomeAssistant, ServiceCall, callback
from homeassistant.exceptions import ServiceValidationError
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.service import async_get_config_entry
from homeassistant.util.ulid import ulid_now

from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import ContinuationNotFound, SessionNotFound
from sash.values.action_explanation import ActionExplanation
from sash.values.sessions import Session

from .agent import Agent
from .const import DOMAIN
from .entry_data import SashConfigEntry, SashData
from .service_caller import ServiceCaller
from .session_scope import Speaker, find_user_id
from .speaker import locate_speaker

ATTR_AGENT = "agent"
ATTR_AREA = "area"
ATTR_CONTINUATION_ID = "continuation_id"
ATTR_CONVERSATION_ID = "conversation_id"
ATTR_SESSION_ID = "session_id"
# One of these says which session of an agent is meant.
_PLACES = (ATTR_AGENT, ATTR_CONVERSATION_ID, ATTR_DEVICE_ID, ATTR_AREA)


class FoundAgent(NamedTuple):
    """An agent with the running parts of its config entry."""

    data: SashData
    agent: Agent


class FoundSession(NamedTuple):
    """A session with the running parts of its config entry."""

    data: SashData
    session: Session


class FoundTurn(NamedTuple):
    """A turn with the running parts of its config entry."""

    data: SashData
    result: ContinuationResult


@callback
def list_entries(call: ServiceCall) -> list[SashConfigEntry]:
    """Return the config entry that a call names, or else all loaded ones. Raise if there is none."""
    entry_id: str | None = call.data.get(ATTR_CONFIG_ENTRY_ID)
    entries: list[SashConfigEntry] = call.hass.config_entries.async_loaded_entries(DOMAIN)
    if entry_id is None and entries:
        return entries
    return [async_get_config_entry(call.hass, DOMAIN, entry_id)]


@callback
def find_agent(call: ServiceCall) -> FoundAgent:
    """Return the agent that a call names by its entity, or the only one. Raise if there are several."""
    entity_id: str | None = call.data.get(ATTR_AGENT)
    found = [
        FoundAgent(entry.runtime_data, agent)
        for entry in list_entries(call)
        for agent in entry.runtime_data.agents.values()
    ]
    if entity_id is not None:
        registered = er.async_get(call.hass).async_get(entity_id)
        unique_id = registered.unique_id if registered and registered.platform == DOMAIN else None
        found = [each for each in found if each.agent.id == unique_id]
    if len(found) == 1:
        return found[0]
    if entity_id is not None:
        raise ServiceValidationError(
            translation_domain=DOMAIN,
            translation_key="agent_unknown",
            translation_placeholders={ATTR_AGENT: entity_id},
        )
    key = "agent_ambiguous" if found else "no_agent"
    raise ServiceValidationError(translation_domain=DOMAIN, translation_key=key)


@callback
def make_speaker(call: ServiceCall, user_id: str | None, user_name: str | None = None) -> Speaker:
    """Return the origin of a message that a call sends. Without a conversation, it begins a new one."""
    speaker = locate_speaker(
        call.hass,
        call.data.get(ATTR_CONVERSATION_ID) or ulid_now(),
        user_id=user_id,
        user_name=user_name,
        device_id=call.data.get(ATTR_DEVICE_ID),
    )
    if not (name := call.data.get(ATTR_AREA)):
        return speaker
    area = _find_area(call.hass, name)
    return replace(speaker, area_id=area.id, area_name=area.name)


@callback
def check_device(call: ServiceCall) -> None:
    """Raise `ServiceValidationError` if a call names a device that does not exist."""
    device_id = call.data.get(ATTR_DEVICE_ID)
    if device_id is not None and dr.async_get(call.hass).async_get(device_id) is None:
        raise ServiceValidationError(
            translation_domain=DOMAIN,
            translation_key="device_unknown",
            translation_placeholders={ATTR_DEVICE_ID: device_id},
        )


@callback
def _find_area(hass: HomeAssistant, name: str) -> ar.AreaEntry:
    areas = ar.async_get(hass)
    area = areas.async_get_area(name) or areas.async_get_area_by_name(name)
    if area is None:
        raise ServiceValidationError(
            translation_domain=DOMAIN,
            translation_key="area_unknown",
            translation_placeholders={ATTR_AREA: name},
        )
    return area


async def find_session(call: ServiceCall, caller: ServiceCaller) -> FoundSession:
    """Return the session that a call is about: by its id, or by the agent and the place.

    A session of another user is not found, in the same words as a session that does not exist.
    """
    if (session_id := call.data.get(ATTR_SESSION_ID)) is not None:
        return FoundSession(*await _find_record(call, caller, session_id, _read_session))
    data, agent = find_agent(call)
    for owner in caller.owners:
        place = agent.find_place(make_speaker(call, find_user_id(owner)))
        if place.name is None:
            break  # an agent without memory has no sessions to find
        named = await data.runtime.find_session(place.name, owner=place.owner)
        if named is not None:
            return FoundSession(data, named)
    raise ServiceValidationError(translation_domain=DOMAIN, translation_key="no_conversation")


def names_session(call: ServiceCall) -> bool:
    """Return True if a call says which session it is about."""
    return ATTR_SESSION_ID in call.data or any(key in call.data for key in _PLACES)


async def find_turn(call: ServiceCall, caller: ServiceCaller) -> FoundTurn:
    """Return the turn that a call names. A turn of another user is not found, as if it did not exist."""
    return FoundTurn(*await _find_record(call, caller, call.data[ATTR_CONTINUATION_ID], _read_turn))


async def _find_record[Record](
    call: ServiceCall,
    caller: ServiceCaller,
    record_id: str,
    read: Callable[[Runtime, str, str], Awaitable[Record]],
) -> tuple[SashData, Record]:
    """Return the record that `read` finds for one of the caller's owners. Raise if there is none."""
    for entry in list_entries(call):
        for owner in caller.owners:
            with suppress(SessionNotFound, ContinuationNotFound):
                return entry.runtime_data, await read(entry.runtime_data.runtime, record_id, owner)
    raise ServiceValidationError(
        translation_domain=DOMAIN,
        translation_key="not_found",
        translation_placeholders={"id": record_id},
    )


async def _read_session(runtime: Runtime, session_id: str, owner: str) -> Session:
    return await runtime.get_session(session_id, owner=owner)


async def _read_turn(runtime: Runtime, turn_id: str, owner: str) -> ContinuationResult:
    return await runtime.await_continuation(turn_id, owner=owner, timeout_s=0)


async def find_newest_action(
    call: ServiceCall, caller: ServiceCaller, entity_id: str | None = None
) -> tuple[SashData, ActionExplanation]:
    """Return the newest action that the caller reaches, in all config entries. Raise if there is none."""
    found: list[tuple[SashData, ActionExplanation]] = []
    for entry in list_entries(call):
        runtime = entry.runtime_data.runtime
        explained = await runtime.explain_action(owner=caller.owner, entity_id=entity_id)
        if explained is not None:
            found.append((entry.runtime_data, explained))
    if not found:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="no_action")
    return max(found, key=lambda each: each[1].acted_at)
