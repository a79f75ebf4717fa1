"""Messages in the form that a model reads."""

from datetime import datetime, tzinfo
from typing import Any

from sash.ports.prompt import prepend_time
from sash.values.messages import MessageEntry

# Providers refuse an empty answer, and some refuse two questions in a row.
NOT_ANSWERED = "(not answered)"


class MessageRenderer:
    """Renders messages; a user message starts with the time at which it was sent, in `zone`."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone

    def render(self, message: MessageEntry) -> dict[str, Any]:
        """Return a stored message in OpenAI form. A user message starts with its time."""
        rendered = message.to_openai()
        if message.role == "user":
            rendered["content"] = self.render_question(message.content, message.timestamp)
        return self.fill_empty(rendered)

    def render_question(self, content: Any, sent_at: datetime) -> Any:
        """Return the content of a user message with the time `sent_at` before it."""
        return prepend_time(content, sent_at, self._zone)

    def fill_empty(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the message, with a placeholder for an answer that has neither text nor tool calls."""
        is_empty = message["role"] == "assistant" and not message["content"] and not message.get("tool_calls")
        return message | {"content": NOT_ANSWERED} if is_empty else message
