"""Errors as exit codes: the one table from our codes to those of the shell."""

from sash.errors import is_wrong_input

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, MODEL, HOME, STORE, REFUSED, LATER = 0, 1, 2, 3, 4, 5, 6, 7, 8, 75

EPILOG = (
    "Exit codes: 0 ok, 1 failure, 2 wrong input, 3 not found, 4 busy, over or in conflict, 5 the model, "
    "6 the house, 7 the store, 8 not allowed, 75 not over yet (waits for a yes, or takes longer), "
    "130 interrupted, 143 told to stop."
)

_CODES = {
    "conversation_not_found": NOT_FOUND,
    "session_not_found": NOT_FOUND,
    "continuation_not_found": NOT_FOUND,
    "note_not_found": NOT_FOUND,
    "token_not_found": NOT_FOUND,
    "artifact_not_found": NOT_FOUND,
    "tool_not_found": NOT_FOUND,
    "entity_not_found": NOT_FOUND,
    "conversation_exists": CONFLICT,
    "session_exists": CONFLICT,
    "session_ended": CONFLICT,
    "session_busy": CONFLICT,
    "key_reused": CONFLICT,
    "session_changed": CONFLICT,
    "continuation_final": CONFLICT,
    "continuation_open": CONFLICT,
    "not_awaiting_approval": CONFLICT,
    "cursor_unknown": CONFLICT,
    "too_many_sessions": CONFLICT,
    "too_many_subscribers": LATER,
    "shutting_down": LATER,
    "message_too_large": USAGE,
    "model_fixed": USAGE,
    "model_error": MODEL,
    "model_key_refused": MODEL,
    "model_quota_reached": MODEL,
    "model_unknown": MODEL,
    "model_unreachable": MODEL,
    "context_too_long": MODEL,
    "content_filtered": MODEL,
    "home_error": HOME,
    "home_unavailable": HOME,
    "home_unauthorized": HOME,
    "service_failed": HOME,
    "outcome_unknown": HOME,
    "store_unavailable": STORE,
    "unauthorized": REFUSED,
    "forbidden": REFUSED,
}
_STATUSES = {"completed": OK, "failed": FAILED, "cancelled": CONFLICT, "expired": CONFLICT}


def exit_code(code: str) -> int:
    """Return the exit code of an error."""
    return _CODES.get(code, USAGE if is_wrong_input(code) else FAILED)


def exit_of(status: str, error: str | None) -> int:
    """Return the exit code of a turn that stands so, with the code of what went wrong in it."""
    return exit_code(error) if error is not None else _STATUSES.get(status, LATER)
