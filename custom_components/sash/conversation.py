"""The conversation entity: Home Assistant's view of an agent."""

import asyncio
import logging
from typing import Any, Literal, override

from homeassistant.components import conversation
from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import CONF_MODEL, MATCH_ALL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import intent
from homeassistant.helpers.device_registry import DeviceEntryType, DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from sash.app.early_answer import write_early_answer
from sash.errors import SashError
from sash.values.continuations import Action, Continuation

from .agent import Agent
from .answer_stream import AnswerStream
from .caller_turns import cancel_soon
from .const import DOMAIN, SUBENTRY_CONVERSATION
from .entry_data import SashConfigEntry, SashData
from .session_scope import Speaker
from .speaker import find_speaker
from .turn_errors import INTERRUPTED, describe_error, describe_failure, write_exception

PARALLEL_UPDATES = 0

# The names of the hints that a turn gives to the model.
SITUATION_HINT = "situation"
OPENING_HINT = "you opened this conversation with"

_LOGGER = logging.getLogger(__name__)


async def async_setup_entry(
    hass: HomeAssistant, entry: SashConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add an entity for each agent of a config entry."""
    for subentry in entry.subentries.values():
        if subentry.subentry_type == SUBENTRY_CONVERSATION:
            entity = SashConversationEntity(entry.runtime_data, subentry)
            async_add_entities([entity], config_subentry_id=subentry.subentry_id)


class SashConversationEntity(conversation.ConversationEntity):
    """An agent that Home Assistant's pipelines can use."""

    _attr_has_entity_name = True
    _attr_name = None
    _attr_supported_features = conversation.ConversationEntityFeature.CONTROL
    _attr_supports_streaming = True

    def __init__(self, data: SashData, subentry: ConfigSubentry) -> None:
        self._data = data
        self._agent: Agent = data.agents[subentry.subentry_id]
        self._attr_unique_id = subentry.subentry_id
        self._attr_device_info = make_device_info(subentry)

    @property
    @override
    def supported_languages(self) -> list[str] | Literal["*"]:
        return MATCH_ALL

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        self.async_on_remove(self._data.foreign_turns.follow(self.entity_id, self._agent))

    @override
    async def _async_handle_message(
        self, user_input: conversation.ConversationInput, chat_log: conversation.ChatLog
    ) -> conversation.ConversationResult:
        speaker = await find_speaker(self.hass, user_input, chat_log.conversation_id)
        try:
            await self._data.foreign_turns.record(self.entity_id, self._agent, speaker, chat_log)
            turn = await self._send(user_input, speaker, chat_log)
        except SashError as error:
            _LOGGER.warning("%s could not accept a message: %s", self.entity_id, error.message)
            said = await describe_error(self.hass, error.code, user_input.language)
            return _make_error(user_input, chat_log, said)
        except TemplateError as error:
            names = {"agent": self._agent.title, "message": str(error)}
            said = await write_exception(self.hass, "wrong_prompt", user_input.language, **names)
            return _make_error(user_input, chat_log, said)
        return await self._answer(user_input, speaker, chat_log, turn)

    async def _send(
        self, user_input: conversation.ConversationInput, speaker: Speaker, chat_log: conversation.ChatLog
    ) -> Continuation:
        self._data.late_turns.withdraw(self._agent.find_place(speaker))
        return await self._agent.send(
            speaker,
            user_input.text,
            language=user_input.language,
            llm_context=user_input.as_llm_context(DOMAIN),
            hints=_find_hints(user_input, chat_log),
        )

    async def _answer(
        self,
        user_input: conversation.ConversationInput,
        speaker: Speaker,
        chat_log: conversation.ChatLog,
        turn: Continuation,
    ) -> conversation.ConversationResult:
        """Stream the answer of a turn into the chat log. If the pipeline is cancelled, so is the turn."""
        data, options, language = self._data, self._agent.options, user_input.language
        place = self._agent.find_place(speaker)
        stream = AnswerStream(
            data.runtime,
            turn,
            early_wait_s=options.early_wait_s,
            write_early_answer=lambda status: write_early_answer(status, language, self.hass.config.language),
            write_question=lambda result: data.late_turns.ask(
                result, place, speaker, language, options.approval_wait_s
            ),
        )
        try:
            async for _ in chat_log.async_add_delta_content_stream(self.entity_id, stream.read()):
                pass
        except asyncio.CancelledError:
            cancel_soon(self.hass, data.runtime, turn)
            raise
        except SashError as error:
            # The entry was unloaded meanwhile. The turn is interrupted, and can be resumed.
            _LOGGER.warning("%s could not answer: %s", self.entity_id, error.message)
            return _make_error(user_input, chat_log, await describe_error(self.hass, INTERRUPTED, language))
        result = stream.result
        if result is None:
            data.late_turns.follow(turn, place, speaker, language)
        elif result.response is None and not result.waiting_calls:
            message = await describe_failure(self.hass, result, language)
            return _make_error(user_input, chat_log, message)
        answered = conversation.async_get_result_from_chat_log(user_input, chat_log)
        if result is not None and result.response is not None:
            _add_targets(answered.response, result.response.actions)
        return answered


def make_device_info(subentry: ConfigSubentry) -> DeviceInfo:
    """Return the device that stands for an agent or an AI task."""
    return DeviceInfo(
        identifiers={(DOMAIN, subentry.subentry_id)},
        name=subentry.title,
        manufacturer="Sash",
        model=subentry.data.get(CONF_MODEL),
        entry_type=DeviceEntryType.SERVICE,
    )


def _find_hints(user_input: conversation.ConversationInput, chat_log: conversation.ChatLog) -> dict[str, Any]:
    """Return what the model has to know of this turn only.

    An automation may start a conversation with a message of the agent, and say what it is about.
    """
    hints = {}
    if opening := _find_opening(chat_log):
        hints[OPENING_HINT] = opening
    if user_input.extra_system_prompt and user_input.extra_system_prompt != opening:
        hints[SITUATION_HINT] = user_input.extra_system_prompt
    return hints


def _find_opening(chat_log: conversation.ChatLog) -> str | None:
    """Return the message that the agent opened the conversation with, or None if the user spoke first."""
    first = next((content for content in chat_log.content if content.role != "system"), None)
    return first.content if isinstance(first, conversation.AssistantContent) else None


def _make_error(
    user_input: conversation.ConversationInput, chat_log: conversation.ChatLog, message: str
) -> conversation.ConversationResult:
    response = intent.IntentResponse(language=user_input.language)
    response.async_set_error(intent.IntentResponseErrorCode.FAILED_TO_HANDLE, message)
    return conversation.ConversationResult(response, chat_log.conversation_id)


def _add_targets(response: intent.IntentResponse, actions: tuple[Action, ...]) -> None:
    """Tell Home Assistant which entities the turn has changed, and which it could not change."""
    done: list[intent.IntentResponseTarget] = []
    failed: list[intent.IntentResponseTarget] = []
    for action in actions:
        targets = [
            intent.IntentResponseTarget(entity_id, intent.IntentResponseTargetType.ENTITY, entity_id)
            for entity_id in action.after or action.before
        ]
        (done if action.outcome == "done" and action.verified is not False else failed).extend(targets)
    if done or failed:
        response.async_set_results(success_results=done, failed_results=failed)
