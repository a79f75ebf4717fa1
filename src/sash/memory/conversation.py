"""The last N turns of one conversation, perfectly intact. Synchronous, and safe to share between threads."""

import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, overload

from sash.errors import InvalidInput, InvalidLimit
from sash.values.clock import Clock, SystemClock
from sash.values.ids import Ulids
from sash.values.validation import MAX_MESSAGE_BYTES, check_limit, check_size, check_text, copy_json

MAX_TURNS = 100


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn as who asks for the history is told of it; without an answer it has none yet."""

    id: str
    user_message: str
    ai_response: str | None
    timestamp: str
    metadata: dict[str, Any]


class ConversationManager:
    """Keeps the last `max_turns` turns word for word, and deletes the oldest: first in, first out."""

    def __init__(
        self,
        max_turns: int = 10,
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self.max_turns = check_max_turns(max_turns)
        self._max_message_bytes = check_limit("max_message_bytes", max_message_bytes)
        self._turns: deque[PastTurn] = deque(maxlen=max_turns)
        self._total = 0
        self._clock = clock or SystemClock()
        self._ulids = Ulids()
        self._lock = threading.Lock()

    def add_turn(
        self,
        user_message: str,
        ai_response: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Add a turn, push out the oldest if the window is full, and return the turn's id."""
        self._check("user_message", user_message)
        if ai_response is not None:
            self._check("ai_response", ai_response)
        own = self._check_metadata(metadata)
        with self._lock:
            now = self._clock.now()
            turn_id = self._ulids.new(now)
            self._turns.append(PastTurn(turn_id, user_message, ai_response, stamp(now), own))
            self._total += 1
        return turn_id

    def update_turn_response(self, turn_id: str, ai_response: str) -> bool:
        """Set the answer of a turn, as when it was streamed; False if the turn is not in the window."""
        self._check("turn_id", turn_id)
        self._check("ai_response", ai_response)
        with self._lock:
            for n, turn in enumerate(self._turns):
                if turn.id == turn_id:
                    self._turns[n] = replace(turn, ai_response=ai_response)
                    return True
        return False

    @overload
    def get_conversation_history(
        self, format_as_text: Literal[False] = False, include_metadata: bool = True
    ) -> list[dict[str, Any]]: ...

    @overload
    def get_conversation_history(
        self, format_as_text: Literal[True], include_metadata: bool = True
    ) -> str: ...

    def get_conversation_history(
        self, format_as_text: bool = False, include_metadata: bool = True
    ) -> list[dict[str, Any]] | str:
        """Return the turns in the window, oldest first, as dicts or as text to read."""
        with self._lock:
            turns = list(self._turns)
        if format_as_text:
            return as_text(turns, include_metadata)
        return as_dicts(turns, include_metadata)

    def get_recent_turns(self, n: int = 5) -> list[dict[str, Any]]:
        """Return the `n` newest turns, oldest of them first."""
        check_newest(n)
        with self._lock:
            turns = list(self._turns)
        return as_dicts(turns[max(0, len(turns) - n) :])

    def get_statistics(self) -> dict[str, Any]:
        """Return how many turns there are, were, and are gone."""
        with self._lock:
            turns, total = self._turns, self._total
            return {
                "current_turns": len(turns),
                "max_turns": self.max_turns,
                "total_turns_ever": total,
                "deleted_turns": total - len(turns),
                "oldest_turn": turns[0].timestamp if turns else None,
                "newest_turn": turns[-1].timestamp if turns else None,
            }

    def clear_conversation(self) -> None:
        """Delete all turns; `total_turns_ever` goes on counting."""
        with self._lock:
            self._turns.clear()

    def _check(self, what: str, value: Any) -> None:
        if type(value) is not str:
            raise InvalidInput(f"{what} must be a string, got {type(value).__name__}")
        check_size(len(check_text(value).encode()), self._max_message_bytes)

    def _check_metadata(self, metadata: Any) -> dict[str, Any]:
        if not isinstance(metadata, dict | None):
            raise InvalidInput(f"metadata must be a dict, got {type(metadata).__name__}")
        own: dict[str, Any] = copy_json(metadata or {})
        check_size(len(json.dumps(own)), self._max_message_bytes)
        return own


def check_max_turns(max_turns: Any) -> int:
    """Refuse a window that has no turn or too many."""
    if type(max_turns) is not int or not 1 <= max_turns <= MAX_TURNS:
        raise InvalidLimit(
            f"max_turns must be a whole number from 1 to {MAX_TURNS}, got {max_turns!r}", limit="max_turns"
        )
    return max_turns


def check_newest(n: Any) -> int:
    """Refuse a number of turns that is none."""
    if type(n) is not int or n < 0:
        raise InvalidLimit(f"n must be 0 or more, got {n!r}", limit="n")
    return n


def stamp(at: datetime) -> str:
    """Write a time as the history has it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_dicts(turns: Iterable[PastTurn], include_metadata: bool = True) -> list[dict[str, Any]]:
    """Return turns as JSON values."""
    fields = list(map(asdict, turns))
    if not include_metadata:
        for turn in fields:
            del turn["metadata"]
    return fields


def as_text(turns: Iterable[PastTurn], include_metadata: bool = True) -> str:
    """Return turns as text to read."""
    return "\n\n".join(_as_text(turn, include_metadata) for turn in turns)


def _as_text(turn: PastTurn, include_metadata: bool) -> str:
    lines = [f"User: {turn.user_message}"]
    if turn.ai_response is not None:
        lines.append(f"AI: {turn.ai_response}")
    if include_metadata:
        lines.insert(0, f"[{turn.timestamp}]")
        if turn.metadata:
            lines.append(f"Metadata: {json.dumps(turn.metadata, ensure_ascii=False)}")
    return "\n".join(lines)
