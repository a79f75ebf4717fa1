"""The intents port: an adapter answers a sentence without a model, calls a tool for it, or declines it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sash.ports.model import Answer
from sash.ports.tools import DENIED_BY_USER
from sash.values.citations import Citation
from sash.values.continuations import TurnCaller
from sash.values.sessions import Session

# The result of a tool that found no meaning in the sentence after all. The model then answers it.
NOT_UNDERSTOOD = {"understood": False}


@dataclass(frozen=True, slots=True)
class LocalCallResult:
    """The result of a tool call that was made for a sentence."""

    name: str
    content: str

    @property
    def is_denied_by_user(self) -> bool:
        """Whether the user was asked for an approval, and said no."""
        return self.content == f"not done: {DENIED_BY_USER}"

    def parse_object(self) -> dict[str, Any]:
        """Return the content as a JSON object. Empty if it is not one, as for an error message."""
        try:
            value = json.loads(self.content)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence of the user, the names of the allowed tools, and the results of the calls made for it.

    `area` is the place of the user in the home, `language` the language of the sentence, and `caller` the
    user; None is unknown.
    """

    text: str
    session: Session
    tools: frozenset[str]
    results: tuple[LocalCallResult, ...] = ()
    area: str | None = None
    language: str | None = None
    caller: TurnCaller | None = None


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
