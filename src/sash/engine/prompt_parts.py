"""The parts of a prompt that was sent: their tokens, and what differs from the model call before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sash.memory.tokens import TokenCounter
from sash.values.prompts import TOOLS, hash_json

Change = Literal["same", "extended", "changed", "new"]
TURN = "turn"


@dataclass(frozen=True, slots=True)
class SentPart:
    """A part of a prompt. `tokens` is our own count, and None if a piece of the part is missing.

    The provider may count a little differently. The tokens of all parts, and 3 more for the start of the
    reply, are those of the whole prompt. They are counted for the default model, even if another one
    answered.

    `change` compares the part with the session's model call before. An extended part begins with the whole
    part of that call. It is None if unknown: the earlier prompt was dropped, or a text was changed since. The
    part "turn" has the messages of the turn itself, and is new in the first call of a turn.
    """

    name: str
    tokens: int | None
    change: Change | None


class RestoredPart(NamedTuple):
    """A part as it was sent: messages, or tools. `key` is the same for the same content.

    `is_complete` is False if a piece is missing. `is_exact` is False if the model received something else.
    """

    name: str
    key: tuple[str, int | None]
    body: tuple[dict[str, Any], ...]
    is_complete: bool
    is_exact: bool


class PartDescriber:
    """Counts and compares parts. It counts a message once, because most calls of a turn have the same."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    def describe(
        self, parts: Sequence[RestoredPart], before: Sequence[RestoredPart] | None
    ) -> tuple[SentPart, ...]:
        """Return the parts of a prompt. `before` are those of the call before, or None if unknown."""
        by_name = {part.name: part for part in before or ()}
        described = []
        for part in parts:
            earlier = by_name.get(part.name)
            is_known = before is not None or part.name == TURN
            change = _find_change(part, earlier) if is_known else None
            described.append(SentPart(part.name, self._count(part), change))
        return tuple(described)

    def _count(self, part: RestoredPart) -> int | None:
        if not part.is_complete:
            return None
        if part.name == TOOLS:
            key = part.key[0]
            if key not in self._known:
                self._known[key] = self._counter.count_tools(part.body)
            return self._known[key]
        return sum(map(self._count_message, part.body))

    def _count_message(self, message: dict[str, Any]) -> int:
        key = hash_json(message)
        if key not in self._known:
            content, calls = message["content"], message.get("tool_calls", ())
            self._known[key] = self._counter.count_message(content, calls, message.get("name"))
        return self._known[key]


def _find_change(part: RestoredPart, before: RestoredPart | None) -> Change | None:
    """Compare a part with the one of the same name in the call before. None if that is unknown."""
    if before is None:
        return "new"
    if part.key == before.key:
        return "same"
    if not (part.is_exact and before.is_exact):
        return None
    if part.body == before.body:
        return "same"
    return "extended" if _begins_with(part.body, before.body) else "changed"


def _begins_with(body: Sequence[dict[str, Any]], start: Sequence[dict[str, Any]]) -> bool:
    """Return whether messages begin with others, or one text begins with another."""
    if len(body) == len(start) == 1 and isinstance(body[0].get("content"), str):
        text = start[0].get("content")
        return isinstance(text, str) and bool(text) and body[0]["content"].startswith(text)
    return bool(start) and list(body[: len(start)]) == list(start)
