"""The last N turns of one conversation, word for word. Synchronous and thread-safe."""

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
    """A turn of the history. `ai_response` is None until the answer is known."""

    id: str
    user_message: str
    ai_response: str | None
    timestamp: str
    metadata: dict[str, Any]


class ConversationManager:
    """Keeps the last `max_turns` turns word for word, and deletes the oldest turn first."""

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
        """Add a turn, delete the oldest one if the window is full, and return the id of the new turn."""
        self._check_string("user_message", user_message)
        if ai_response is not None:
            self._check_string("ai_response", ai_response)
        copied = self._copy_metadata(metadata)
        with self._lock:
            now = self._clock.now()
            turn_id = self._ulids.new(now)
            self._turns.append(PastTurn(turn_id, user_message, ai_response, format_timestamp(now), copied))
            self._total += 1
        return turn_id

    def update_turn_response(self, turn_id: str, ai_response: str) -> bool:
        """Set the answer of a turn, for example after streaming.

        Returns:
            False if the turn is not in the window.
        """
        self._check_string("turn_id", turn_id)
        self._check_string("ai_response", ai_response)
        with self._lock:
            for index, turn in enumerate(self._turns):
                if turn.id == turn_id:
                    self._turns[index] = replace(turn, ai_response=ai_response)
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
        """Return the turns in the window, oldest first, as dicts or as text."""
        with self._lock:
            turns = list(self._turns)
        if format_as_text:
            return turns_to_text(turns, include_metadata)
        return turns_to_dicts(turns, include_metadata)

    def get_recent_turns(self, n: int = 5) -> list[dict[str, Any]]:
        """Return the `n` newest turns, oldest first."""
        check_turn_count(n)
        with self._lock:
            turns = list(self._turns)
        return turns_to_dicts(turns[max(0, len(turns) - n) :])

    def get_statistics(self) -> dict[str, Any]:
        """Return the numbers of current, deleted and all turns, and the times of the oldest and newest."""
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
        """Delete all turns. `total_turns_ever` keeps its value."""
        with self._lock:
            self._turns.clear()

    def _check_string(self, name: str, value: Any) -> None:
        if type(value) is not str:
            raise InvalidInput(f"{name} must be a string, got {type(value).__name__}")
        check_size(len(check_text(value).encode()), self._max_message_bytes)

    def _copy_metadata(self, metadata: Any) -> dict[str, Any]:
        if not isinstance(metadata, dict | None):
            raise InvalidInput(f"metadata must be a dict, got {type(metadata).__name__}")
        copied: dict[str, Any] = copy_json(metadata or {})
        check_size(len(json.dumps(copied)), self._max_message_bytes)
        return copied


def check_max_turns(max_turns: Any) -> int:
    """Return `max_turns` if it is from 1 to 100. Else raise `InvalidLimit`."""
    if type(max_turns) is not int or not 1 <= max_turns <= MAX_TURNS:
        raise InvalidLimit(
            f"max_turns must be a whole number from 1 to {MAX_TURNS}, got {max_turns!r}", limit="max_turns"
        )
    return max_turns


def check_turn_count(n: Any) -> int:
    """Return `n` if it is 0 or more. Else raise `InvalidLimit`."""
    if type(n) is not int or n < 0:
        raise InvalidLimit(f"n must be 0 or more, got {n!r}", limit="n")
    return n


def format_timestamp(at: datetime) -> str:
    """Return a time in UTC as ISO 8601 with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def turns_to_dicts(turns: Iterable[PastTurn], include_metadata: bool = True) -> list[dict[str, Any]]:
    """Convert turns to JSON values."""
    fields = list(map(asdict, turns))
    if not include_metadata:
        for turn in fields:
            del turn["metadata"]
    return fields


def turns_to_text(turns: Iterable[PastTurn], include_metadata: bool = True) -> str:
    """Convert turns to one text, with the lines `User: …` and `AI: …` for each turn."""
    return "\n\n".join(_turn_to_text(turn, include_metadata) for turn in turns)


def _turn_to_text(turn: PastTurn, include_metadata: bool) -> str:
    lines = [f"User: {turn.user_message}"]
    if turn.ai_response is not None:
        lines.append(f"AI: {turn.ai_response}")
    if include_metadata:
        lines.insert(0, f"[{turn.timestamp}]")
        if turn.metadata:
            lines.append(f"Metadata: {json.dumps(turn.metadata, ensure_ascii=False)}")
    return "\n".join(lines)
