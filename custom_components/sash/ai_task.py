"""The AI Task entity: Home Assistant's automations let a model write data, without any memory."""

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any, override

from homeassistant.components import ai_task, conversation
from homeassistant.config_entries import ConfigSubentry
from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.util import slugify

from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import SashError
from sash.values.continuations import Continuation
from sash.values.requests import SendMessage, StartSession
from sash.values.sessions import MAX_INSTRUCTIONS_CHARS, Budgets, ModelConfig, SessionPolicy

from .agent_options import AITaskOptions
from .caller_turns import begin_turn, cancel_soon, cancel_turn
from .const import SUBENTRY_AI_TASK
from .conversation import make_device_info
from .entry_data import SashConfigEntry, SashData
from .session_scope import find_owner
from .speaker import find_person
from .task_errors import TaskFailed
from .task_images import read_images
from .tool_schema import find_mismatch, make_response_format
from .turn_signal import AGENT_KEY

PARALLEL_UPDATES = 0

# A task has no person who waits or answers, so it may take more steps than a turn of a conversation.
BUDGETS = Budgets(max_steps=32, max_tool_calls=64)
# It allows the tools of an API that was made for a task. Assist's tools that act need an allowlist, too.
POLICY = SessionPolicy(allow_actuation=True, grounded_answers=False)
# An answer that is not valid is asked for once more.
MAX_ATTEMPTS = 2
MAX_FORMAT_NAME_CHARS = 64

_LOGGER = logging.getLogger(__name__)


async def async_setup_entry(
    hass: HomeAssistant, entry: SashConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Add an entity for each AI task of a config entry."""
    for subentry in entry.subentries.values():
        if subentry.subentry_type == SUBENTRY_AI_TASK:
            entity = SashAITaskEntity(entry.runtime_data, subentry)
            async_add_entities([entity], config_subentry_id=subentry.subentry_id)


class InvalidAnswer(Exception):
    """The model's answer does not have the structure of the task. `key` is that of the error for the user."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class SashAITaskEntity(ai_task.AITaskEntity):
    """A model that writes text or structured data."""

    _attr_has_entity_name = True
    _attr_name = None
    _attr_supported_features = (
        ai_task.AITaskEntityFeature.GENERATE_DATA | ai_task.AITaskEntityFeature.SUPPORT_ATTACHMENTS
    )

    def __init__(self, data: SashData, subentry: ConfigSubentry) -> None:
        self._data = data
        self._options = AITaskOptions.of(subentry.data)
        self._attr_unique_id = subentry.subentry_id
        self._attr_device_info = make_device_info(subentry)

    @override
    async def _async_generate_data(
        self, task: ai_task.GenDataTask, chat_log: conversation.ChatLog
    ) -> ai_task.GenDataTaskResult:
        instances = await self._find_apis(chat_log)
        response_format = _make_format(task, chat_log.llm_api)
        prompt, message = _write_prompt(chat_log, task.instructions, instances)
        images = await read_images(self.hass, task.attachments or ())
        request = StartSession(
            model=_add_format(self._options.model, response_format),
            instructions=prompt or None,
            budgets=BUDGETS,
            policy=POLICY,
        )
        problem = ""
        for attempt in range(MAX_ATTEMPTS):
            sent = SendMessage(
                message=f"{message}\n\n{problem}" if problem else message,
                attachments=images,
                allow_tools=bool(instances),
                metadata={AGENT_KEY: self.unique_id},
            )
            text = await self._ask(request, sent, instances)
            try:
                data = text if response_format is None else _parse(text, response_format)
                break
            except InvalidAnswer as error:
                if attempt + 1 == MAX_ATTEMPTS:
                    raise TaskFailed(error.key, message=str(error)) from error
                _LOGGER.warning(
                    "%s: the model is asked again, because its answer is wrong: %s", self.entity_id, error
                )
                problem = f"An earlier answer to this was wrong: {error}"
        chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(agent_id=self.entity_id, content=text)
        )
        return ai_task.GenDataTaskResult(conversation_id=chat_log.conversation_id, data=data)

    async def _find_apis(self, chat_log: conversation.ChatLog) -> list[llm.APIInstance]:
        """Return the API that came with the task, or else those of the entity's options."""
        if chat_log.llm_api is not None:
            return [chat_log.llm_api]
        context = llm.LLMContext(
            platform=ai_task.DOMAIN,
            context=self._context,
            language=self.hass.config.language,
            assistant=conversation.DOMAIN,
            device_id=None,
        )
        return await self._data.llm_apis.open_apis(self._options.llm_api_ids, context)

    async def _ask(self, request: StartSession, sent: SendMessage, instances: list[llm.APIInstance]) -> str:
        """Return the model's answer, in a session that lives for this question only."""
        runtime = self._data.runtime
        person = await find_person(self.hass, self._context.user_id if self._context else None)
        owner = find_owner(None if person is None else person.id)
        try:
            session = await runtime.start(request, owner=owner, is_one_question=True, is_task=True)
            with self._data.llm_apis.lend(session.id, instances):
                turn = await begin_turn(self.hass, runtime, runtime.send(session.id, sent, owner=owner))
                result = await self._wait(turn)
        except SashError as error:
            raise TaskFailed.of(error.code, error.message) from error
        return _get_answer(result)

    async def _wait(self, turn: Continuation) -> ContinuationResult:
        """Wait for the end of a turn. A task that is stopped, or that needs a person, is cancelled."""
        try:
            result = await self._data.runtime.await_continuation(turn.id, owner=turn.owner)
        except asyncio.CancelledError:
            cancel_soon(self.hass, self._data.runtime, turn)
            raise
        if not result.continuation.is_final:
            await cancel_turn(self._data.runtime, turn)
        return result


