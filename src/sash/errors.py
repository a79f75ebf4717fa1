"""Every error that Sash raises on purpose: a stable `code`, a message to act on, and declared fields."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

# The fields that surfaces show beside the message.
DETAILS = ("session_id", "continuation_id", "scope", "limit", "size", "option", "last_cursor")


@dataclass(eq=False)
class SashError(Exception):
    """Base of all errors. Surfaces map `code` to a status and never parse the message."""

    code: ClassVar[str] = "error"

    message: str

    def __str__(self) -> str:
        return self.message

    @property
    def details(self) -> dict[str, Any]:
        """The fields that surfaces show beside the message, if they are set."""
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.name in DETAILS}
        return {name: value for name, value in shown.items() if value is not None}


def is_wrong_input(code: str) -> bool:
    """Return True if the code belongs to `InvalidInput` or to a subclass of it."""
    kinds: list[type[InvalidInput]] = [InvalidInput]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return any(kind.code == code for kind in kinds)


class InvalidInput(SashError):
    """A value of the wrong type or form."""

    code = "invalid_input"


class InvalidRole(InvalidInput):
    """The role of a message is not system, user, assistant or tool."""

    code = "invalid_role"


class InvalidConversationId(InvalidInput):
    """The id of a conversation is missing, empty or too long."""

    code = "invalid_conversation_id"


@dataclass(eq=False, kw_only=True)
class InvalidLimit(InvalidInput):
    """A limit is not a number in its range."""

    code = "invalid_limit"

    limit: str | None = None


@dataclass(eq=False, kw_only=True)
class InvalidConfig(InvalidInput):
    """A setting is wrong, or packages that it needs are not installed."""

    code = "invalid_config"

    option: str | None = None


class InvalidText(InvalidInput):
    """Text with lone surrogates, which cannot be encoded as UTF-8."""

    code = "invalid_text"


class InvalidToolCall(InvalidInput):
    """A tool call, or the message with its result, has the wrong form."""

    code = "invalid_tool_call"


class InvalidExport(InvalidInput):
    """A session export that is damaged, foreign or too new."""

    code = "invalid_export"


class InvalidJson(InvalidInput):
    """The text is not JSON."""

    code = "invalid_json"


@dataclass(eq=False, kw_only=True)
class MessageTooLarge(InvalidInput):
    """The message has more bytes than the limit."""

    code = "message_too_large"

    size: int | None = None
    limit: int | None = None


@dataclass(eq=False, kw_only=True)
class OrphanToolResult(InvalidInput):
    """A tool result for a call that was never made, or that has a result already."""

    code = "orphan_tool_result"

    tool_call_id: str | None = None


class DuplicateMessage(InvalidInput):
    """A message with this id is already in the window."""

    code = "duplicate_message"


class UnknownEncoding(InvalidInput):
    """There is no token encoding of this name, or its table is damaged."""

    code = "unknown_encoding"


@dataclass(eq=False, kw_only=True)
class ConversationNotFound(SashError):
    """There is no conversation with this id."""

    code = "conversation_not_found"

    conversation_id: str | None = None


@dataclass(eq=False, kw_only=True)
class ConversationExists(SashError):
    """There is already a conversation with this id."""

    code = "conversation_exists"

    conversation_id: str | None = None


@dataclass(eq=False, kw_only=True)
class SessionNotFound(SashError):
    """The owner has no session with this id."""

    code = "session_not_found"

    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class SessionExists(SashError):
    """There is already a session with this id, or an active one with this name."""

    code = "session_exists"

    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class SessionEnded(SashError):
    """The session has ended or expired and accepts no more messages."""

    code = "session_ended"

    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class SessionBusy(SashError):
    """Another turn of the session is under way."""

    code = "session_busy"

    continuation_id: str = ""
    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class KeyReused(SashError):
    """The idempotency key belongs to another message."""

    code = "key_reused"

    continuation_id: str | None = None


@dataclass(eq=False, kw_only=True)
class SessionChanged(SashError):
    """The session was changed after it was read."""

    code = "session_changed"

    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class LastActionChanged(SashError):
    """An undo would reverse another action than the expected one."""

    code = "last_action_changed"

    session_id: str | None = None


class NotesChanged(SashError):
    """The notes of the owner were changed after they were read."""

    code = "notes_changed"


@dataclass(eq=False, kw_only=True)
class ContinuationNotFound(SashError):
    """The owner has no continuation with this id."""

    code = "continuation_not_found"

    continuation_id: str | None = None


@dataclass(eq=False, kw_only=True)
class ContinuationFinal(SashError):
    """The continuation has ended."""

    code = "continuation_final"

    continuation_id: str | None = None


class ContinuationOpen(InvalidInput):
    """The continuation is still running or waits for an approval."""

    code = "continuation_open"


class NotAwaitingApproval(InvalidInput):
    """No tool call waits for this approval."""

    code = "not_awaiting_approval"


class WaitingTurnNotFound(SashError):
    """The owner has no waiting turn with this id: it has fired, was cancelled, or never existed."""

    code = "waiting_turn_not_found"


@dataclass(eq=False, kw_only=True)
class TooManyWaitingTurns(SashError):
    """The session has the maximum number of waiting turns."""

    code = "too_many_waiting_turns"

    session_id: str | None = None
    limit: int | None = None


@dataclass(eq=False, kw_only=True)
class MessageNotFound(SashError):
    """The session has no message with this id."""

    code = "message_not_found"

    session_id: str | None = None


@dataclass(eq=False, kw_only=True)
class NoteNotFound(SashError):
    """No pin or fact has this id."""

    code = "note_not_found"

    session_id: str | None = None


class TokenNotFound(SashError):
    """There is no token with this id."""

    code = "token_not_found"


class ModelFixed(InvalidInput):
    """The session's policy does not allow another model."""

    code = "model_fixed"


