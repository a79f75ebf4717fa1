"""The prompts that a turn sent to a model, stored as what no other record has.

A prompt is a list of parts: system text, tools, memory, the window, and texts of one turn. A part is stored
once, with the turn that used it first, and later prompts name it by its key. The messages of the window are
in the transcript, and those of the turn itself are in its steps. The key of a part is a hash of its content,
so a prompt that cannot be restored word for word is noticed.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from sash.values.bounds import Natural

WINDOW = "window"
TOOLS = "tools"


# Tuples, because a turn stores several of them, and their JSON has no names of fields.
class PromptPart(NamedTuple):
    """A part of prompts. `after` is the key of an earlier part that it continues, or None.

    A part of messages or tools has them in `body`. With `after` it has one message, whose text begins with
    `kept_chars` characters of the earlier one. A window has the messages of the earlier window, and then
    those of `ids`, as `join_ids` writes them. `texts` were sent before some of these messages, and are not
    in the transcript. Their keys are positions in `ids`.
    """

    key: str
    body: tuple[Any, ...] = ()
    after: str | None = None
    kept_chars: Natural = 0
    ids: str = ""
    texts: dict[int, str] = {}  # noqa: RUF012 (never changed)


class PartUse(NamedTuple):
    """A part in a prompt. Of a window, the last `last_count` messages were sent."""

    name: str
    key: str
    last_count: Natural | None = None


class PromptRecord(NamedTuple):
    """One model call. `step_count` is the number of the turn's steps before it.

    Without `parts`, they are the same as in the call before. `check` is a hash of the turn's own messages.
    """

    step_count: Natural
    model: str | None
    check: str
    parts: tuple[PartUse, ...] = ()


@dataclass(frozen=True, slots=True)
class SentPrompts:
    """Model calls, and the parts that they were the first to use."""

    records: tuple[PromptRecord, ...] = ()
    parts: tuple[PromptPart, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.records or self.parts)

    def __add__(self, other: "SentPrompts") -> "SentPrompts":
        return SentPrompts(self.records + other.records, self.parts + other.parts)


NO_PROMPTS = SentPrompts()


def hash_json(*values: Any) -> str:
    """Return a short hash of JSON values."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=9).digest()).decode()


def join_ids(ids: Iterable[str]) -> str:
    """Write ids as one text. Neighbours begin alike, so each id is the difference from the last one.

    Two digits say how many characters are the same. The rest is quoted, because an imported id may have
    spaces.
    """
    written, last = [], ""
    for each in ids:
        pairs = enumerate(zip(last[:99], each, strict=False))
        same = next((index for index, (a, b) in pairs if a != b), min(len(last), len(each), 99))
        written.append(f"{same:02}{quote(each[same:])}")
        last = each
    return " ".join(written)


def split_ids(text: str) -> list[str]:
    """Return the ids that `join_ids` wrote."""
    ids: list[str] = []
    for item in text.split():
        ids.append((ids[-1][: int(item[:2])] if ids else "") + unquote(item[2:]))
    return ids


def find_needed(records: Iterable[PromptRecord], parts: Mapping[str, PromptPart]) -> dict[str, PromptPart]:
    """Return the parts that prompts use, also those that a window follows."""
    open_keys = [use.key for record in records for use in record.parts]
    needed: dict[str, PromptPart] = {}
    while open_keys:
        part = parts.get(open_keys.pop())
        if part is not None and part.key not in needed:
            needed[part.key] = part
            open_keys += () if part.after is None else (part.after,)
    return needed


def move_parts(dropped: Sequence[SentPrompts], kept: Sequence[SentPrompts]) -> tuple[PromptPart, ...]:
    """Return the parts of dropped prompts that the kept ones still need."""
    own = {part.key: part for sent in dropped for part in sent.parts}
    known = own | {part.key: part for sent in kept for part in sent.parts}
    needed = find_needed((record for sent in kept for record in sent.records), known)
    return tuple(part for key, part in own.items() if key in needed)
