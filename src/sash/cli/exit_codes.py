"""The exit codes of `sash`: one table maps error codes to them."""

from sash.errors import is_wrong_input

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_CONFLICT = 4
EXIT_MODEL = 5
EXIT_HOME = 6
EXIT_STORE = 7
EXIT_FORBIDDEN = 8
EXIT_UNFINISHED = 75

EPILOG = (
    "Exit codes: 0 success, 1 failure, 2 wrong input, 3 not found, 4 conflict (busy or finished), "
    "5 model error, 6 house error, 7 store error, 8 not allowed, 75 unfinished (waits for approval, or takes "
    "longer), 130 interrupted, 143 terminated."
)

_CODES = {
    "conversation_not_found": EXIT_NOT_FOUND,
    "session_not_found": EXIT_NOT_FOUND,
    "continuation_not_found": EXIT_NOT_FOUND,
    "note_not_found": EXIT_NOT_FOUND,
    "message_not_found": EXIT_NOT_FOUND,
    "waiting_turn_not_found": EXIT_NOT_FOUND,
    "token_not_found": EXIT_NOT_FOUND,
    "artifact_not_found": EXIT_NOT_FOUND,
    "tool_not_found": EXIT_NOT_FOUND,
    "entity_not_found": EXIT_NOT_FOUND,
    "conversation_exists": EXIT_CONFLICT,
    "session_exists": EXIT_CONFLICT,
    "session_ended": EXIT_CONFLICT,
    "session_busy": EXIT_CONFLICT,
    "key_reused": EXIT_CONFLICT,
    "notes_changed": EXIT_CONFLICT,
    "session_changed": EXIT_CONFLICT,
    "last_action_changed": EXIT_CONFLICT,
    "continuation_final": EXIT_CONFLICT,
    "continuation_open": EXIT_CONFLICT,
    "not_awaiting_approval": EXIT_CONFLICT,
    "cursor_unknown": EXIT_CONFLICT,
    "too_many_sessions": EXIT_CONFLICT,
    "too_many_turns": EXIT_CONFLICT,
    "too_many_waiting_turns": EXIT_CONFLICT,
    "too_many_requests": EXIT_CONFLICT,
    "too_many_subscribers": EXIT_UNFINISHED,
    "shutting_down": EXIT_UNFINISHED,
    "message_too_large": EXIT_USAGE,
    "model_fixed": EXIT_USAGE,
    "policy_exceeds_operator": EXIT_USAGE,
    "model_error": EXIT_MODEL,
    "model_key_refused": EXIT_MODEL,
    "model_quota_reached": EXIT_MODEL,
    "model_unknown": EXIT_MODEL,
    "model_unreachable": EXIT_MODEL,
    "context_too_long": EXIT_MODEL,
    "content_filtered": EXIT_MODEL,
    "home_error": EXIT_HOME,
    "home_unavailable": EXIT_HOME,
    "home_unauthorized": EXIT_HOME,
    "service_failed": EXIT_HOME,
    "outcome_unknown": EXIT_HOME,
    "store_unavailable": EXIT_STORE,
    "unauthorized": EXIT_FORBIDDEN,
    "forbidden": EXIT_FORBIDDEN,
}
_STATUSES = {
    "completed": EXIT_OK,
    "failed": EXIT_FAILED,
    "cancelled": EXIT_CONFLICT,
    "expired": EXIT_CONFLICT,
}


def exit_code(error_code: str) -> int:
    """Return the exit code of the program for the code of a `SashError`."""
    return _CODES.get(error_code, EXIT_USAGE if is_wrong_input(error_code) else EXIT_FAILED)


def turn_exit_code(status: str, error_code: str | None) -> int:
    """Return the exit code of the program for a turn. `error_code` is that of the turn's error, or None."""
    return exit_code(error_code) if error_code is not None else _STATUSES.get(status, EXIT_UNFINISHED)
