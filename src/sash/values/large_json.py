"""JSON of any size, read and written in small steps.

One call of Python's own JSON parser holds the interpreter until it has read the whole text, also in a thread.
A large text would stop the event loop for seconds. The functions here give way between values.
"""

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

LARGE_BYTES = 1 << 18


class _SteppingDecoder(json.JSONDecoder):
    """Python's decoder without its C code for objects and arrays. Strings still use C code."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object, self.parse_array = JSONObject, JSONArray
        self.scan_once = py_make_scanner(self)


def parse_json(text: bytes) -> Any:
    """Return the values of a JSON text. Raise `ValueError` or `RecursionError` as `json.loads` does."""
    if len(text) < LARGE_BYTES:
        return json.loads(text)
    decoder = getincrementaldecoder(json.detect_encoding(text))("surrogatepass")
    starts = range(0, len(text), LARGE_BYTES)
    pieces = [decoder.decode(text[start : start + LARGE_BYTES]) for start in starts]
    return _SteppingDecoder().decode("".join((*pieces, decoder.decode(b"", final=True))))


def encode_in_steps(data: dict[str, Any], *, ensure_ascii: bool = False) -> Iterator[str]:
    """Yield the JSON text of an object in pieces. Each item of a list in it is on its own line."""
    for n, (name, part) in enumerate(data.items()):
        yield f"{',' if n else '{'}\n{json.dumps(name)}: "
        if not isinstance(part, list) or not part:
            yield json.dumps(part, ensure_ascii=ensure_ascii)
            continue
        for k, item in enumerate(part):
            yield f"{',' if k else '['}\n{json.dumps(item, ensure_ascii=ensure_ascii)}"
        yield "\n]"
    yield "\n}\n"


def has_more_values(text: bytes, limit: int) -> bool:
    """Return True if a JSON text has more than `limit` values. Commas inside of strings do not count."""
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * limit:  # There is at most one key for each value.
        return True
    outside_strings = plain.split(b'"')[::2]
    return sum(part.count(b",") for part in outside_strings) >= limit
