"""A session: a conversation that lives for weeks, with its model, budgets, policy and memory."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import AfterValidator, AllowInfNan, BeforeValidator, Strict, model_validator

from sash.errors import InvalidLimit
from sash.values.bounds import MAX_COUNT, Dollars, Natural, Time
from sash.values.stats import NO_STATS, Stats
from sash.values.validated import validated
from sash.values.validation import copy_if_object, whole

Label = Annotated[str, Strict(), MinLen(1), MaxLen(256)]
Flag = Annotated[bool, Strict()]
# The bounds come before the conversion of 20.0 to 20, so that the JSON schema shows them.
Count = Annotated[int, Strict(), Ge(0), Le(MAX_COUNT), BeforeValidator(whole)]
Limit = Annotated[int, Strict(), Ge(1), Le(MAX_COUNT), BeforeValidator(whole)]
Number = Annotated[float, Strict(), AllowInfNan(False)]
# A session is read and checked with every turn, so that a long list would slow down each of them.
Services = Annotated[tuple[Label, ...], MaxLen(500)]
# The copy comes first, because JSON turns a key such as 1 into text.
JsonObject = Annotated[dict[str, Any], BeforeValidator(copy_if_object)]

Approvers = Literal["act", "owner"]
Scope = Literal["session", "owner"]
SessionStatus = Literal["active", "ended", "expired"]

DEFAULT_OWNER = "local"
LAST_K = 6
# Every prompt of a session starts with its instructions.
MAX_INSTRUCTIONS_CHARS = 20_000
# Services that stop the home, run code that no policy can judge, or talk to an agent: an agent that may call
# `sash.approve` could approve its own actions.
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
    "sash",
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
# Domains that open the home to people.
CONFIRM = ("lock", "alarm_control_panel", "cover", "valve")
# The window gets at most the model's context divided by this number, because every call reads the window.
PART_FOR_WINDOW = 64


# Keys of `context` that older versions used for fields of the session, with the type of the field.
_OLDER_KEYS: dict[str, tuple[str, type]] = {
    "area": ("area", str),
    "one_question": ("is_one_question", bool),
    "turns_before": ("turns_before", int),
}


@validated()
class ModelConfig:
    """The model of a session or a turn, and its parameters. None leaves the choice to the runtime."""

    name: Label | None = None
    temperature: Number | None = None
    max_output_tokens: Limit | None = None
    options: JsonObject = field(default_factory=dict)


@validated()
class Budgets:
    """The limits of one turn, and of all turns of an owner in one day. None means no limit.

    A turn that reaches a limit ends with an answer from what is known so far. Only calls with a known price
    count towards the limits in dollars. When the limit of the day is reached, no model is asked.
    """

    max_steps: Count = 8
    max_tool_calls: Count = 16
    max_duration_ms: Count = 120_000
    max_tokens_per_turn: Count = 100_000
    max_cost_per_turn_usd: Dollars | None = None
    max_cost_per_day_usd: Dollars | None = None


@validated()
class SessionPolicy:
    """The actions that the agent may perform. Actions are off by default, and the denylist always wins.

    A service is given by its name (`light.turn_on`), its domain (`lock`), or with wildcards (`light.*`). In a
    `dry_run` an action is described and not performed. With `grounded_answers` an answer that claims an
    action which no tool performed is corrected. `approvers` says which callers may approve an action: those
    with the scope `act`, or all callers of the owner with the scope `converse`.
    """

    allow_actuation: Flag = False
    allowlisted_services: Services = ()
    denylisted_services: Services = DENYLIST
    require_confirmation: Services = CONFIRM
    max_actions_per_minute: Count | None = 30
    dry_run: Flag = False
    enforce_fixed_model: Flag = False
    resume_interrupted: Flag = False
    grounded_answers: Flag = True
    approvers: Approvers = "act"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to remember. `updated_at` is the time of the last edit or move.

    A fact with the scope "owner" is known in all sessions of the owner. `continuation_id` is the turn in
    which the fact was stated. It is None for a fact that was set by hand, or by an older version.
    """

    id: str
    text: str
    created_at: Time
    updated_at: Time | None = None
    scope: Scope = "session"
    continuation_id: Label | None = None

    @property
    def changed_at(self) -> datetime:
        """The time of the last edit or move, or of the creation."""
        return self.updated_at or self.created_at


