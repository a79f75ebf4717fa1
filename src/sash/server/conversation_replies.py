"""The reply of `POST /conversation` to a message: a sentence for the user, and the state of the turn."""

from typing import Any

from sash.app.schemas import ContinuationShown
from sash.values.codec import adapter


def write_reply(turn: ContinuationShown) -> str:
    """Return the answer of a turn, its question for an approval, or a sentence about its state."""
    if turn.response is not None:
        return turn.response.final_message
    if turn.error is not None:
        return turn.error.message
    return turn.question or turn.notice or f"It was {turn.status}."


def describe_turn(turn: ContinuationShown) -> dict[str, Any]:
    """Return the state of a turn as JSON values, for programs."""
    shown = adapter(ContinuationShown).dump_python(turn, mode="json")
    response = shown["response"] or {}
    names = ("continuation_id", "session_id", "status", "artifacts", "waiting_calls", "error")
    described = {name: shown[name] for name in names}
    lists = {name: response.get(name, []) for name in ("actions", "citations", "follow_ups")}
    return described | lists | {"stopped_by": response.get("stopped_by")}
