"""The encodings of OpenAI's models: which model has which, and how to load one without a network."""

import binascii
import gzip
import hashlib
import io
import re
import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from sash.errors import InvalidInput, UnknownEncoding

DEFAULT_ENCODING = "o200k_base"
_DATA = Path(__file__).parents[1] / "data"


class Encoding(Protocol):
    """Splits text into the tokens of a model."""

    def count(self, text: str) -> int:
        """Return the exact number of tokens of a text. Special tokens count as ordinary text."""
        ...


class _Definition(NamedTuple):
    """An encoding as it is published with tiktoken (see data/NOTICE).

    `pattern` splits a text before its byte pairs are merged. `checksum` is the SHA-256 of the rank file.
    """

    pattern: str
    checksum: str


_DEFINITIONS = {
    "cl100k_base": _Definition(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": _Definition(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
_MODELS = {
    "o200k_base": re.compile(
        r"(?:ft:)?(?:o1|o3|o4-mini|chatgpt-4o|gpt-(?:4o|4\.1|4\.5|5|oss))(?![a-z0-9])", re.IGNORECASE
    ),
    "cl100k_base": re.compile(
        r"(?:ft:)?(?:gpt-(?:4|3\.5|35)|text-embedding-(?:ada-002|3)|(?:davinci|babbage)-002)(?![a-z0-9.])",
        re.IGNORECASE,
    ),
}

_loading = threading.Lock()


def find_encoding(model: str) -> str | None:
    """Return the name of the encoding of an OpenAI model, or None for an unknown model."""
    if not isinstance(model, str):
        raise InvalidInput(f"model must be a string, got {type(model).__name__}")
    name = model.rpartition("/")[2]
    return next((encoding for encoding, pattern in _MODELS.items() if pattern.match(name)), None)


def load_encoding(name: str) -> Encoding:
    """Return an encoding. The first call reads its rank file, which takes a fraction of a second."""
    if not isinstance(name, str):
        raise UnknownEncoding(f"the name of an encoding must be a string, got {type(name).__name__}")
    with _loading:
        return _load(name)


@cache
def _load(name: str) -> Encoding:
    if name not in _DEFINITIONS:
        raise UnknownEncoding(f"there is no encoding {name!r}: use one of {', '.join(_DEFINITIONS)}")
    pattern, ranks = _DEFINITIONS[name].pattern, _read_ranks(name)
    try:
        from sash.memory.tiktoken_encoding import TiktokenEncoding
    except ImportError:
        # The package for Home Assistant has no tiktoken (see docs/decisions/0002-tokens.md).
        from sash.memory.byte_pair_encoding import BytePairEncoding

        return BytePairEncoding(pattern, ranks)
    return TiktokenEncoding(name, pattern, ranks)


def _read_ranks(name: str) -> dict[bytes, int]:
    data = gzip.decompress((_DATA / f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(data).hexdigest() != _DEFINITIONS[name].checksum:
        raise UnknownEncoding(f"the token table of the encoding {name} is damaged: reinstall sash")
    # A list of all lines would leave a gap of several megabytes in the memory of the process.
    lines = (line.partition(b" ") for line in io.BytesIO(data))
    return {binascii.a2b_base64(token): int(rank) for token, _, rank in lines}
