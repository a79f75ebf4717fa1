"""Errors of AI tasks, in the language of the user."""

from typing import Self

from homeassistant.exceptions import HomeAssistantError

from .const import DOMAIN
from .turn_errors import PLAIN_ERRORS


class TaskFailed(HomeAssistantError):
    """An AI task has no result. `key` is that of the translated text."""

    def __init__(self, key: str, **placeholders: str) -> None:
        super().__init__(
            translation_domain=DOMAIN, translation_key=key, translation_placeholders=placeholders
        )

    @classmethod
    def of(cls, code: str, message: str) -> Self:
        """Return the failure for an error of Sash. If its code does not say enough, it has the message."""
        return cls(code) if code in PLAIN_ERRORS else cls("failed", message=message)
