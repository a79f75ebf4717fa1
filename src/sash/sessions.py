"""A session: a conversation that lives for weeks, with its model, budgets, policy and memory."""

from dataclasses import dataclass, field
from datetime import datetime
from types import NoneType
from typing import Any, Literal

from sash.checks import check_count, check_flag, check_label, check_limit, check_names, check_window
from sash.errors import InvalidInput

SessionStatus = Literal["active", "ended", "expired"]

LAST_K = 6
SESSION_IDLE_DAYS = 7
CONTINUATION_RETENTION_HOURS = 24


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which model answers, and how; None leaves the choice to the runtime."""

    name: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name is not None:
            check_label("the model's name", self.name)
        if self.max_output_tokens is not None:
            check_limit("max_output_tokens", self.max_output_tokens)
        if type(self.temperature) not in (int, float, NoneType):
            raise InvalidInput(f"temperature must be a number, got {self.temperature!r:.80}")


@dataclass(frozen=True, slots=True)
class Budgets:
    """What one turn may cost before it is ended with what is known."""

    max_steps: int = 8
    max_tool_calls: int = 16
    max_duration_ms: int = 120_000
    max_tokens_per_turn: int = 100_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_count(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """What the agent may do. Actions are off until they are allowed, and the denylist always wins."""

    allow_actuation: bool = False
    allowlisted_services: tuple[str, ...] = ()
    denylisted_services: tuple[str, ...] = ()
    require_confirmation: tuple[str, ...] = ()
    enforce_fixed_model: bool = False
    resume_interrupted: bool = False

    def __post_init__(self) -> None:
        for name in ("allow_actuation", "enforce_fixed_model", "resume_interrupted"):
            check_flag(name, getattr(self, name))
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
    """What a session knows beside its window: the digest of what was evicted, facts, pins."""

    digest: str = ""
    facts: tuple[Fact, ...] = ()
    pins: tuple[Pin, ...] = ()
    last_k: int = LAST_K


@dataclass(frozen=True, slots=True)
class SessionStats:
    """What a session has done so far."""

    turns: int = 0
    failed_turns: int = 0
    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How large the session's window may grow; the low-water mark keeps the head of the prompt stable."""

    max_tokens: int | None = 4000
    max_turns: int | None = None
    evict_to: float = 0.75

    def __post_init__(self) -> None:
        check_window(self.max_tokens, self.max_turns, self.evict_to)


@dataclass(frozen=True, slots=True)
class Session:
    """One session, all but its transcript. `version` counts its changes."""

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
    stats: SessionStats = SessionStats()
    version: int = 1
