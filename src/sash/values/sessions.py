"""A session: a conversation that lives for weeks, with its model, budgets, policy and memory."""

from dataclasses import dataclass, field
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import AllowInfNan, BeforeValidator, ConfigDict, Strict

from sash.errors import InvalidInput
from sash.values.stats import NO_STATS, Stats
from sash.values.validation import (
    check_amount,
    check_count,
    check_flag,
    check_label,
    check_limit,
    check_names,
    check_window,
    whole,
)

Label = Annotated[str, MinLen(1), MaxLen(256)]
Flag = Annotated[bool, Strict()]
# The bounds stand before what makes 20.0 a 20, or no description of the type would tell them.
Count = Annotated[int, Strict(), Ge(0), Le(10**12), BeforeValidator(whole)]
Limit = Annotated[int, Strict(), Ge(1), Le(10**12), BeforeValidator(whole)]
Number = Annotated[float, Strict(), AllowInfNan(False)]
Dollars = Annotated[float, Strict(), Ge(0), Le(10**9)]

# What comes in from outside may have no fields that nobody reads: they are misspelt ones.
EXACT = ConfigDict(extra="forbid")

SessionStatus = Literal["active", "ended", "expired"]

LAST_K = 6
# What takes the house down, or runs what nobody can judge.
DENYLIST = (
    "homeassistant.restart",
    "homeassistant.stop",
    "homeassistant.reload*",
    "homeassistant.set_location",
    "hassio",
    "shell_command",
    "rest_command",
    "python_script",
    "conversation",
    "mqtt",
    "group.set",
    "group.remove",
    "scene.create",
    "device_tracker.see",
    "recorder",
    "backup",
    "system_log",
    "logger",
)
# What lets somebody into the house.
CONFIRM = ("lock", "alarm_control_panel", "cover", "valve")
# A window is read again with every call of a turn, so it is a small part of what a model can read at once.
PART_FOR_WINDOW = 64
SESSION_IDLE_DAYS = 7
CONTINUATION_RETENTION_HOURS = 24
# Under this key a session's context says that it ends with its first turn.
ONE_QUESTION = "one_question"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which model answers, and how; None leaves the choice to the runtime."""

    __pydantic_config__ = EXACT

    name: Label | None = None
    temperature: Number | None = None
    max_output_tokens: Limit | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name is not None:
            check_label("the model's name", self.name)
        if self.max_output_tokens is not None:
            check_limit("max_output_tokens", self.max_output_tokens)
        if type(self.temperature) not in (int, float, NoneType) or self.temperature != self.temperature:
            raise InvalidInput(f"temperature must be a number, got {self.temperature!r:.80}")


@dataclass(frozen=True, slots=True)
class Budgets:
    """What one turn may cost before it is ended with what is known, and all turns of the owner's day.

    None is no limit. Money is spent by calls whose price is known; past the day's, no model is asked.
    """

    __pydantic_config__ = EXACT

    max_steps: Count = 8
    max_tool_calls: Count = 16
    max_duration_ms: Count = 120_000
    max_tokens_per_turn: Count = 100_000
    max_cost_per_turn_usd: Dollars | None = None
    max_cost_per_day_usd: Dollars | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_tool_calls", "max_duration_ms", "max_tokens_per_turn"):
            check_count(name, getattr(self, name))
        for name in ("max_cost_per_turn_usd", "max_cost_per_day_usd"):
            check_amount(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """What the agent may do. Actions are off until they are allowed, and the denylist always wins.

    A service is named as such (`light.turn_on`), by its domain (`lock`), or with wildcards (`light.*`). In a
    `dry_run` what is allowed is only said, not done. With `grounded_answers` an answer that claims an action
    that no tool has done is corrected.
    """

    __pydantic_config__ = EXACT

    allow_actuation: Flag = False
    allowlisted_services: tuple[Label, ...] = ()
    denylisted_services: tuple[Label, ...] = DENYLIST
    require_confirmation: tuple[Label, ...] = CONFIRM
    max_actions_per_minute: Count | None = 30
    dry_run: Flag = False
    enforce_fixed_model: Flag = False
    resume_interrupted: Flag = False
    grounded_answers: Flag = True

    def __post_init__(self) -> None:
        for name in ("allow_actuation", "dry_run", "enforce_fixed_model", "resume_interrupted"):
            check_flag(name, getattr(self, name))
        check_flag("grounded_answers", self.grounded_answers)
        if self.max_actions_per_minute is not None:
            check_count("max_actions_per_minute", self.max_actions_per_minute)
        for name in ("allowlisted_services", "denylisted_services", "require_confirmation"):
            object.__setattr__(self, name, check_names(name, getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Fact:
    """A durable insight."""

    id: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Pin:
    """A snippet that is always part of the context."""

    id: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What a session knows beside its window: facts, pins, and what was evicted.

    The `digest` has a line for each evicted turn, or, if a model has written a `summary` of them, for those
    that came later. The window was cut last at `cut_at`. A model that is asked for one turn only sees the
    `last_k` messages word for word.
    """

    digest: str = ""
    summary: str = ""
    facts: tuple[Fact, ...] = ()
    pins: tuple[Pin, ...] = ()
    last_k: int = LAST_K
    cut_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How large the session's window may grow; the low-water mark keeps the head of the prompt stable."""

    __pydantic_config__ = EXACT

    max_tokens: Limit | None = 4000
    max_turns: Limit | None = None
    evict_to: Annotated[float, Strict(), Gt(0), Le(1)] = 0.75

    def __post_init__(self) -> None:
        check_window(self.max_tokens, self.max_turns, self.evict_to)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a session is given that asks for nothing in particular, and how many an owner may have.

    Without a `window` its width is chosen for the model.
    """

    budgets: Budgets = Budgets()
    policy: SessionPolicy = SessionPolicy()
    window: WindowLimits | None = None
    max_sessions: int | None = None


def window_for(context_window: int | None) -> WindowLimits:
    """Return the window for a model that can read so many tokens: a wide or a small one, as it can read."""
    default = WindowLimits().max_tokens or 0
    if context_window is None:
        return WindowLimits()
    return WindowLimits(
        max_tokens=max(1, min(max(default, context_window // PART_FOR_WINDOW), context_window // 3))
    )


def last_k_for(context_window: int | None) -> int:
    """Return how many messages a model that can read so many tokens is shown word for word."""
    return max(2, LAST_K * (window_for(context_window).max_tokens or 0) // (WindowLimits().max_tokens or 1))


@dataclass(frozen=True, slots=True)
class Session:
    """One session, all but its transcript. `version` counts its changes.

    By its `name` it is found again: an owner has one active session of a name.
    """

    id: str
    owner: str
    created_at: datetime
    updated_at: datetime
    status: SessionStatus = "active"
    model: ModelConfig = ModelConfig()
    budgets: Budgets = Budgets()
    policy: SessionPolicy = SessionPolicy()
    window: WindowLimits = WindowLimits()
    memory: SessionMemory = SessionMemory()
    preferences: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    stats: Stats = NO_STATS
    version: int = 1
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_label("name", self.name)
