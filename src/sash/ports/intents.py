"""The intents port: who understands a sentence answers it, or calls a tool for it; nobody has to."""

import json
from dataclasses import dataclass
from typing import Any, Protocol

from sash.ports.model import Answer
from sash.values.sessions import Session


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call that was made for a sentence has returned."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence, with the tools that may be called, and the results of those that were called for it."""

    text: str
    session: Session
    tools: frozenset[str]
    results: tuple[ToolResult, ...] = ()


class Intents(Protocol):
    """Understands some sentences, and None of the others.

    It is asked again with the results of the calls that it wanted, and knows nothing else of the first time:
    after a crash it may be another process that is asked.
    """

    async def understand(self, heard: Utterance) -> Answer | None: ...


def answering(text: str) -> Answer:
    """Answer without a model."""
    return Answer(text, local=True)


def calling(name: str, **arguments: Any) -> Answer:
    """Call a tool without a model."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return Answer(tool_calls=({"id": "local", "type": "function", "function": function},), local=True)
