"""Token counts for OpenAI models, offline. The package contains the data of the tokenisers (rank files).

The text of a message is counted exactly. Roles, tool calls, tool schemas and images follow the published
formulas of the provider. A model without a published tokeniser is counted with o200k_base, and
`TokenCounter.exact` is False.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sash.errors import InvalidInput
from sash.memory.encodings import DEFAULT_ENCODING, Encoding, find_encoding, load_encoding
from sash.memory.images import count_image_tokens, find_image_cost
from sash.values.validation import check_text

# The chat format adds <|start|>role<|sep|>…<|end|> to each message, and opens the reply.
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_NAME = 1
_TOKENS_PER_TOOL_CALL = 3
TOKENS_PER_REPLY = 3
# A second of audio costs 10 tokens. Audio is not decoded; every part counts as 30 seconds.
_TOKENS_PER_AUDIO = 300

_MAX_CACHED_TEXTS = 2048
_MAX_CACHED_LENGTH = 4096


def count_text(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Return the exact number of tokens of `text`. Special tokens count as ordinary text."""
    if isinstance(text, str):
        check_text(text)
    return _count_tokens(load_encoding(encoding), text)


class TokenCounter:
    """Counts text, messages and tool schemas for one model.

    The first use loads the rank file, which takes a fraction of a second. In an event loop, first call `load`
    in a thread (`is_loaded` is True afterwards).
    """

    def __init__(self, model: str | None = None) -> None:
        known = DEFAULT_ENCODING if model is None else find_encoding(model)
        self.encoding = known or DEFAULT_ENCODING
        self.exact = known is not None
        self._image_cost = find_image_cost((model or "").rpartition("/")[2])
        self._encoding: Encoding | None = None
        self._counts: dict[str, int] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether the rank file is loaded, so that counting does not block."""
        return self._encoding is not None

    def load(self) -> Encoding:
        """Load the rank file. All counters of a process share it."""
        self._encoding = load_encoding(self.encoding)
        return self._encoding

    def count_text(self, text: str) -> int:
        """Count the tokens of a text. The counts of recent short texts are cached."""
        count = self._counts.get(text)
        if count is None:
            count = _count_tokens(self._encoding or self.load(), text)
            if len(text) <= _MAX_CACHED_LENGTH:
                if len(self._counts) >= _MAX_CACHED_TEXTS:
                    self._counts.clear()
                self._counts[text] = count
        return count

    def count_message(
        self,
        content: str | Iterable[Mapping[str, Any]],
        tool_calls: Iterable[Mapping[str, Any]] = (),
        name: str | None = None,
    ) -> int:
        """Count one message, with the tokens that the chat format adds."""
        total = _TOKENS_PER_MESSAGE
        if isinstance(content, str):
            total += self.count_text(content)
        else:
            total += sum(map(self._count_part, content))
        for call in tool_calls:
            function = call["function"]
            total += _TOKENS_PER_TOOL_CALL + self.count_text(function["name"])
            total += self.count_text(function["arguments"])
        if name:
            total += _TOKENS_PER_NAME + self.count_text(name)
        return total

    def count_messages(
        self, messages: Iterable[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]] = ()
    ) -> int:
        """Count a whole request in OpenAI's format: messages, tool schemas, start of the reply."""
        return (
            TOKENS_PER_REPLY
            + self.count_tools(tools)
            + sum(
                self.count_message(m.get("content") or "", m.get("tool_calls") or (), m.get("name"))
                for m in messages
            )
        )

    def count_tools(self, tools: Iterable[Mapping[str, Any]]) -> int:
        """Count tool schemas in OpenAI's format, with the formula of OpenAI's cookbook."""
        functions = [tool.get("function", tool) for tool in tools]
        if not functions:
            return 0
        per_function = 7 if self.encoding == "o200k_base" else 10
        return 12 + sum(
            per_function
            + self.count_text(f"{f.get('name', '')}:{(f.get('description') or '').rstrip('.')}")
            + self._count_schema(f.get("parameters"))
            for f in functions
        )

    def _count_schema(self, schema: Any) -> int:
        """Count a JSON schema and the schemas inside it, with the formula of the cookbook."""
        if not isinstance(schema, Mapping):
            return 0
        properties = schema.get("properties") or {}
        total = 3 if properties else 0
        for key, value in properties.items():
            named: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
            description = (named.get("description") or "").rstrip(".")
            total += 3 + self.count_text(f"{key}:{named.get('type', '')}:{description}")
            if named.get("enum"):
                total += sum(3 + self.count_text(str(item)) for item in named["enum"]) - 3
            total += self._count_schema(value)
        total += self._count_schema(schema.get("items"))
        for combined in ("anyOf", "oneOf", "allOf"):
            total += sum(map(self._count_schema, schema.get(combined) or ()))
        return total

    def _count_part(self, part: Mapping[str, Any]) -> int:
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text"):
            return self.count_text(part.get("text") or "")
        if kind in ("image_url", "input_image"):
            return count_image_tokens(part.get("image_url") or "", part.get("detail"), self._image_cost)
        if kind == "input_audio":
            return _TOKENS_PER_AUDIO
        return self.count_text(json.dumps(part, ensure_ascii=False))


def _count_tokens(encoding: Encoding, text: str) -> int:
    if not isinstance(text, str):
        raise InvalidInput(f"text must be a string, got {type(text).__name__}")
    return encoding.count(text)
