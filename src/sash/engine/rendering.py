"""Messages in the form that a model reads."""

from datetime import tzinfo
from typing import Any

from sash.ports.prompt import prepend_time
from sash.values.continuations import Continuation
from sash.values.messages import MessageEntry

# Providers refuse an empty answer, and some refuse two questions in a row.
NOT_ANSWERED = "(not answered)"


class MessageRenderer:
    """Renders messages; a user message starts with the time at which it was sent, in `zone`."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone

    def render(self, message: MessageEntry) -> dict[str, Any]:
        """Return a stored message in OpenAI form. A user message starts with its time and the user's name.

        No other message but a tool result has a field `name`: some providers refuse it.
        """
        rendered = message.to_openai()
        if message.role == "user":
            rendered["content"] = prepend_time(message.content, message.timestamp, self._zone, message.name)
        if message.role != "tool":
            rendered.pop("name", None)
        return self.fill_empty(rendered)

    def render_question(self, continuation: Continuation) -> Any:
        """Return the content of the user message of a turn, as `render` shows it in later turns."""
        request = continuation.request
        return prepend_time(request.content, continuation.created_at, self._zone, request.user_name)

    def fill_empty(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the message, with a placeholder for an answer that has neither text nor tool calls."""
        is_empty = message["role"] == "assistant" and not message["content"] and not message.get("tool_calls")
        return message | {"content": NOT_ANSWERED} if is_empty else message