class PolicyExceedsOperator(SashError):
    """The request asks for more than the operator of the server allows."""

    code = "policy_exceeds_operator"


class ArtifactNotFound(SashError):
    """The owner has no artifact with this id."""

    code = "artifact_not_found"


class StoreUnavailable(SashError):
    """The store cannot read or write: the disk is full, or the file is read-only, locked or damaged."""

    code = "store_unavailable"


class WriteRefused(StoreUnavailable):
    """The store refused a write, and would refuse it again."""


class ModelError(SashError):
    """The model did not answer."""

    code = "model_error"


class ModelKeyRefused(ModelError):
    """The provider refused the API key."""

    code = "model_key_refused"


class ModelQuotaReached(ModelError):
    """The provider refused the request because of a rate limit or an empty account."""

    code = "model_quota_reached"


class ModelUnknown(ModelError):
    """The provider does not know the model."""

    code = "model_unknown"


class ModelUnreachable(ModelError):
    """The model server cannot be reached, timed out or closed the connection."""

    code = "model_unreachable"


class AnswerCutOff(ModelUnreachable):
    """The connection was lost in the middle of an answer."""


class ContextTooLong(ModelError):
    """The prompt is longer than the model can read."""

    code = "context_too_long"


class ContentFiltered(ModelError):
    """The provider's content filter stopped the answer."""

    code = "content_filtered"


class ToolNotFound(SashError):
    """There is no tool of this name."""

    code = "tool_not_found"


class ToolFailed(SashError):
    """A direct tool call failed."""

    code = "tool_failed"


class HomeError(SashError):
    """The home did not answer, or refused the request."""

    code = "home_error"


@dataclass(eq=False, kw_only=True)
class HomeUnavailable(HomeError):
    """The home is not connected, or still connecting."""

    code = "home_unavailable"

    reason: str = ""


class HomeUnauthorized(HomeUnavailable):
    """The home refused the token."""

    code = "home_unauthorized"


class ServiceFailed(HomeError):
    """The home reported that a service call failed."""

    code = "service_failed"


class OutcomeUnknown(HomeError):
    """The connection was lost before the home reported the result of a service call."""

    code = "outcome_unknown"


class EntityNotFound(HomeError):
    """The entity does not exist or is not exposed to the agent."""

    code = "entity_not_found"


class Unauthorized(SashError):
    """The token is missing or unknown."""

    code = "unauthorized"


@dataclass(eq=False, kw_only=True)
class Forbidden(SashError):
    """The token lacks the required scope, or the Origin is not allowed."""

    code = "forbidden"

    scope: str | None = None


@dataclass(eq=False, kw_only=True)
class TooManySessions(SashError):
    """The owner has the maximum number of active sessions."""

    code = "too_many_sessions"

    limit: int | None = None


@dataclass(eq=False, kw_only=True)
class TooManyTurns(SashError):
    """The maximum number of turns waits in the session, or in all sessions of the owner."""

    code = "too_many_turns"

    session_id: str | None = None
    limit: int | None = None


@dataclass(eq=False, kw_only=True)
class TooManyRequests(SashError):
    """The owner has the maximum number of expensive requests under way."""

    code = "too_many_requests"

    limit: int | None = None


@dataclass(eq=False, kw_only=True)
class CursorUnknown(SashError):
    """The cursor is greater than the last cursor of the session."""

    code = "cursor_unknown"

    session_id: str | None = None
    last_cursor: int | None = None


@dataclass(eq=False, kw_only=True)
class TooManySubscribers(SashError):
    """The maximum number of event streams is open."""

    code = "too_many_subscribers"

    limit: int | None = None


class ShuttingDown(SashError):
    """The runtime accepts no new turns."""

    code = "shutting_down"


class Signal(BaseException):
    """A control signal, which `except Exception` does not catch."""


class LeaseLost(Signal):
    """The worker no longer holds the continuation and must not write to it."""
