"""The intents port: an adapter answers a sentence without a model, calls a tool for it, or declines it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sash.memory.recall_question import RecallQuestion
from sash.ports.model import Answer
from sash.ports.tools import DENIED_BY_USER, HELD_BACK
from sash.values.action_explanation import ActionExplanation
from sash.values.citations import Citation
from sash.values.continuations import Continuation, TurnCaller
from sash.values.sessions import Session
from sash.values.waiting_turns import WaitingTurn

# The result of a tool that found no meaning in the sentence after all. The model then answers it.
NOT_UNDERSTOOD = {"understood": False}


@dataclass(frozen=True, slots=True)
class LocalCallResult:
    """The result of a tool call that was made for a sentence. `arguments` is the JSON of the call."""

    name: str
    content: str
    arguments: str = "{}"

    @property
    def is_denied_by_user(self) -> bool:
        """Whether the user was asked for an approval, and said no."""
        return self.content == f"not done: {DENIED_BY_USER}"

    @property
    def is_held_back(self) -> bool:
        """Whether only another call of the same sentence is not allowed, so that none was made."""
        return self.content == f"not done: {HELD_BACK}"

    def parse_object(self) -> dict[str, Any]:
        """Return the content as a JSON object. Empty if it is not one, as for an error message."""
        try:
            value = json.loads(self.content)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of the user in the transcript of a session.

    A message of a copied session has no `continuation_id`. `is_local` is True if no model answered it.
    """

    id: str
    text: str
    at: datetime
    continuation_id: str | None = None
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class SaidSearch:
    """The words of a question, and the messages of the user that have them.

    `exact` have all words with which the question tells its topic, oldest first. `similar` have at least half
    of its words, best first.
    """

    question: RecallQuestion
    exact: tuple[SaidMessage, ...] = ()
    similar: tuple[SaidMessage, ...] = ()


class Dialogue(Protocol):
    """The earlier turns of a session, without the present one. They are read when they are needed."""

    async def list_recent(self, limit: int) -> list[Continuation]:
        """Return the newest completed turns, oldest of them first."""

    async def list_cancelled(self, limit: int) -> list[Continuation]:
        """Return the newest turns that were cancelled, for example because the user said something else.

        The oldest of them is first.
        """

    async def list_between(self, start: datetime, end: datetime, limit: int) -> list[Continuation]:
        """Return the first completed turns of a stretch of time, oldest first."""

    async def list_said(self, limit: int) -> list[SaidMessage]:
        """Return the newest messages of the user in the transcript, oldest of them first.

        The transcript also has what was said in the session that this one is a copy of.
        """

    async def list_said_between(self, start: datetime | None, end: datetime) -> list[SaidMessage]:
        """Return what the user said in a time, oldest first. Of a long time, only parts of it are read.

        The first message is among them. With no `start`, the time begins with the transcript.
        """

    async def search_said(self, question: str, language: str, now: datetime) -> SaidSearch:
        """Find the messages of the user that have the words of a question."""

    async def find_last_answer(self) -> str:
        """Return the last answer in the transcript; empty without one."""

    async def explain_action(self, entity_id: str | None = None) -> ActionExplanation | None:
        """Explain the newest action of the session, or the owner's newest action on one entity."""

    async def list_waiting(self) -> list[WaitingTurn]:
        """Return what waits to be done or told in the session, oldest first."""

    async def list_facts(self) -> list[str]:
        """Return the noted facts that the owner or the session knows, the newest last."""


class NoDialogue:
    """The dialogue of a sentence with no earlier turns."""

    async def list_recent(self, limit: int) -> list[Continuation]:
        return []

    async def list_cancelled(self, limit: int) -> list[Continuation]:
        return []

    async def list_between(self, start: datetime, end: datetime, limit: int) -> list[Continuation]:
        return []

    async def list_said(self, limit: int) -> list[SaidMessage]:
        return []

    async def list_said_between(self, start: datetime | None, end: datetime) -> list[SaidMessage]:
        return []

    async def search_said(self, question: str, language: str, now: datetime) -> SaidSearch:
        return SaidSearch(RecallQuestion(()))

    async def find_last_answer(self) -> str:
        return ""

    async def explain_action(self, entity_id: str | None = None) -> ActionExplanation | None:
        return None

    async def list_waiting(self) -> list[WaitingTurn]:
        return []

    async def list_facts(self) -> list[str]:
        return []


NO_DIALOGUE = NoDialogue()


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence of the user, the names of the allowed tools, and the results of the calls made for it.

    `area` is the place of the user in the home, `language` the language of the sentence, and `caller` the
    user; None is unknown. `planned_in` is the language in which the calls were planned. `dialogue` has the
    earlier turns of the session. `has_model` is True if a language model answers the sentences that no
    intents understand.
    """

    text: str
    session: Session
    tools: frozenset[str]
    results: tuple[LocalCallResult, ...] = ()
    area: str | None = None
    language: str | None = None
    caller: TurnCaller | None = None
    dialogue: Dialogue = NO_DIALOGUE
    has_model: bool = True
    planned_in: str | None = None


class Intents(Protocol):
    """Understands some sentences without a model.

    The runtime asks again with the results of the tool calls. An adapter keeps no state between the two
    requests, because another process may make the second one after a crash.
    """

    async def understand(self, utterance: Utterance) -> Answer | None:
        """Return an answer or tool calls. Return None to leave the sentence to the model."""


def make_local_answer(text: str, citations: tuple[Citation, ...] = ()) -> Answer:
    """Return an `Answer` with a text that no model wrote, and its sources."""
    return Answer(text, local=True, citations=citations)


def make_local_call(name: str, **arguments: Any) -> Answer:
    """Return an `Answer` with one tool call that no model requested."""
    return make_local_calls(name, {"local": arguments})


def make_local_calls(name: str, arguments_by_call_id: Mapping[str, dict[str, Any]]) -> Answer:
    """Return an `Answer` with several calls of one tool that no model requested."""
    return Answer(
        tool_calls=tuple(
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for call_id, arguments in arguments_by_call_id.items()
        ),
        local=True,
    )
