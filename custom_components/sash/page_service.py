"""The service behind the page in the sidebar: every session of the page is one of an agent, with its options.

A user of Home Assistant may talk to an agent, but only an administrator decides what the agent may do. So a
request cannot choose a model, a policy, budgets, a window or instructions. Before each turn, the session is
made equal to the options of its agent, as `agent.py` does it for voice.
"""

from dataclasses import dataclass, replace
from typing import Any, cast, override

from homeassistant.auth.models import User
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers.llm import LLMContext

from sash.app.access import SCOPES, Caller
from sash.app.caller_view import CallerShown
from sash.app.service import AgentService
from sash.engine.runtime import Runtime
from sash.errors import InvalidConfig, InvalidInput, PolicyExceedsOperator, SashError
from sash.ports.store import Bundle
from sash.values.continuations import Continuation
from sash.values.requests import Approve, Ask, SendMessage, StartSession, UpdateSession
from sash.values.sessions import Session, SessionPolicy

from .agent import Agent, make_caller
from .late_turns import LateTurns
from .llm_contexts import make_llm_context
from .session_scope import AGENT_ID, SessionPlace, Speaker, find_agent_id, find_owner
from .turn_signal import AGENT_KEY

AGENT_SETTINGS = ("model", "budgets", "policy", "window", "instructions")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCaller(Caller):
    """A signed-in user, and the agent that the user has chosen on the page."""

    user_id: str | None
    user_name: str | None
    agent: Agent

    @property
    def speaker(self) -> Speaker:
        """The origin of what the user writes."""
        return Speaker("", user_id=self.user_id, user_name=self.user_name)


