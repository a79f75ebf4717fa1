"""Turns of an earlier run that a person still expects: open questions, and answers that were promised.

A reload or a restart ends all pipelines and all timers. The turns are in the database, so a question is asked
again by notification, and an agent with early answers finishes what it was working on.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers.start import async_at_started
from homeassistant.util import dt as dt_util

from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import SashError
from sash.values.steps import ApprovalRequested, Interrupted

from .agent import Agent
from .entry_data import SashConfigEntry, SashData
from .session_scope import SessionPlace, find_agent_id
from .speaker import recall_speaker
from .store_counts import TurnKey, list_paused_turns
from .turn_signal import find_error_code

# Seconds to wait for the home, which a turn may need.
HOME_WAIT_S = 60.0
# An older turn is not continued by itself: the person has asked again, or does not expect it any more.
MAX_AGE = timedelta(minutes=10)

_LOGGER = logging.getLogger(__name__)


@callback
def recover_turns(hass: HomeAssistant, entry: SashConfigEntry) -> Callable[[], None]:
    """Recover the turns of an earlier run when Home Assistant has started. Return a function that stops."""

    async def recover(_: HomeAssistant) -> None:
        data = entry.runtime_data
        try:
            keys = await list_paused_turns(data.store)
        except SashError as error:
            _LOGGER.warning("the turns of an earlier run were not recovered: %s", error.message)
            return
        for key in keys:
            try:
                await _recover(hass, data, key)
            except SashError as error:
                _LOGGER.warning("turn %s was not recovered: %s", key.id, error.message)

    @callback
    def start(_: HomeAssistant) -> None:
        entry.async_create_background_task(hass, recover(hass), f"recover the turns of {entry.title}")

    return async_at_started(hass, start)


async def _recover(hass: HomeAssistant, data: SashData, key: TurnKey) -> None:
    result = await data.runtime.await_continuation(key.id, owner=key.owner, timeout_s=0)
    turn = result.continuation
    session = await data.runtime.get_session(turn.session_id, owner=key.owner)
    agent = data.agents.get(find_agent_id(session) or "")
    if agent is None:
        return
    place, speaker = SessionPlace(key.owner, session.name), recall_speaker(hass, turn.request.caller)
    language = turn.request.language or hass.config.language
    if result.waiting_calls:
        wait_s = agent.options.approval_wait_s - (dt_util.utcnow() - _find_asked_at(result)).total_seconds()
        data.late_turns.ask(result, place, speaker, language, max(0.0, wait_s))
    elif _is_promised(result, agent) and _count_stops(result) > 1:
        await data.late_turns.give_up(turn, speaker, language)
    elif _is_promised(result, agent):
        await data.runtime.home_ready(timeout_s=HOME_WAIT_S)
        if not session.is_one_question:  # The options may have changed, and old ones may allow more.
            await agent.refresh(session)
        await data.runtime.resume(turn.id, owner=turn.owner)
        data.late_turns.follow(turn, place, speaker, language)


def _find_asked_at(result: ContinuationResult) -> datetime:
    asked = [step.ts for step in result.steps if isinstance(step.body, ApprovalRequested)]
    return max(asked, default=result.continuation.updated_at)


def _is_promised(result: ContinuationResult, agent: Agent) -> bool:
    """Return True if stops, and no error, have interrupted a turn of an agent that gives early answers."""
    return (
        result.status == "interrupted"
        and agent.options.early_wait_s is not None
        and find_error_code(result) is None
        and dt_util.utcnow() - result.continuation.created_at < MAX_AGE
    )


def _count_stops(result: ContinuationResult) -> int:
    """Return how often a turn was interrupted. It is continued once: it may be the reason for the stops."""
    return sum(isinstance(step.body, Interrupted) for step in result.steps)