@dataclass(frozen=True, slots=True)
class Pin:
    """A text that is always part of the context. With an `entity_id`, so is the state of that entity."""

    id: str
    text: str
    created_at: Time
    entity_id: Label | None = None
    scope: Scope = "session"


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The memory of a session outside of its window: facts, pins, and a digest of evicted turns.

    The `digest` has a line for each evicted turn. If a model has written a `summary`, the digest covers the
    turns after it. `cut_at` is the time of the last eviction, and `reset_at` of the last reset by the user. A
    model that answers only one turn sees the last `last_k` messages word for word.
    """

    digest: str = ""
    summary: str = ""
    facts: tuple[Fact, ...] = ()
    pins: tuple[Pin, ...] = ()
    last_k: Natural = LAST_K
    cut_at: Time | None = None
    reset_at: Time | None = None


@validated(error=InvalidLimit)
class WindowLimits:
    """The limits of a session's window. `evict_to` is the low-water mark: an eviction stops there.

    None means no limit, and so do 0 turns. `preserve_system` keeps system messages.
    """

    max_tokens: Limit | None = 4000
    max_turns: Annotated[Count | None, AfterValidator(lambda count: count or None)] = None
    evict_to: Annotated[float, Strict(), Gt(0), Le(1)] = 0.75
    preserve_system: Flag = True


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of a new session, and the maximum number of active sessions per owner.

    If `window` or `last_k` is None, it depends on the model. `preserve_system` belongs to such a window.
    """

    budgets: Budgets = Budgets()
    policy: SessionPolicy = SessionPolicy()
    window: WindowLimits | None = None
    max_sessions: int | None = None
    last_k: int | None = None
    preserve_system: bool = True


# Statistics of a day read the turns that began this much earlier.
MAX_CONTINUATION_RETENTION_HOURS = 31 * 24


@dataclass(frozen=True, slots=True)
class Retention:
    """How long data is kept.

    A session expires after `session_idle_days` without a change. The steps of a turn are dropped
    `continuation_retention_hours` after its end. Ended and expired sessions are deleted after
    `transcript_retention_days`; None keeps them until the user deletes them.
    """

    session_idle_days: float = 7
    continuation_retention_hours: float = 24
    transcript_retention_days: float | None = None


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """The most that any session may do and spend, by the decision of the operator who runs the server."""

    policy: SessionPolicy
    budgets: Budgets


# For a runtime without an operator: each session's own policy and budgets decide.
UNLIMITED = OperatorLimits(
    SessionPolicy(
        allow_actuation=True,
        allowlisted_services=("*",),
        denylisted_services=(),
        require_confirmation=(),
        max_actions_per_minute=None,
        resume_interrupted=True,
        grounded_answers=False,
        approvers="owner",
    ),
    Budgets(
        max_steps=MAX_COUNT,
        max_tool_calls=MAX_COUNT,
        max_duration_ms=MAX_COUNT,
        max_tokens_per_turn=MAX_COUNT,
    ),
)


def window_for(context_window: int | None) -> WindowLimits:
    """Return the window limits for a model that reads `context_window` tokens at once. None means unknown."""
    default = WindowLimits().max_tokens or 0
    if context_window is None:
        return WindowLimits()
    return WindowLimits(
        max_tokens=max(1, min(max(default, context_window // PART_FOR_WINDOW), context_window // 3))
    )


def last_k_for(context_window: int | None) -> int:
    """Return how many messages a model sees word for word, given the tokens that it reads at once."""
    return max(2, LAST_K * (window_for(context_window).max_tokens or 0) // (WindowLimits().max_tokens or 1))


@dataclass(frozen=True, slots=True)
class Session:
    """A session without its transcript. `version` counts its changes.

    An owner has at most one active session of a `name`. `area` is the user's place in the home. A session
    with `is_one_question` ends after its first turn, is not listed then, and is deleted with the steps of
    the turn. `turns_before` counts the turns of earlier sessions of this name that were cleared. `context` is
    the caller's own data: Sash stores it and does not use it. `instructions` tell the model who it is; None
    means the runtime's own prompt.

    A session with `is_task` works for a program. Its model gets the instructions, the message and the tools
    of this turn only: no notes, nothing about the home, and no tool of the runtime. No intent answers there.
    """

    id: str
    owner: Label
    created_at: Time
    updated_at: Time
    status: SessionStatus = "active"
    model: ModelConfig = ModelConfig()
    budgets: Budgets = Budgets()
    policy: SessionPolicy = SessionPolicy()
    window: WindowLimits = WindowLimits()
    memory: SessionMemory = SessionMemory()
    preferences: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    stats: Stats = NO_STATS
    version: Natural = 1
    name: Label | None = None
    area: Label | None = None
    is_one_question: bool = False
    turns_before: Natural = 0
    instructions: str | None = None
    is_task: bool = False

    @property
    def total_turns(self) -> int:
        """The number of turns of all sessions of this name so far, without failed and cancelled ones."""
        stats = self.stats
        return max(0, self.turns_before + stats.turns - stats.failed_turns - stats.cancelled_turns)

    @model_validator(mode="before")
    @classmethod
    def _read_older_form(cls, data: Any) -> Any:
        """Move fields such as the area out of `context`, where sessions of an older version have them.

        A key stays in `context` if the session has the field, or if its value has another type: then it
        belongs to the caller.
        """
        context = data.get("context") if isinstance(data, dict) else None
        if not isinstance(context, dict):
            return data
        moved = {
            key: name
            for key, (name, kind) in _OLDER_KEYS.items()
            if name not in data and type(context.get(key)) is kind
        }
        if not moved:
            return data
        fields = {name: context[key] for key, name in moved.items()}
        rest = {key: value for key, value in context.items() if key not in moved}
        return data | fields | {"context": rest}
