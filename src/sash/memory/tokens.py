"""Token counts for OpenAI models, offline. The package contains the data of the tokenisers (rank files).

The text of a message is counted exactly. Roles, tool calls, tool schemas and images follow the published
formulas of the provider. A model without a published tokeniser is counted with o200k_base, and
`TokenCounter.exact` is False.
"""

import base64
import gzip
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

import tiktoken

from sash.errors import InvalidInput, UnknownEncoding
from sash.memory.images import count_image_tokens, find_image_cost
from sash.values.validation import check_text

DEFAULT_ENCODING = "o200k_base"

# The definition of each encoding as published with tiktoken (see data/NOTICE): the pattern that splits a text
# before the byte pairs are merged, and the checksum of the rank file.
_ENCODINGS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}

# The chat format adds <|start|>role<|sep|>…<|end|> to each message, and opens the reply.
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_NAME = 1
_TOKENS_PER_TOOL_CALL = 3
TOKENS_PER_REPLY = 3
# A second of audio costs 10 tokens. Audio is not decoded; every part counts as 30 seconds.
_TOKENS_PER_AUDIO = 300

# tiktoken's Rust code panics on a run of about a million white-space characters, so a longer run than this
# is cut. The count of a run of equal characters stays exact.
_MAX_RUN = 1 << 19
_white_space = re.compile(r"\s+")
_MAX_CACHED_TEXTS = 2048
_MAX_CACHED_LENGTH = 4096

_loading = threading.Lock()


def count_text(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Return the exact number of tokens of `text`. Special tokens count as ordinary text."""
    if isinstance(text, str):
        check_text(text)
    return _count_tokens(_load_encoding(encoding), text)


def find_encoding(model: str) -> str | None:
    """Return the name of the encoding of an OpenAI model, or None for an unknown model."""
    if not isinstance(model, str):
        raise InvalidInput(f"model must be a string, got {type(model).__name__}")
    name = model.lower().rpartition("/")[2]
    for candidate in (name, name.partition(":")[0]):
        with suppress(KeyError):
            encoding = tiktoken.encoding_name_for_model(candidate)
            encoding = "o200k_base" if encoding == "o200k_harmony" else encoding
            return encoding if encoding in _ENCODINGS else None
    return None


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
        self._encoding: tiktoken.Encoding | None = None
        self._counts: dict[str, int] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether the rank file is loaded, so that counting does not block."""
        return self._encoding is not None

    def load(self) -> tiktoken.Encoding:
        """Load the rank file. All counters of a process share it."""
        self._encoding = _load_encoding(self.encoding)
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


def _count_tokens(encoding: tiktoken.Encoding, text: str) -> int:
    if not isinstance(text, str):
        raise InvalidInput(f"text must be a string, got {type(text).__name__}")
    if len(text) <= _MAX_RUN:
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(part)) for part in _cut_long_runs(text))


def _cut_long_runs(text: str) -> Iterator[str]:
    """Yield the text in parts without a run of more than `_MAX_RUN` white-space characters."""
    start = 0
    for run in _white_space.finditer(text):
        for end in range(run.start() + _MAX_RUN, run.end(), _MAX_RUN):
            yield text[start:end]
            start = end
    yield text[start:]


def _load_encoding(name: str) -> tiktoken.Encoding:
    if not isinstance(name, str):
        raise UnknownEncoding(f"the name of an encoding must be a string, got {type(name).__name__}")
    with _loading:
        return _read_encoding(name)


@cache
def _read_encoding(name: str) -> tiktoken.Encoding:
    if name not in _ENCODINGS:
        raise UnknownEncoding(f"there is no encoding {name!r}: use one of {', '.join(_ENCODINGS)}")
    pattern, checksum = _ENCODINGS[name]
    packed = files("sash").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    data = gzip.decompress(packed)
    if hashlib.sha256(data).hexdigest() != checksum:
        raise UnknownEncoding(f"the token table of the encoding {name} is damaged: reinstall sash")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
