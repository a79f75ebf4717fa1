"""Every error that Sash raises on purpose: a stable `code`, a message to act on, data as attributes."""

from typing import Any, ClassVar

# What of an error's data is worth telling whoever is far away.
TOLD = ("session_id", "continuation_id", "scope", "limit", "size", "option", "last_cursor")


class SashError(Exception):
    """Base of all errors; surfaces map `code` to a status, never the message."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})
        if name in data:
            return data[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def told(self) -> dict[str, Any]:
        """What may be told beside the message."""
        return {name: self.data[name] for name in TOLD if name in self.data}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.data)


def _rebuild(kind: type[SashError], message: str, data: dict[str, Any]) -> SashError:
    return kind(message, **data)


def is_wrong_input(code: str) -> bool:
    """Whether an error's code says that what came in was wrong."""
    return code.startswith(("invalid_", "orphan_", "duplicate_", "unknown_"))


class InvalidInput(SashError):
    """A value of the wrong type or form."""

    code = "invalid_input"


class InvalidRole(InvalidInput):
    code = "invalid_role"


class InvalidConversationId(InvalidInput):
    code = "invalid_conversation_id"


class InvalidLimit(InvalidInput):
    code = "invalid_limit"


class InvalidConfig(InvalidInput):
    code = "invalid_config"


class InvalidText(InvalidInput):
    """Text that no provider and no file could hold: lone surrogates."""

    code = "invalid_text"


class InvalidToolCall(InvalidInput):
    code = "invalid_tool_call"


class InvalidExport(InvalidInput):
    """An export that cannot be imported: damaged, foreign, or of a newer version."""

    code = "invalid_export"


class InvalidJson(InvalidInput):
    code = "invalid_json"


class MessageTooLarge(InvalidInput):
    code = "message_too_large"


class OrphanToolResult(InvalidInput):
    """A tool result whose call is not open in the conversation."""

    code = "orphan_tool_result"


class DuplicateMessage(InvalidInput):
    code = "duplicate_message"


class UnknownEncoding(InvalidInput):
    code = "unknown_encoding"


class ConversationNotFound(SashError):
    code = "conversation_not_found"


class ConversationExists(SashError):
    code = "conversation_exists"


class SessionNotFound(SashError):
    code = "session_not_found"


class SessionExists(SashError):
    code = "session_exists"


class SessionEnded(SashError):
    code = "session_ended"


class SessionBusy(SashError):
    """Another turn of the session is under way."""

    code = "session_busy"


class KeyReused(SashError):
    """An idempotency key that another message has."""

    code = "key_reused"


class SessionChanged(SashError):
    """Somebody else changed the session since it was read."""

    code = "session_changed"


class ContinuationNotFound(SashError):
    code = "continuation_not_found"


class ContinuationFinal(SashError):
    """Nothing can happen to the continuation any more."""

    code = "continuation_final"


class ContinuationOpen(InvalidInput):
    """The continuation is not over, or waits for a yes or no."""

    code = "continuation_open"


class NotAwaitingApproval(InvalidInput):
    """No call waits for this yes or no."""

    code = "not_awaiting_approval"


class NoteNotFound(SashError):
    """No pin or fact of that id."""

    code = "note_not_found"


class TokenNotFound(SashError):
    code = "token_not_found"


class ModelFixed(InvalidInput):
    """The session's policy allows no other model."""

    code = "model_fixed"


class ArtifactNotFound(SashError):
    code = "artifact_not_found"


class StoreUnavailable(SashError):
    """The store could not write or read: disk full, read-only, locked, damaged."""

    code = "store_unavailable"


class ModelError(SashError):
    """A model could not answer."""

    code = "model_error"


class ModelKeyRefused(ModelError):
    code = "model_key_refused"


class ModelQuotaReached(ModelError):
    code = "model_quota_reached"


class ModelUnknown(ModelError):
    code = "model_unknown"


class ModelUnreachable(ModelError):
    """No network, no answer in time, or a connection that was cut."""

    code = "model_unreachable"


class ContextTooLong(ModelError):
    code = "context_too_long"


class ContentFiltered(ModelError):
    code = "content_filtered"


class ToolNotFound(SashError):
    code = "tool_not_found"


class ToolFailed(SashError):
    """A tool that was called directly has failed."""

    code = "tool_failed"


class HomeError(SashError):
    """The house could not be asked, or could not do it."""

    code = "home_error"


class HomeUnavailable(HomeError):
    """No connection to the house, or none yet."""

    code = "home_unavailable"


class HomeUnauthorized(HomeUnavailable):
    """The house refuses the token."""

    code = "home_unauthorized"


class ServiceFailed(HomeError):
    """The house was asked to do something, and said that it could not."""

    code = "service_failed"


class OutcomeUnknown(HomeError):
    """The house was asked to do something, and went away before it said what came of it."""

    code = "outcome_unknown"


class EntityNotFound(HomeError):
    """No such entity, as far as the agent is concerned."""

    code = "entity_not_found"


class Unauthorized(SashError):
    """No token, or one that is not known."""

    code = "unauthorized"


class Forbidden(SashError):
    """The caller is known, and may not do this."""

    code = "forbidden"


class TooManySessions(SashError):
    code = "too_many_sessions"


class CursorUnknown(SashError):
    """A cursor that a session has not given yet: its events would be missed up to there."""

    code = "cursor_unknown"


class TooManySubscribers(SashError):
    code = "too_many_subscribers"


class ShuttingDown(SashError):
    """No new turn begins any more."""

    code = "shutting_down"


class Signal(BaseException):
    """Control flow that no `except Exception` may swallow."""


class LeaseLost(Signal):
    """Another process, or a cancel, has taken the continuation over: stop, and write nothing more."""
