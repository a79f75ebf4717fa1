"""The services for turns: ask, cancel, resume, approve and undo."""

import asyncio
from typing import Any

from homeassistant.core import ServiceCall, ServiceResponse, callback
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError, TemplateError

from sash.app.approval_question import write_question
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import ContinuationFinal
from sash.intents.undo_sentence import choose_undo_sentence
from sash.values.requests import SendMessage
from sash.values.sessions import Session

from .agent import Agent, make_caller
from .caller_turns import cancel_soon
from .const import DOMAIN
from .entry_data import SashData
from .late_turns import answer_calls
from .llm_contexts import make_llm_context
from .sash_events import describe_action
from .service_caller import find_caller
from .service_targets import (
    ATTR_AGENT,
    ATTR_CONTINUATION_ID,
    ATTR_CONVERSATION_ID,
    ATTR_SESSION_ID,
    check_device,
    find_agent,
    find_newest_action,
    find_session,
    find_turn,
    make_speaker,
    names_session,
)
from .session_scope import SessionPlace, Speaker, find_agent_id
from .speaker import recall_speaker
from .turn_errors import describe_failure
from .turn_signal import AGENT_KEY

ATTR_APPROVED = "approved"
ATTR_CALL_ID = "call_id"
ATTR_LANGUAGE = "language"
ATTR_TEXT = "text"


async def ask(call: ServiceCall) -> ServiceResponse:
    """Send a message to an agent, and return its answer. If the call is cancelled, so is the turn."""
    caller, (data, agent) = await find_caller(call), find_agent(call)
    check_device(call)
    speaker = make_speaker(call, caller.user_id, caller.user_name)
    language = call.data.get(ATTR_LANGUAGE) or call.hass.config.language
    place = agent.find_place(speaker)
    data.late_turns.withdraw(place)
    try:
        turn = await agent.send(
            speaker,
            call.data[ATTR_TEXT],
            language=language,
            llm_context=make_llm_context(call.context, language, speaker.device_id),
            hints={},
        )
    except TemplateError as error:
        raise ServiceValidationError(
            translation_domain=DOMAIN,
            translation_key="wrong_prompt",
            translation_placeholders={ATTR_AGENT: agent.title, "message": str(error)},
        ) from error
    try:
        result = await data.runtime.await_continuation(turn.id, owner=turn.owner)
    except asyncio.CancelledError:
        cancel_soon(call.hass, data.runtime, turn)
        raise
    _ask_later(call, data, agent, result, place, speaker)
    return {ATTR_CONVERSATION_ID: speaker.conversation_id, **await _describe_turn(call, result)}


async def cancel(call: ServiceCall) -> ServiceResponse:
    """Cancel a turn permanently. A turn that has ended stays as it is."""
    data, result = await find_turn(call, await find_caller(call))
    turn = result.continuation
    try:
        await data.runtime.cancel(turn.id, owner=turn.owner)
    except ContinuationFinal:
        return {ATTR_CONTINUATION_ID: turn.id, "status": "already_final"}
    return {ATTR_CONTINUATION_ID: turn.id, "status": "cancelled"}


async def resume(call: ServiceCall) -> ServiceResponse:
    """Continue an interrupted turn, and return its answer."""
    data, result = await find_turn(call, await find_caller(call))
    turn = result.continuation
    session = await _refresh(data, await data.runtime.get_session(turn.session_id, owner=turn.owner))
    await data.runtime.resume(turn.id, owner=turn.owner)
    result = await data.runtime.await_continuation(turn.id, owner=turn.owner)
    speaker = recall_speaker(call.hass, turn.request.caller)
    _ask_later(call, data, _find_agent(data, session), result, _find_place(session), speaker)
    return await _describe_turn(call, result)


