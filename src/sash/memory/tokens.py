"""Exact token counts for OpenAI models, offline: the rank files ship inside the package.

The text of a message is counted exactly. What a provider wraps around it (roles, tool calls, tool
schemas, images) follows its published formulas. For a model whose tokeniser nobody publishes the
count is that of o200k_base, and `exact` says False.
"""

import base64
import gzip
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

import tiktoken

from sash.errors import InvalidInput, UnknownEncoding
from sash.memory.images import image_cost, image_tokens
from sash.values.validation import check_text

DEFAULT_ENCODING = "o200k_base"

# The pattern that splits text before the byte pairs are merged, and the checksum of the rank file:
# both are the definition of an encoding, as published with tiktoken (see data/NOTICE).
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

# Chat format: <|start|>role<|sep|>…<|end|> around a message, and the opening of the reply.
_PER_MESSAGE = 4
_PER_NAME = 1
_PER_TOOL_CALL = 3
PER_REPLY = 3
# An audio second is 10 tokens; without decoding it, a part is taken as 30 seconds.
_PER_AUDIO = 300

# tiktoken's Rust side panics on a run of about a million white-space characters.
_LONG_RUN = 100_000
_blanks = re.compile(r"\s+")
_REMEMBERED = 2048
_REMEMBERED_CHARS = 4096

_loading = threading.Lock()


def count_text(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Return the exact number of tokens of `text`; special tokens in it count as plain text."""
    if isinstance(text, str):
        check_text(text)
    return _count(_load(encoding), text)


def encoding_for_model(model: str) -> str | None:
    """Return the encoding of an OpenAI model, or None for a model that is not known."""
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

    The ranks are loaded on first use, which takes a fraction of a second: from an event loop, call
    `load` in a thread first (`ready` says whether it is still to be done).
    """

    def __init__(self, model: str | None = None) -> None:
        known = DEFAULT_ENCODING if model is None else encoding_for_model(model)
        self.encoding = known or DEFAULT_ENCODING
        self.exact = known is not None
        self._image = image_cost((model or "").rpartition("/")[2])
        self._encoding: tiktoken.Encoding | None = None
        self._counts: dict[str, int] = {}

    @property
    def ready(self) -> bool:
        """Whether the ranks are loaded, so that counting does not block."""
        return self._encoding is not None

    def load(self) -> tiktoken.Encoding:
        """Load the ranks, once a process."""
        self._encoding = _load(self.encoding)
        return self._encoding

    def count_text(self, text: str) -> int:
        """Count text; what was counted lately and is not too long is remembered."""
        count = self._counts.get(text)
        if count is None:
            count = _count(self._encoding or self.load(), text)
            if len(text) <= _REMEMBERED_CHARS:
                if len(self._counts) >= _REMEMBERED:
                    self._counts.clear()
                self._counts[text] = count
        return count

    def count_message(
        self,
        content: str | Iterable[Mapping[str, Any]],
        tool_calls: Iterable[Mapping[str, Any]] = (),
        name: str | None = None,
    ) -> int:
        """Count one message with what the chat format wraps around it."""
        total = _PER_MESSAGE
        if isinstance(content, str):
            total += self.count_text(content)
        else:
            total += sum(map(self._count_part, content))
        for call in tool_calls:
            function = call["function"]
            total += _PER_TOOL_CALL + self.count_text(function["name"])
            total += self.count_text(function["arguments"])
        if name:
            total += _PER_NAME + self.count_text(name)
        return total

    def count_messages(
        self, messages: Iterable[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]] = ()
    ) -> int:
        """Count a whole request in OpenAI form: messages, tool schemas, the opening of the reply."""
        return (
            PER_REPLY
            + self.count_tools(tools)
            + sum(
                self.count_message(m.get("content") or "", m.get("tool_calls") or (), m.get("name"))
                for m in messages
            )
        )

    def count_tools(self, tools: Iterable[Mapping[str, Any]]) -> int:
        """Count tool schemas in OpenAI form, by the formula that OpenAI's cookbook gives."""
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
        """Count what a JSON schema says, and the schemas in it, in the cookbook's way."""
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
            return image_tokens(part.get("image_url") or "", part.get("detail"), self._image)
        if kind == "input_audio":
            return _PER_AUDIO
        return self.count_text(json.dumps(part, ensure_ascii=False))


def _count(encoding: tiktoken.Encoding, text: str) -> int:
    if not isinstance(text, str):
        raise InvalidInput(f"text must be a string, got {type(text).__name__}")
    if len(text) >= _LONG_RUN and any(m.end() - m.start() >= _LONG_RUN for m in _blanks.finditer(text)):
        # The same pattern and merges, with the splitting done by the `regex` module.
        return len(encoding._encode_only_native_bpe(text))  # noqa: SLF001
    return len(encoding.encode_ordinary(text))


def _load(name: str) -> tiktoken.Encoding:
    if not isinstance(name, str):
        raise UnknownEncoding(f"an encoding is named by a string, got {type(name).__name__}")
    with _loading:
        return _load_once(name)


@cache
def _load_once(name: str) -> tiktoken.Encoding:
    if name not in _ENCODINGS:
        raise UnknownEncoding(f"no encoding {name!r}: use one of {', '.join(_ENCODINGS)}")
    pattern, checksum = _ENCODINGS[name]
    packed = files("sash").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    data = gzip.decompress(packed)
    if hashlib.sha256(data).hexdigest() != checksum:
        raise UnknownEncoding(f"the rank file of {name} is damaged: reinstall sash")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
