"""The options of the memory, typed and checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, overload

from sash.errors import InvalidConfig
from sash.values.validation import whole

RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS = 4000

_A = {bool: "true or false", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Options of the memory, named as in the options form of the Home Assistant integration."""

    sliding_window_enable: bool = True
    sliding_window_max_tokens: int = RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS
    sliding_window_preserve_system: bool = True
    max_history_turns: int = 20
    auto_create_conversation_id: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value, expected = getattr(self, field.name), type(field.default)
            if type(value) is not expected:
                raise InvalidConfig(f"{field.name} must be {_A[expected]}, got {value!r}", option=field.name)
        if self.sliding_window_max_tokens <= 0:
            raise InvalidConfig(
                "sliding_window_max_tokens must be at least 1; "
                "set sliding_window_enable to false to keep everything",
                option="sliding_window_max_tokens",
            )
        if self.max_history_turns < 0:
            raise InvalidConfig("max_history_turns must be 0 (no limit) or more", option="max_history_turns")

    @overload
    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self: ...

    @overload
    @classmethod
    def from_dict(cls, hass: Any, data: Mapping[str, Any], /) -> Self: ...

    @classmethod
    def from_dict(cls, *arguments: Any) -> Self:
        """Read the options from a mapping; ignore its other keys. Raise `InvalidConfig` for a wrong value.

        The mapping is the last argument. Home Assistant's `hass` may come before it, and is not used.
        """
        if len(arguments) not in (1, 2):
            raise TypeError(
                f"from_dict() takes a mapping, or hass and a mapping, got {len(arguments)} arguments"
            )
        data = arguments[-1]
        if not isinstance(data, Mapping):
            raise InvalidConfig(f"the options of AgentConfig must be a mapping, got {type(data).__name__}")
        return cls(**{f.name: whole(data[f.name]) for f in fields(cls) if f.name in data})