async def approve(call: ServiceCall) -> ServiceResponse:
    """Approve or deny what a turn asks for, and return its answer.

    Without a `call_id` the answer is for all calls that wait. If a person was asked by voice or notification,
    that question ends, and the result is told there, too.
    """
    data, result = await find_turn(call, await find_caller(call))
    turn, approved, call_id = result.continuation, call.data[ATTR_APPROVED], call.data.get(ATTR_CALL_ID)
    if not result.waiting_calls:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="nothing_waits")
    await _refresh(data, await data.runtime.get_session(turn.session_id, owner=turn.owner))
    is_known = call_id is None or any(waiting.call_id == call_id for waiting in result.waiting_calls)
    if not is_known or not await data.late_turns.answer(turn.id, approved, call_id):
        await answer_calls(data.runtime, turn, approved, call_id)
    return await _describe_turn(call, await data.runtime.await_continuation(turn.id, owner=turn.owner))


async def undo(call: ServiceCall) -> ServiceResponse:
    """Undo the last action of a session, and return the answer.

    Without a session it is the one with the newest action that the caller reaches. The undo is a turn of that
    session, so its policy and its approvals apply, and it drops an open question as the spoken sentence does.
    """
    caller = await find_caller(call)
    if names_session(call):
        data, session = await find_session(call, caller)
    else:
        data, action = await find_newest_action(call, caller)
        session = await data.runtime.get_session(action.session_id, owner=action.owner)
    session = await _refresh(data, session)
    language, sentence = choose_undo_sentence(call.data.get(ATTR_LANGUAGE), call.hass.config.language)
    speaker = make_speaker(call, caller.user_id, caller.user_name)
    sent = SendMessage(
        message=sentence,
        language=language,
        caller=make_caller(speaker),
        metadata={AGENT_KEY: find_agent_id(session)},
        busy="enqueue",
    )
    place = _find_place(session)
    data.late_turns.withdraw(place)
    turn = await data.runtime.reply(session.id, sent, owner=session.owner)
    result = await data.runtime.await_continuation(turn.id, owner=turn.owner)
    _ask_later(call, data, _find_agent(data, session), result, place, speaker)
    return await _describe_turn(call, result)


@callback
def _ask_later(
    call: ServiceCall,
    data: SashData,
    agent: Agent | None,
    result: ContinuationResult,
    place: SessionPlace,
    speaker: Speaker,
) -> None:
    """Let a notification ask for the approvals of a turn if no answer comes before."""
    if agent is not None and result.waiting_calls:
        language = result.continuation.request.language or call.hass.config.language
        data.late_turns.ask(result, place, speaker, language, agent.options.approval_wait_s)


def _find_place(session: Session) -> SessionPlace:
    return SessionPlace(session.owner, session.name)


def _find_agent(data: SashData, session: Session) -> Agent | None:
    return data.agents.get(find_agent_id(session) or "")


async def _refresh(data: SashData, session: Session) -> Session:
    """Return a session with the present options of its agent, because old ones may allow more.

    A session for one question has the options of the moment in which it was asked.
    """
    if session.is_one_question:
        return session
    agent = _find_agent(data, session)
    if agent is None:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="agent_removed")
    return await agent.refresh(session)


async def _describe_turn(call: ServiceCall, result: ContinuationResult) -> dict[str, Any]:
    """Return the answer of a turn, or what it asks. Raise `HomeAssistantError` if it has no answer."""
    turn, waiting = result.continuation, result.waiting_calls
    if result.status != "completed" and not waiting:
        message = await describe_failure(call.hass, result, call.hass.config.language)
        raise HomeAssistantError(
            translation_domain=DOMAIN,
            translation_key="turn_failed",
            translation_placeholders={"message": message, ATTR_CONTINUATION_ID: turn.id},
        )
    languages = (turn.request.language, call.hass.config.language)
    return {
        ATTR_CONTINUATION_ID: turn.id,
        ATTR_SESSION_ID: turn.session_id,
        "status": turn.status,
        "answer": None if turn.response is None else turn.response.final_message,
        "actions": [] if turn.response is None else [describe_action(each) for each in turn.response.actions],
        "waiting_calls": [
            {ATTR_CALL_ID: each.call_id, "question": write_question([each], *languages)} for each in waiting
        ],
    }
