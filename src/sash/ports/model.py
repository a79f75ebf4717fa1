"""The model port: a request goes in, deltas of text, reasoning and tool calls come out as they are made."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sash.values.sessions import ModelConfig
from sash.values.validation import well_formed

MAX_TOKENS = 1 << 40


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked: messages and tools in OpenAI form, for reading only.

    A system message that is there for this turn only is marked `volatile`.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    config: ModelConfig = field(default_factory=ModelConfig)


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the tool call number `index`: pieces are joined, but a `whole` one stands for itself.

    Some servers give all calls the same number: another id is another call.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them, and which model they are to be paid for."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    model: str = ""

    def __post_init__(self) -> None:
        """Take what a server says with a grain of salt: counts are whole numbers, and not below 0."""
        for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
            object.__setattr__(self, name, _count(getattr(self, name)))
        if self.cached_tokens > self.input_tokens:
            object.__setattr__(self, "cached_tokens", self.input_tokens)
        if not isinstance(self.model, str):
            object.__setattr__(self, "model", "")


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < MAX_TOKENS else 0


@dataclass(frozen=True, slots=True)
class Stop:
    reason: str


Delta = TextDelta | ReasoningDelta | ToolCallDelta | Usage | Stop


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model's deltas add up to; `local` if no model was asked."""

    content: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = "stop"
    local: bool = False


class Model(Protocol):
    """Anything that answers a request as a stream of deltas."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]: ...


def name_of(model: Model) -> str | None:
    """Return the name of the model that answers if a session names none, if it has one."""
    return getattr(model, "name", None)


def names_of(model: Model) -> tuple[str | None, ...]:
    """Return the names of all models that may answer."""
    names: tuple[str | None, ...] = getattr(model, "names", None) or (name_of(model),)
    return names


def text_of(message: dict[str, Any]) -> str:
    """Return the words of a message."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


async def close(model: object) -> None:
    """Let go of a model's connections, if it has any; it may be asked again, and makes new ones then."""
    if (end := getattr(model, "close", None)) is not None:
        await end()


async def collect(deltas: AsyncIterator[Delta], on_text: Callable[[str], None]) -> Answer:
    """Add deltas up to an answer; `on_text` sees the text as it grows."""
    content, reasoning, usage, stop = "", "", Usage(), "stop"
    calls: list[dict[str, Any]] = []
    latest: dict[int, dict[str, Any]] = {}
    async for delta in deltas:
        if isinstance(delta, TextDelta):
            content += delta.text
            on_text(content)
        elif isinstance(delta, ToolCallDelta):
            call = latest.get(delta.index)
            if call is None or (delta.id and call["id"] not in ("", delta.id)):
                call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                latest[delta.index] = call
                calls.append(call)
            _add_to_call(call, delta)
        elif isinstance(delta, ReasoningDelta):
            reasoning += delta.text
        elif isinstance(delta, Usage):
            usage = delta
        else:
            stop = delta.reason
    for call in calls:
        call["id"] = well_formed(call["id"])
        call["function"] = {key: well_formed(text) for key, text in call["function"].items()}
    return Answer(well_formed(content), tuple(calls), well_formed(reasoning), usage, stop)


def _add_to_call(call: dict[str, Any], delta: ToolCallDelta) -> None:
    function = call["function"]
    call["id"] = call["id"] or delta.id
    if delta.whole:
        function |= {"name": delta.name, "arguments": delta.arguments}
        return
    if delta.name != function["name"]:
        function["name"] += delta.name
    function["arguments"] += delta.arguments
