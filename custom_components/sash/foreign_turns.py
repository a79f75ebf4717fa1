"""Records the turns that Home Assistant or another agent answered, so that a follow-up understands them.

Home Assistant answers some sentences itself, for example if a pipeline prefers local sentences. Its chat log
has these turns for five minutes, and does not say who spoke. So they are recorded when the same conversation
reaches our agent, or at once if they came from a satellite whose pipeline has our agent: it has no user. A
session that is busy gets them with its next message.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from homeassistant.components import conversation
from homeassistant.components.assist_pipeline.pipeline import KEY_ASSIST_PIPELINE
from homeassistant.components.conversation.chat_log import async_subscribe_chat_logs
from homeassistant.components.conversation.const import ChatLogEventType
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant, callback

from sash.engine.runtime import Runtime
from sash.errors import SashError, SessionBusy

from .agent import Agent, make_caller
from .session_scope import Speaker
from .speaker import find_satellite, locate_speaker

MAX_KNOWN_TURNS = 1000
MAX_CONVERSATIONS = 100
MAX_POSTPONED = 100
# The event of a pipeline that names the device that was spoken to.
INTENT_START = "intent-start"

_LOGGER = logging.getLogger(__name__)


class ForeignTurn(NamedTuple):
    """A turn that another agent answered. `key` is the same whenever the turn is seen."""

    key: str
    message: str
    answer: str
    agent_id: str
    created: datetime


class PostponedTurn(NamedTuple):
    """A turn whose session was busy when it should have been recorded."""

    agent: Agent
    speaker: Speaker
    turn: ForeignTurn
    language: str | None


class ForeignTurns:
    """Records the turns of other agents in the sessions of ours."""

    def __init__(self, hass: HomeAssistant, entry: ConfigEntry, runtime: Runtime) -> None:
        self._hass = hass
        self._entry = entry
        self._runtime = runtime
        self._agents: dict[str, Agent] = {}
        self._recorded: OrderedDict[str, None] = OrderedDict()
        self._unanswered: OrderedDict[str, tuple[str, datetime]] = OrderedDict()
        self._postponed: deque[PostponedTurn] = deque(maxlen=MAX_POSTPONED)
        self._recordings: set[asyncio.Task[None]] = set()

    @callback
    def open(self) -> Callable[[], None]:
        """Follow all chat logs. Return a function that stops this."""
        return async_subscribe_chat_logs(self._hass, self._on_chat_log)

    @callback
    def follow(self, entity_id: str, agent: Agent) -> Callable[[], None]:
        """Record what pipelines with this agent answer without it. Return a function that stops this."""
        self._agents[entity_id] = agent

        @callback
        def stop() -> None:
            self._agents.pop(entity_id, None)

        return stop

    async def record(
        self, entity_id: str, agent: Agent, speaker: Speaker, chat_log: conversation.ChatLog
    ) -> None:
        """Record the foreign turns before a message that are not recorded yet.

        They are those of its chat log, and those of its session that other conversations had.
        """
        if self._recordings:
            await asyncio.wait(self._recordings)
        place = agent.find_place(speaker)
        postponed = [each for each in self._postponed if each.agent.find_place(each.speaker) == place]
        for each in postponed:
            self._postponed.remove(each)
        for each in postponed:
            await self._record(*each)
        for turn in find_foreign_turns(chat_log, self._agents.keys() | {entity_id}):
            await self._record(agent, speaker, turn, language=None)

    async def _record(self, agent: Agent, speaker: Speaker, turn: ForeignTurn, language: str | None) -> None:
        place = agent.find_place(speaker)
        if place.name is None or turn.key in self._recorded:
            return
        self._recorded[turn.key] = None
        if len(self._recorded) > MAX_KNOWN_TURNS:
            self._recorded.popitem(last=False)
        try:
            session = await agent.open_session(place)
            # A later yes does not belong to a question that was asked before this message.
            await self._runtime.drop_questions(session.id, asked_before=turn.created, owner=place.owner)
            await self._runtime.record_turn(
                session.id,
                turn.message,
                turn.answer,
                owner=place.owner,
                idempotency_key=turn.key,
                answered_by=turn.agent_id,
                area=speaker.area_name,
                language=language,
                caller=make_caller(speaker),
            )
        except SessionBusy:
            self._recorded.pop(turn.key, None)
            self._postponed.append(PostponedTurn(agent, speaker, turn, language))
        except SashError as error:
            _LOGGER.warning("a turn of %s was not recorded: %s", turn.agent_id, error.message)

    @callback
    def _on_chat_log(self, conversation_id: str, kind: ChatLogEventType, data: dict[str, Any]) -> None:
        if kind is ChatLogEventType.DELETED:
            self._unanswered.pop(conversation_id, None)
        if kind is not ChatLogEventType.CONTENT_ADDED:
            return
        content = data["content"]
        if content["role"] == "user":
            self._unanswered[conversation_id] = (content["content"], content["created"])
            if len(self._unanswered) > MAX_CONVERSATIONS:
                self._unanswered.popitem(last=False)
        elif content["role"] == "assistant" and content.get("content"):
            message, created = self._unanswered.pop(conversation_id, ("", None))
            if created is None or content["agent_id"] in self._agents:
                return
            turn = ForeignTurn(
                _make_key(conversation_id, created), message, content["content"], content["agent_id"], created
            )
            if (origin := self._find_origin(conversation_id, message)) is not None:
                agent, speaker, language = origin
                recording = self._entry.async_create_background_task(
                    self._hass, self._record(agent, speaker, turn, language), f"record turn {turn.key}"
                )
                self._recordings.add(recording)
                recording.add_done_callback(self._recordings.discard)

    def _find_origin(self, conversation_id: str, message: str) -> tuple[Agent, Speaker, str] | None:
        """Return our agent, the speaker and the language of a message that a pipeline heard on a satellite.

        A pipeline on the phone or in the browser of a user does not say who the user is.
        """
        for event in self._find_pipeline_events():
            data = event.data or {}
            if (
                event.type == INTENT_START
                and (data["conversation_id"], data["intent_input"]) == (conversation_id, message)
                and (agent := self._agents.get(data["engine"])) is not None
            ):
                device_id = data["device_id"]
                satellite_id = data["satellite_id"] or find_satellite(self._hass, device_id)
                speaker = locate_speaker(
                    self._hass, conversation_id, device_id=device_id, satellite_id=satellite_id
                )
                is_known = satellite_id is not None and speaker.device_id is not None
                return (agent, speaker, data["language"]) if is_known else None
        return None

    def _find_pipeline_events(self) -> Iterator[Any]:
        """Yield the newest events of all pipelines, the newest run first. Not every house has pipelines."""
        pipelines = self._hass.data.get(KEY_ASSIST_PIPELINE)
        for runs in pipelines.pipeline_debug.values() if pipelines else ():
            for run in reversed(list(runs.values())):
                yield from run.events


def find_foreign_turns(chat_log: conversation.ChatLog, own_entity_ids: set[str]) -> Iterator[ForeignTurn]:
    """Yield the turns in a chat log that other agents answered, oldest first."""
    message: conversation.UserContent | None = None
    for content in chat_log.content:
        if isinstance(content, conversation.UserContent):
            message = content
        elif isinstance(content, conversation.AssistantContent) and content.content and message is not None:
            if content.agent_id not in own_entity_ids:
                key = _make_key(chat_log.conversation_id, message.created)
                yield ForeignTurn(key, message.content, content.content, content.agent_id, message.created)
            message = None


def _make_key(conversation_id: str, created: datetime) -> str:
    return f"home-assistant/{conversation_id[:128]}/{created.isoformat()}"
