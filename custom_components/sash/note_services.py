"""The services for facts: remember, forget, and say who spoke."""

from typing import Any

from homeassistant.const import ATTR_CONFIG_ENTRY_ID
from homeassistant.core import ServiceCall, ServiceResponse
from homeassistant.exceptions import ServiceValidationError
from homeassistant.helpers.service import async_get_config_entry
from homeassistant.util.json import JsonValueType

from sash.values.continuations import Continuation, TurnCaller
from sash.values.sessions import Fact

from .const import DOMAIN
from .entry_data import SashConfigEntry, SashData
from .service_caller import ServiceCaller, find_caller, find_named_id, find_signed_in, find_user
from .service_targets import ATTR_CONTINUATION_ID, find_session, find_turn, list_entries
from .session_scope import HOUSE
from .turn_services import ATTR_TEXT

ATTR_ABOUT = "about"
ATTR_SHARED = "shared"


async def remember(call: ServiceCall) -> ServiceResponse:
    """Keep a fact, for the user or for the house."""
    caller = await find_caller(call)
    owner = HOUSE if call.data[ATTR_SHARED] else caller.owner
    # Each provider has notes of its own, so the call has to say which one is meant.
    entry: SashConfigEntry = async_get_config_entry(call.hass, DOMAIN, call.data.get(ATTR_CONFIG_ENTRY_ID))
    fact = await entry.runtime_data.runtime.remember(call.data[ATTR_TEXT], owner=owner)
    return {"fact": _describe_fact(fact, owner)}


async def forget(call: ServiceCall) -> ServiceResponse:
    """Drop a fact by its id, or all facts with these words: those of the user and those of the house."""
    caller, about = await find_caller(call), call.data[ATTR_ABOUT]
    dropped: list[JsonValueType] = []
    for entry in list_entries(call):
        # The house comes first: `forget` for a user drops facts of the house, too, without saying which.
        for owner in reversed(caller.owners):
            facts = await entry.runtime_data.runtime.forget(about, owner=owner)
            dropped += [_describe_fact(fact, owner) for fact in facts]
    return {"facts": dropped}


async def move_facts(call: ServiceCall) -> ServiceResponse:
    """Say who spoke a turn: the facts that it stated move to that user.

    Without the id of a turn, it is the newest turn of a conversation of the house that stated a fact. A user
    may take the facts of a turn of the house. Administrators and automations may name another user.
    """
    caller, named_id = await find_signed_in(call), find_named_id(call)
    target_id = caller.user_id if named_id is None else named_id
    if target_id is None:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="user_missing")
    if target_id != caller.user_id and caller.user_id is not None and not caller.is_admin:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="not_for_others")
    target = await find_user(call.hass, target_id)
    data, turn = await _find_spoken_turn(call, caller)
    named = TurnCaller(user_id=target.user_id, user_name=target.user_name)
    await data.runtime.name_caller(turn.id, named, owner=turn.owner)
    facts = await data.runtime.move_facts(turn.id, owner=turn.owner, to_owner=target.owner)
    return {"facts": [_describe_fact(fact, target.owner) for fact in facts]}


async def _find_spoken_turn(call: ServiceCall, caller: ServiceCaller) -> tuple[SashData, Continuation]:
    if ATTR_CONTINUATION_ID in call.data:
        data, result = await find_turn(call, caller)
        return data, result.continuation
    data, session = await find_session(call, ServiceCaller())
    turns = await data.runtime.list_turns(session.id, owner=session.owner)
    facts = await data.runtime.list_facts(owner=session.owner)
    stated = {fact.continuation_id for fact in facts}
    spoken = [turn for turn in turns if turn.id in stated]
    if not spoken:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="no_facts")
    return data, max(spoken, key=lambda turn: turn.id)


def _describe_fact(fact: Fact, owner: str) -> dict[str, Any]:
    return {"id": fact.id, "text": fact.text, ATTR_SHARED: owner == HOUSE}
