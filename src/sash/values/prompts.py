"""The prompts that a turn sent to a model, stored as what no other record has.

A prompt is a list of parts: system text, tools, memory, the window, and texts of one turn. A part is stored
once, with the turn that used it first, and later prompts name it by its key. The messages of the window are
in the transcript, and those of the turn itself are in its steps. The key of a part is a hash of its content,
so a prompt that cannot be restored word for word is noticed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sash.values.bounds import Natural

WINDOW = "window"
TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of prompts: a list of messages or tools, or a `window`.

    A window has the messages of the window `after`, and then `items`. Each item has the id of a message, and
    the text before it that is not in the transcript, if any.
    """

    key: str
    body: tuple[Any, ...] = ()
    after: str | None = None
    items: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class PartUse:
    """A part in a prompt. Of a window, the last `count` messages were sent."""

    name: str
    key: str
    count: Natural | None = None


@dataclass(frozen=True, slots=True)
class PromptRecord:
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
    return blake2b(text.encode(), digest_size=10).hexdigest()


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
