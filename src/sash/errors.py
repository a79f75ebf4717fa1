"""Every error that Sash raises on purpose: a stable `code`, a message to act on, data as attributes."""

from typing import Any, ClassVar


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

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.data)


def _rebuild(kind: type[SashError], message: str, data: dict[str, Any]) -> SashError:
    return kind(message, **data)


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