def _make_format(task: ai_task.GenDataTask, api: llm.APIInstance | None) -> dict[str, Any] | None:
    if task.structure is None:
        return None
    name = slugify(task.name)[:MAX_FORMAT_NAME_CHARS] or "answer"
    return make_response_format(name, task.structure, None if api is None else api.custom_serializer)


def _add_format(model: ModelConfig, response_format: dict[str, Any] | None) -> ModelConfig:
    if response_format is None:
        return model
    return replace(model, options={**model.options, "response_format": response_format})


def _write_prompt(
    chat_log: conversation.ChatLog, instructions: str, instances: list[llm.APIInstance]
) -> tuple[str, str]:
    """Return the system prompt and the message. What is too long for the prompt precedes the message."""
    parts = [part.content for part in chat_log.content if isinstance(part, conversation.SystemContent)]
    if chat_log.llm_api is None:
        parts += [instance.api_prompt for instance in instances]
    prompt = "\n".join(filter(None, parts))
    rest = prompt[MAX_INSTRUCTIONS_CHARS:]
    return prompt[:MAX_INSTRUCTIONS_CHARS], f"{rest}\n\n{instructions}" if rest else instructions


def _get_answer(result: ContinuationResult) -> str:
    """Return the text of an answer. Raise `TaskFailed` with the reason if the turn has no answer."""
    if result.waiting_calls:
        raise TaskFailed("task_needs_approval")
    if result.continuation.error is not None:
        error = result.continuation.error
        raise TaskFailed.of(error.code, error.message)
    if result.response is None:
        raise TaskFailed("task_not_finished", status=result.status)
    if result.response.stopped_by is not None:
        raise TaskFailed("task_limit", limit=result.response.stopped_by)
    return result.response.final_message


def _parse(text: str, response_format: dict[str, Any]) -> Any:
    """Return the data in an answer. Raise `InvalidAnswer` if it is not what the format says."""
    try:
        data = json.loads(_strip_fence(text))
    except ValueError as error:
        raise InvalidAnswer("answer_not_json", f"it is not valid JSON ({error})") from error
    if mismatch := find_mismatch(response_format, data):
        raise InvalidAnswer("answer_has_other_structure", mismatch)
    return data


def _strip_fence(text: str) -> str:
    """Return JSON without the Markdown around it: some servers ignore the format."""
    text = text.strip()
    if not text.startswith("```"):
        return text
    return text.removeprefix("```").removeprefix("json").removesuffix("```")
