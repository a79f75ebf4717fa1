"""Sentences that Home Assistant's own engine understands, for agents whose options allow it.

Home Assistant only recognises a sentence here. Then a local tool lets Home Assistant handle it, so that the
journal has the call, and nothing happens twice after a crash. Home Assistant asks for no approvals, so it
handles a sentence that acts only if the policy of the session allows its services without asking.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hassil.recognize import RecognizeResult
from homeassistant.components import conversation
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.conversation.chat_log import ChatLog
from homeassistant.components.conversation.const import METADATA_CUSTOM_SENTENCE
from homeassistant.components.conversation.default_agent import DefaultAgent
from homeassistant.components.intent import async_device_supports_timers
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers import intent, translation
from homeassistant.util import language as language_util

from sash.engine.policy import judge
from sash.errors import ToolFailed
from sash.ports.intents import NOT_UNDERSTOOD, Utterance, make_local_answer, make_local_call
from sash.ports.model import Answer
from sash.ports.tools import ServiceUse, ToolContext, ToolSpec
from sash.values.continuations import TurnCaller
from sash.values.sessions import UNLIMITED, Session

from .agent_options import AgentOptions
from .const import DOMAIN
from .hass_home.turn_contexts import make_context
from .intent_services import DELAYED_COMMAND, QUESTIONS, TIMERS, find_services, is_users_own
from .session_scope import find_agent_id

QUESTION_TOOL = "home_assistant_question"
TIMER_TOOL = "home_assistant_timer"
COMMAND_TOOL = "home_assistant_command"
TOOLS = frozenset({QUESTION_TOOL, TIMER_TOOL, COMMAND_TOOL})

MAX_CHARS = 200
# The result of a tool that failed begins with this.
FAILED = "failed: "

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("sentence", "language", "intent")},
    "required": ["sentence", "language", "intent"],
    "additionalProperties": False,
}


class HomeAssistantIntents:
    """Understands what Home Assistant's own engine understands. `agents` are the options by agent id.

    If it fails, a model explains that. Without a model (`has_model`), it is told in Home Assistant's words.
    """

    def __init__(
        self, hass: HomeAssistant, agents: Mapping[str, AgentOptions], *, has_model: bool = True
    ) -> None:
        self._hass = hass
        self._agents = agents
        self._has_model = has_model

    def make_tools(self) -> Iterator[ToolSpec]:
        """Yield the tools that let Home Assistant handle a sentence. No model sees them."""
        about = "Let Home Assistant handle a sentence that"
        yield ToolSpec(
            QUESTION_TOOL, f"{about} asks.", _SCHEMA, self._handle, safety="idempotent", is_local=True
        )
        yield ToolSpec(TIMER_TOOL, f"{about} changes timers.", _SCHEMA, self._handle, is_local=True)
        yield ToolSpec(
            COMMAND_TOOL,
            f"{about} acts.",
            _SCHEMA,
            self._handle,
            action=True,
            uses=self._list_uses,
            is_local=True,
        )

    async def understand(
        self, utterance: Utterance, accepts: Callable[[RecognizeResult], bool] = lambda found: True
    ) -> Answer | None:
        """Return a call of a tool for a meaning that is accepted, and after it what Home Assistant says."""
        agent_id = find_agent_id(utterance.session)
        options = None if agent_id is None else self._agents.get(agent_id)
        if options is None or not options.uses_home_assistant_intents or not TOOLS & utterance.tools:
            return None
        if utterance.results:
            return self._report(utterance)
        if len(utterance.text) > MAX_CHARS:
            return None
        language = utterance.language or self._hass.config.language
        found = await self._recognize(utterance.text, language, utterance.caller)
        if found is None or not accepts(found):
            return None
        tool = self._choose_tool(found, utterance.session, utterance.caller)
        if tool is None:
            return None
        return make_local_call(tool, sentence=utterance.text, language=language, intent=found.intent.name)

    async def _recognize(self, text: str, language: str, caller: TurnCaller | None) -> RecognizeResult | None:
        """Return the meaning of a sentence, if Home Assistant is certain and all names are exposed."""
        agent = self._find_default_agent(language)
        if agent is None:
            return None
        return await agent.async_recognize_intent(
            _make_input(text, language, caller, Context(), conversation.HOME_ASSISTANT_AGENT),
            strict_intents_only=True,
        )

    def _find_default_agent(self, language: str) -> DefaultAgent | None:
        agent = async_get_agent(self._hass)
        if not isinstance(agent, DefaultAgent) or not language_util.matches(
            language, agent.supported_languages
        ):
            return None
        return agent

    def _choose_tool(self, found: RecognizeResult, session: Session, caller: TurnCaller | None) -> str | None:
        """Return the tool for a meaning. Return None if the model or an approval has to decide."""
        name = found.intent.name
        if all(handler.intent_type != name for handler in intent.async_get(self._hass)):
            return None  # The integration that handles it is not set up.
        is_own = is_users_own(self._hass, name)
        if not is_own and (name in QUESTIONS or (name == intent.INTENT_RESPOND and _is_custom(found))):
            return QUESTION_TOOL
        if not is_own and name in TIMERS:
            return TIMER_TOOL if self._has_timers(found, session, caller) else None
        uses = [ServiceUse(service) for service in find_services(self._hass, name)]
        is_allowed = uses and judge(uses, session.policy, UNLIMITED.policy).what == "allow"
        return COMMAND_TOOL if is_allowed else None

    def _has_timers(self, found: RecognizeResult, session: Session, caller: TurnCaller | None) -> bool:
        """Return True if the device of the user has timers. A command for later needs none.

        Our agent runs such a command when its time has come, so the policy judges it then.
        """
        if DELAYED_COMMAND in found.entities:
            return session.policy.allow_actuation
        device_id = None if caller is None else caller.device_id
        return device_id is not None and async_device_supports_timers(self._hass, device_id)

    async def _list_uses(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
        return [ServiceUse(service) for service in find_services(self._hass, arguments["intent"])]

    async def _handle(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Let Home Assistant handle a sentence, and return what it says. Raise `ToolFailed` if it fails.

        Home Assistant may recognise a sentence, and then find no entity that it can mean.
        """
        language, expected = arguments["language"], arguments["intent"]
        agent = self._find_default_agent(language)
        if agent is None:
            raise ToolFailed("Home Assistant's own conversation agent is not available")
        asked = _make_input(
            arguments["sentence"],
            language,
            context.caller,
            await make_context(self._hass, context.caller, context.continuation_id),
            self._find_entity_id(context.session) or conversation.HOME_ASSISTANT_AGENT,
        )
        # The turn has its own chat log. This one has the words of Home Assistant's engine only.
        chat_log = ChatLog(self._hass, f"{DOMAIN}-{context.continuation_id}")
        response = await agent.async_handle_intents(
            asked, chat_log, intent_filter=lambda found: found.intent.name != expected
        )
        if response is None:
            return dict(NOT_UNDERSTOOD)
        speech = str(response.speech.get("plain", {}).get("speech") or "")
        if response.response_type is intent.IntentResponseType.ERROR:
            raise ToolFailed(speech or "Home Assistant could not do this")
        return {"speech": speech or await self._say_done(language)}

    def _report(self, utterance: Utterance) -> Answer | None:
        """Return what Home Assistant said. If it failed, or its outcome is unknown, the model explains it."""
        last = utterance.results[-1]
        if last.name not in TOOLS:
            return None
        speech = last.parse_object().get("speech")
        if speech is None and not self._has_model and last.content.startswith(FAILED):
            speech = last.content.removeprefix(FAILED)
        return make_local_answer(speech) if isinstance(speech, str) else None

    def _find_entity_id(self, session: Session) -> str | None:
        """Return the entity of our agent: it runs commands for later, and its policy judges them."""
        agent_id = find_agent_id(session)
        if agent_id is None:
            return None
        return er.async_get(self._hass).async_get_entity_id(conversation.DOMAIN, DOMAIN, agent_id)

    async def _say_done(self, language: str) -> str:
        """Return "Done" in a language, for an intent without words of its own."""
        texts = await translation.async_get_translations(
            self._hass, language, conversation.DOMAIN, [conversation.DOMAIN]
        )
        return texts.get(f"component.{conversation.DOMAIN}.conversation.agent.done", "Done")


def _is_custom(found: RecognizeResult) -> bool:
    return bool((found.intent_metadata or {}).get(METADATA_CUSTOM_SENTENCE))


def _make_input(
    text: str, language: str, caller: TurnCaller | None, context: Context, agent_id: str
) -> conversation.ConversationInput:
    return conversation.ConversationInput(
        text=text,
        context=context,
        conversation_id=None,
        device_id=None if caller is None else caller.device_id,
        satellite_id=None,
        language=language,
        agent_id=agent_id,
    )
