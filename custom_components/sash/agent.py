"""One conversation agent: it keeps its sessions equal to its options, and starts turns in them."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from homeassistant.config_entries import ConfigSubentry
from homeassistant.core import HomeAssistant
from homeassistant.helpers.llm import LLMContext
from homeassistant.helpers.template import Template
from homeassistant.util import dt as dt_util

from sash.engine.nested_turns import check_not_nested
from sash.engine.runtime import Runtime
from sash.values.continuations import Continuation, TurnCaller
from sash.values.requests import SendMessage, StartSession, UpdateSession
from sash.values.sessions import Session, WindowLimits

from .agent_options import read_options
from .caller_turns import begin_turn
from .llm_api_tools import LlmApiTools
from .prompt_template import render_prompt
from .session_scope import AGENT_ID, SessionPlace, Speaker, find_session_place
from .turn_signal import AGENT_KEY

# Seconds to wait for the home after a start or a reload. Without it, a command would go to the model.
HOME_WAIT_S = 5.0
# Why a conversation ends that was not used for long.
IDLE = "the conversation was not used for many days"


class Agent:
    """A conversation agent. `id` is the id of its subentry."""

    def __init__(
        self, hass: HomeAssistant, runtime: Runtime, subentry: ConfigSubentry, llm_apis: LlmApiTools
    ) -> None:
        self.id = subentry.subentry_id
        self.title = subentry.title
        self.options = read_options(subentry)
        self._hass = hass
        self._runtime = runtime
        self._llm_apis = llm_apis
        self._template = Template(self.options.prompt, hass) if self.options.prompt else None

    def find_place(self, speaker: Speaker) -> SessionPlace:
        """Return the session that a message of this speaker belongs to."""
        return find_session_place(self.id, self.options.scope, speaker)

    async def send(
        self,
        speaker: Speaker,
        text: str,
        *,
        language: str | None,
        llm_context: LLMContext,
        hints: Mapping[str, Any],
    ) -> Continuation:
        """Start a turn, or let the message answer an open question. Raise `SashError` or `TemplateError`."""
        place = self.find_place(speaker)
        sent = SendMessage(
            message=text,
            area=speaker.area_name,
            language=language,
            planner_hints=dict(hints) or None,
            # Two people may share a session: the second one waits for the answer to the first one.
            busy="enqueue",
        )
        sent = await self.complete(sent, speaker, llm_context)
        instructions = self.write_instructions(speaker, llm_context)
        if place.name is None:
            check_not_nested()
            session = await self.start(place.owner, StartSession(), instructions, is_one_question=True)
            return await self._begin(self._runtime.send(session.id, sent, owner=place.owner))
        session = await self.keep_equal(await self._open(place, instructions), instructions)
        check_not_nested(session.id)
        return await self._begin(
            self._runtime.reply(
                session.id, sent, owner=place.owner, approval_wait_s=self.options.approval_wait_s
            )
        )

    async def complete(self, sent: SendMessage, speaker: Speaker, llm_context: LLMContext) -> SendMessage:
        """Return a message with what the agent adds: the speaker, its own id, and hints of its LLM APIs.

        Wait for the home first, because the turn of the message begins soon.
        """
        await self.wait_for_home()
        hints = await self._llm_apis.read_prompts(self.options, llm_context)
        return replace(
            sent,
            caller=make_caller(speaker),
            planner_hints={**(sent.planner_hints or {}), **hints} or None,
            metadata={**(sent.metadata or {}), AGENT_KEY: self.id},
        )

    async def wait_for_home(self) -> None:
        """Wait until the home is read, but not longer than `HOME_WAIT_S`."""
        home = self._runtime.home
        if home is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(HOME_WAIT_S):
                await home.wait_until_ready()

    async def start(
        self, owner: str, request: StartSession, instructions: str | None, *, is_one_question: bool = False
    ) -> Session:
        """Start a session with the agent's options. It has the name, area and preferences of `request`."""
        return await self._runtime.start(
            replace(request, **self.list_settings(instructions)),
            owner=owner,
            context={AGENT_ID: self.id},
            is_one_question=is_one_question,
        )

    async def open_session(self, place: SessionPlace) -> Session:
        """Return the session of a place as `refresh` does. Start it without instructions if it is missing."""
        return await self.refresh(await self._open(place, None))

    async def _begin(self, beginning: Coroutine[Any, Any, Continuation]) -> Continuation:
        return await begin_turn(self._hass, self._runtime, beginning)

    def _is_idle(self, session: Session) -> bool:
        days = self.options.idle_days
        return days is not None and dt_util.utcnow() - session.updated_at > timedelta(days=days)

    async def refresh(self, session: Session) -> Session:
        """Return a session of the agent with its present options, and with the instructions it has."""
        return await self.keep_equal(session, session.instructions)

    async def _open(self, place: SessionPlace, instructions: str | None) -> Session:
        """Return the session of a place. Start it if it is missing, or was not used for `idle_days`."""
        request = StartSession(name=place.name, **self.list_settings(instructions))
        session = await self._runtime.open_session(request, owner=place.owner)
        if self._is_idle(session):
            await self._runtime.end_session(session.id, owner=place.owner, reason=IDLE)
            session = await self._runtime.open_session(request, owner=place.owner)
        return session

    async def keep_equal(
        self, session: Session, instructions: str | None, *, has_own_window: bool = False
    ) -> Session:
        """Return a session with the agent's present options, and with these instructions.

        With `has_own_window`, the session keeps the limits of its window.
        """
        settings = self.list_settings(instructions)
        if has_own_window:
            del settings["window"]
        changes = {name: value for name, value in settings.items() if getattr(session, name) != value}
        if changes:
            return await self._runtime.update(session.id, UpdateSession(**changes), owner=session.owner)
        return session

    def list_settings(self, instructions: str | None) -> dict[str, Any]:
        """Return the settings of the agent's sessions, by the names that a session has for them."""
        options = self.options
        return {
            "model": options.model,
            "budgets": options.budgets,
            "policy": options.policy,
            "window": self.window,
            "instructions": instructions,
        }

    @cached_property
    def window(self) -> WindowLimits:
        """The limits of the window: those of the options, or else those for the model."""
        by_model = self._runtime.default_window(self.options.model)
        return self.options.window or replace(by_model, preserve_system=self.options.preserve_system)

    def write_instructions(self, speaker: Speaker, llm_context: LLMContext) -> str | None:
        """Return the instructions of the agent for a speaker, or None. Raise `TemplateError`."""
        if self._template is None:
            return None
        return render_prompt(self._template, speaker.user_name, llm_context) or None


def make_caller(speaker: Speaker) -> TurnCaller:
    """Return the caller of a turn, as Sash records it."""
    return TurnCaller(
        user_id=speaker.user_id,
        user_name=speaker.user_name,
        device_id=speaker.device_id,
        certainty="unknown" if speaker.user_id is None else "signed_in",
    )
