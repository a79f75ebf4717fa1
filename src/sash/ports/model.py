"""The model port: a request goes in, a stream of deltas (text, reasoning, tool calls, usage) comes out."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from sash.errors import InvalidInput
from sash.values.citations import Citation
from sash.values.sessions import ModelConfig
from sash.values.validation import well_formed

MAX_TOKENS = 1 << 40
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
# Options with these names would contradict the fields of a request.
RESERVED_OPTIONS = frozenset({"model", "messages", "tools", "stream", "temperature", "max_output_tokens"})


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. Messages and tools have OpenAI's chat format; the model must not change them.

    A system message with the key `volatile` belongs to this turn only.
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
    """A fragment of the tool call number `index`. Fragments are joined; a complete delta replaces them.

    Some servers give every call the same index. A different id therefore starts a new call.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them, and the name of the model that the provider bills.

    With `is_free` there is no provider: the answer costs nothing, and its tokens are not counted.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    model: str = ""
    is_free: bool = False

    def __post_init__(self) -> None:
        """Correct wrong counts of a server: cut off fractions, and replace negative or missing ones by 0."""
        counts = (self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens)
        for name, count in zip(_COUNTS, counts, strict=True):
            if type(count) is not int or not 0 <= count < MAX_TOKENS:
                object.__setattr__(self, name, _to_count(count))
        if self.cached_tokens > self.input_tokens:
            object.__setattr__(self, "cached_tokens", self.input_tokens)
        if not isinstance(self.model, str):
            object.__setattr__(self, "model", "")


def _to_count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < MAX_TOKENS else 0


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of an answer. Every complete stream has one."""

    reason: str


Delta = TextDelta | ReasoningDelta | ToolCallDelta | Usage | Stop


@dataclass(frozen=True, slots=True)
class Answer:
    """The sum of a model's deltas. `local` is True if Sash answered without a model.

    `citations` are the sources of a local answer, `topic` is what it is about, and `language` is the one in
    which the sentence was understood.
    """

    content: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    reasoning: str = ""
    usage: Usage = NO_USAGE
    stop_reason: str = "stop"
    local: bool = False
    citations: tuple[Citation, ...] = ()
    topic: dict[str, Any] | None = None
    language: str | None = None


@runtime_checkable
class Model(Protocol):
    """A language model. A subclass implements `stream` and inherits defaults for the rest."""

    @property
    def name(self) -> str | None:
        """The name of the model that answers if a session names none. The default is None: it has no name."""
        return None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of all models that may answer, the usual one first. The default is `name` alone."""
        return (self.name,)

    @property
    def reserved_options(self) -> frozenset[str]:
        """Names that `ModelConfig.options` must not contain, because Sash sets these parameters itself."""
        return RESERVED_OPTIONS

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Answer a request as a stream of deltas. Raise a `ModelError` if that fails."""
        ...

    async def open(self) -> None:
        """Prepare the first request, so that it is faster. The default does nothing."""
        return

    async def close(self) -> None:
        """Close connections. A later request may open them again. The default does nothing."""
        return


class _StreamOnly(Model):
    """Wraps an object that has `stream`, but may lack the other members of the protocol."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def name(self) -> str | None:
        name: str | None = getattr(self._model, "name", None)
        return name

    @property
    def names(self) -> tuple[str | None, ...]:
        names: tuple[str | None, ...] = getattr(self._model, "names", None) or (self.name,)
        return names

    @property
    def reserved_options(self) -> frozenset[str]:
        reserved: frozenset[str] = getattr(self._model, "reserved_options", RESERVED_OPTIONS)
        return reserved

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        deltas: AsyncIterator[Delta] = self._model.stream(request)
        return deltas

    async def open(self) -> None:
        if open_model := getattr(self._model, "open", None):
            await open_model()

    async def close(self) -> None:
        if close := getattr(self._model, "close", None):
            await close()


def complete_model(model: Any) -> Model:
    """Return a model with all members of the protocol. An object that only has `stream` gets the defaults."""
    return model if Model in type(model).__mro__ else _StreamOnly(model)


def check_options(options: Iterable[str], reserved_options: frozenset[str]) -> None:
    """Raise `InvalidInput` if a reserved name is among the options."""
    if refused := reserved_options.intersection(options):
        raise InvalidInput(f"options may not contain {', '.join(sorted(refused))}: Sash sets these itself")


def extract_text(message: dict[str, Any]) -> str:
    """Return the text of a message in OpenAI form; empty if it has only images or recordings."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


async def collect(deltas: AsyncIterator[Delta], on_text: Callable[[str], None]) -> Answer:
    """Add deltas up to an answer. Call `on_text` with the whole text so far whenever text arrives."""
    content, reasoning, usage, stop = "", "", NO_USAGE, "stop"
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
    if delta.is_complete:
        function |= {"name": delta.name, "arguments": delta.arguments}
        return
    if delta.name != function["name"]:
        function["name"] += delta.name
    function["arguments"] += delta.arguments
