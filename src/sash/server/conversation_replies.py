"""The reply of `POST /conversation` to a message: a sentence for the user, and the state of the turn."""

from typing import Any

from sash.app.schemas import ContinuationShown
from sash.values.codec import adapter


def write_reply(turn: ContinuationShown, *, can_answer: bool = True) -> str:
    """Return the answer of a turn, or a sentence about its state, for the user.

    Without `can_answer` the user cannot answer a question with the next message.
    """
    if turn.response is not None:
        return turn.response.final_message
    if turn.error is not None:
        return turn.error.message
    if turn.waiting_calls:
        questions = " ".join(f"May I {call.in_words}?" for call in turn.waiting_calls)
        path = f"/v1/continuations/{turn.continuation_id}/approve"
        return f"{questions} {'Say yes or no.' if can_answer else f'Answer at {path}.'}"
    return turn.notice or f"It was {turn.status}."


def describe_turn(turn: ContinuationShown) -> dict[str, Any]:
    """Return the state of a turn as JSON values, for programs."""
    shown = adapter(ContinuationShown).dump_python(turn, mode="json")
    response = shown["response"] or {}
    names = ("continuation_id", "session_id", "status", "artifacts", "waiting_calls", "error")
    described = {name: shown[name] for name in names}
    lists = {name: response.get(name, []) for name in ("actions", "citations", "follow_ups")}
    return described | lists | {"stopped_by": response.get("stopped_by")}