class PageService(AgentService):
    """The methods of `AgentService`, for callers that are a `PageCaller`."""

    def __init__(
        self, hass: HomeAssistant, runtime: Runtime, agents: dict[str, Agent], late_turns: LateTurns
    ) -> None:
        super().__init__(runtime)
        self._hass = hass
        self._agents = agents
        self._late_turns = late_turns

    def make_caller(self, user: User, agent: Agent) -> PageCaller:
        """Return a user as a caller. Users that Home Assistant has made for itself stand for the house."""
        scopes = frozenset(scope for scope in SCOPES if scope != "admin" or user.is_admin)
        user_id = None if user.system_generated else user.id
        return PageCaller(find_owner(user_id), scopes, user_id=user_id, user_name=user.name, agent=agent)

    @override
    async def describe_caller(self, caller: Caller) -> CallerShown:
        """Return the user's rights, and the options of the chosen agent."""
        shown, agent = await super().describe_caller(caller), cast(PageCaller, caller).agent
        options = agent.options
        return replace(
            shown,
            model=options.model.name or shown.model,
            policy=options.policy,
            budgets=options.budgets,
            window=agent.window,
        )

    @override
    async def start_session(self, caller: Caller, request: StartSession) -> Session:
        caller.need("converse")
        _refuse_settings(request)
        user = cast(PageCaller, caller)
        instructions = self._write_instructions(user.agent, user)
        return await user.agent.start(user.owner, request, instructions)

    @override
    async def open_session(self, caller: Caller, request: StartSession, *, reopen: bool = False) -> Session:
        """Return the active session with a name, or start one. It keeps the window of the request."""
        user, window = cast(PageCaller, caller), request.window
        settings = user.agent.list_settings(self._write_instructions(user.agent, user))
        return await super().open_session(
            caller, replace(request, **settings | ({"window": window} if window else {})), reopen=reopen
        )

    @override
    async def put_question(
        self,
        caller: Caller,
        question: Ask,
        *,
        policy: SessionPolicy | None = None,
        preferences: dict[str, Any] | None = None,
        area: str | None = None,
    ) -> Continuation:
        caller.need("converse")
        caller.need("read")
        _refuse_settings(question)
        if policy is not None:
            raise InvalidInput("the settings of the agent say what it may do: leave the policy out")
        user = cast(PageCaller, caller)
        instructions = self._write_instructions(user.agent, user)
        sent = SendMessage(message=question.message, allow_tools=question.allow_tools)
        sent = await user.agent.complete(sent, user.speaker, self._make_llm_context(user))
        session = await user.agent.start(
            user.owner,
            StartSession(preferences=preferences, area=area),
            instructions,
            is_one_question=not question.keep,
        )
        try:
            return await self.runtime.send(session.id, sent, owner=user.owner)
        except SashError:
            await self.runtime.end_session(session.id, owner=user.owner)
            raise

    @override
    async def update_session(self, caller: Caller, session_id: str, request: UpdateSession) -> Session:
        _refuse_settings(request)
        return await super().update_session(caller, session_id, request)

    @override
    async def send_message(self, caller: Caller, session_id: str, sent: SendMessage) -> Continuation:
        return await super().send_message(caller, session_id, await self._prepare(caller, session_id, sent))

    @override
    async def reply(self, caller: Caller, session_id: str, sent: SendMessage) -> Continuation:
        return await super().reply(caller, session_id, await self._prepare(caller, session_id, sent))

    @override
    async def resume(self, caller: Caller, continuation_id: str) -> Continuation:
        await self._refresh_session_of(caller, continuation_id)
        return await super().resume(caller, continuation_id)

    @override
    async def retry(self, caller: Caller, continuation_id: str) -> Continuation:
        await self._refresh_session_of(caller, continuation_id)
        return await super().retry(caller, continuation_id)

    @override
    async def approve(self, caller: Caller, continuation_id: str, answer: Approve) -> Continuation:
        """Approve or deny a call. If it was asked by voice, too, that question ends with the result."""
        await self._refresh_session_of(caller, continuation_id)
        turn = await super().approve(caller, continuation_id, answer)
        self._late_turns.hand_over(continuation_id)
        return turn

    @override
    def _limit_import(self, caller: Caller, bundle: Bundle) -> Bundle:
        """Return an import as a session of the chosen agent, with turns of this user.

        A turn can be resumed and tried again. So it must not name another user or model, or carry hints.
        """
        user, session = cast(PageCaller, caller), bundle.session
        settings = user.agent.list_settings(self._write_instructions(user.agent, user))
        session = replace(
            session,
            **settings,
            context={**session.context, AGENT_ID: user.agent.id},
            is_one_question=False,
            is_task=False,
        )
        caller_of_turns = make_caller(user.speaker)
        turns = tuple(
            replace(
                turn,
                request=replace(
                    turn.request,
                    caller=caller_of_turns,
                    model=None,
                    planner_hints={},
                    metadata={**turn.request.metadata, AGENT_KEY: user.agent.id},
                ),
            )
            for turn in bundle.continuations
        )
        return replace(bundle, session=session, continuations=turns)

    async def _prepare(self, caller: Caller, session_id: str, sent: SendMessage) -> SendMessage:
        """Make a session equal to the options of its agent, and return the message as the agent sends it."""
        caller.need("converse")
        _refuse_settings(sent)
        user = cast(PageCaller, caller)
        session = await self.runtime.get_session(session_id, owner=user.owner)
        agent = await self._keep_equal(user, session)
        self._late_turns.withdraw(SessionPlace(session.owner, session.name))
        return await agent.complete(sent, user.speaker, self._make_llm_context(user, sent.language))

    async def _refresh_session_of(self, caller: Caller, continuation_id: str) -> None:
        """Prepare the session of a turn that goes on or is tried again, and wait for the home."""
        caller.need("converse")
        turn = await self.runtime.store.get_continuation(caller.owner, continuation_id)
        session = await self.runtime.get_session(turn.session_id, owner=caller.owner)
        agent = await self._keep_equal(cast(PageCaller, caller), session)
        await agent.wait_for_home()

    async def _keep_equal(self, user: PageCaller, session: Session) -> Agent:
        """Give a session the present options of its agent, and return the agent.

        A session whose agent was removed, or that has none, follows the chosen agent and keeps its window.
        """
        own = self._agents.get(find_agent_id(session) or "")
        agent = own or user.agent
        if not session.is_one_question:
            instructions = self._write_instructions(agent, user)
            await agent.keep_equal(session, instructions, has_own_window=own is None)
        return agent

    def _write_instructions(self, agent: Agent, user: PageCaller) -> str | None:
        try:
            return agent.write_instructions(user.speaker, self._make_llm_context(user))
        except TemplateError as error:
            raise InvalidConfig(
                f"the instructions of the agent {agent.title} cannot be used: {error}", option="prompt"
            ) from error

    def _make_llm_context(self, user: PageCaller, language: str | None = None) -> LLMContext:
        return make_llm_context(Context(user_id=user.user_id), language or self._hass.config.language)


def _refuse_settings(request: StartSession | UpdateSession | SendMessage | Ask) -> None:
    """Raise `PolicyExceedsOperator` if a request sets what the options of the agent decide."""
    for name in AGENT_SETTINGS:
        # The instructions of a change that leaves them out are the empty string.
        if getattr(request, name, None) not in (None, ""):
            raise PolicyExceedsOperator(
                f"the options of the agent decide about {name}: leave it out, or change the agent under "
                "Settings > Devices & services > Sash"
            )
