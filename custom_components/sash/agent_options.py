"""The options of one agent, as typed values of Sash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from homeassistant.config_entries import ConfigSubentry
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT
from homeassistant.exceptions import ConfigEntryError

from sash.errors import InvalidInput
from sash.values.sessions import DENYLIST, Budgets, ModelConfig, SessionPolicy, WindowLimits

from .const import (
    AGENT_DEFAULTS,
    AI_TASK_DEFAULTS,
    CONF_ALLOW_ACTUATION,
    CONF_ALLOWLISTED_SERVICES,
    CONF_APPROVAL_WAIT_SECONDS,
    CONF_DENYLISTED_SERVICES,
    CONF_DRY_RUN,
    CONF_EARLY_WAIT_ENABLE,
    CONF_EARLY_WAIT_SECONDS,
    CONF_MAX_ACTIONS_PER_MINUTE,
    CONF_MAX_COST_PER_DAY_USD,
    CONF_MAX_COST_PER_TURN_USD,
    CONF_MAX_DURATION_MS,
    CONF_MAX_HISTORY_TURNS,
    CONF_MAX_OUTPUT_TOKENS,
    CONF_MAX_STEPS,
    CONF_MAX_TOKENS_PER_TURN,
    CONF_MAX_TOOL_CALLS,
    CONF_REASONING_EFFORT,
    CONF_REQUIRE_CONFIRMATION,
    CONF_SESSION_IDLE_DAYS,
    CONF_SESSION_SCOPE,
    CONF_SLIDING_WINDOW_ENABLE,
    CONF_SLIDING_WINDOW_MAX_TOKENS,
    CONF_SLIDING_WINDOW_PRESERVE_SYSTEM,
    CONF_TEMPERATURE,
    CONF_TRANSCRIPT_RETENTION_DAYS,
    CONF_USE_HOME_ASSISTANT_INTENTS,
    SCOPE_DEVICE,
    SESSION_SCOPES,
)
from .option_checks import SERVICE_LISTS

_DAMAGED = "The options of the agent {} are damaged: {}. Delete the agent and add it again."

type SessionScope = Literal["conversation", "user", "device", "area", "house", "stateless"]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of a conversation agent.

    `window` is None if its size depends on the model; `preserve_system` belongs to such a window.
    `early_wait_s` is None without early answers. `idle_days` and `retention_days` say when conversations end
    and are deleted; None means never.
    """

    model: ModelConfig
    prompt: str | None
    policy: SessionPolicy
    budgets: Budgets
    window: WindowLimits | None
    preserve_system: bool
    scope: SessionScope
    early_wait_s: float | None
    approval_wait_s: float
    idle_days: float | None
    retention_days: float | None
    llm_api_ids: tuple[str, ...]
    uses_home_assistant_intents: bool

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> AgentOptions:
        """Read the data of a subentry. An option that is missing has its default."""
        options = {**AGENT_DEFAULTS, **data}
        return cls(
            model=read_model(options),
            prompt=str(options[CONF_PROMPT] or "") or None,
            policy=SessionPolicy(
                allow_actuation=options[CONF_ALLOW_ACTUATION],
                allowlisted_services=tuple(options[CONF_ALLOWLISTED_SERVICES]),
                denylisted_services=tuple(dict.fromkeys((*DENYLIST, *options[CONF_DENYLISTED_SERVICES]))),
                require_confirmation=tuple(options[CONF_REQUIRE_CONFIRMATION]),
                max_actions_per_minute=_as_count(options[CONF_MAX_ACTIONS_PER_MINUTE]),
                dry_run=options[CONF_DRY_RUN],
            ),
            budgets=Budgets(
                max_steps=int(options[CONF_MAX_STEPS]),
                max_tool_calls=int(options[CONF_MAX_TOOL_CALLS]),
                max_duration_ms=int(options[CONF_MAX_DURATION_MS]),
                max_tokens_per_turn=int(options[CONF_MAX_TOKENS_PER_TURN]),
                max_cost_per_turn_usd=options[CONF_MAX_COST_PER_TURN_USD],
                max_cost_per_day_usd=options[CONF_MAX_COST_PER_DAY_USD],
            ),
            window=_read_window(options),
            preserve_system=options[CONF_SLIDING_WINDOW_PRESERVE_SYSTEM],
            scope=options[CONF_SESSION_SCOPE],
            early_wait_s=float(options[CONF_EARLY_WAIT_SECONDS]) if options[CONF_EARLY_WAIT_ENABLE] else None,
            approval_wait_s=float(options[CONF_APPROVAL_WAIT_SECONDS]),
            idle_days=_as_days(options[CONF_SESSION_IDLE_DAYS]),
            retention_days=_as_days(options[CONF_TRANSCRIPT_RETENTION_DAYS]),
            llm_api_ids=tuple(options[CONF_LLM_HASS_API] or ()),
            uses_home_assistant_intents=options[CONF_USE_HOME_ASSISTANT_INTENTS],
        )


def read_options(subentry: ConfigSubentry) -> AgentOptions:
    """Return the options of an agent. Raise `ConfigEntryError` if its data are damaged.

    A wrong value is not replaced by a default, because the default may allow more.
    """
    for name in SERVICE_LISTS:
        if not isinstance(subentry.data.get(name, ()), list | tuple):
            raise ConfigEntryError(_DAMAGED.format(subentry.title, f"{name} is not a list"))
    if (scope := subentry.data.get(CONF_SESSION_SCOPE, SCOPE_DEVICE)) not in SESSION_SCOPES:
        raise ConfigEntryError(_DAMAGED.format(subentry.title, f"{CONF_SESSION_SCOPE} is {scope!r:.80}"))
    try:
        return AgentOptions.of(subentry.data)
    except (TypeError, ValueError, InvalidInput) as error:
        raise ConfigEntryError(_DAMAGED.format(subentry.title, error)) from error


@dataclass(frozen=True, slots=True)
class AITaskOptions:
    """The options of an AI Task entity."""

    model: ModelConfig
    llm_api_ids: tuple[str, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> AITaskOptions:
        """Read the data of a subentry. An option that is missing has its default."""
        options = {**AI_TASK_DEFAULTS, **data}
        return cls(read_model(options), tuple(options[CONF_LLM_HASS_API] or ()))


def read_model(options: Mapping[str, Any]) -> ModelConfig:
    """Return the model of an agent or a task, with its parameters."""
    effort = options[CONF_REASONING_EFFORT]
    return ModelConfig(
        name=options[CONF_MODEL] or None,
        temperature=options[CONF_TEMPERATURE],
        max_output_tokens=_as_count(options[CONF_MAX_OUTPUT_TOKENS]),
        options={} if effort is None else {"reasoning_effort": effort},
    )


def _read_window(options: Mapping[str, Any]) -> WindowLimits | None:
    max_tokens, max_turns = options[CONF_SLIDING_WINDOW_MAX_TOKENS], options[CONF_MAX_HISTORY_TURNS]
    preserve_system = options[CONF_SLIDING_WINDOW_PRESERVE_SYSTEM]
    if not options[CONF_SLIDING_WINDOW_ENABLE]:
        return WindowLimits(max_tokens=None, max_turns=None, preserve_system=preserve_system)
    if max_tokens is None and not max_turns:
        return None
    return WindowLimits(
        max_tokens=_as_count(max_tokens), max_turns=_as_count(max_turns), preserve_system=preserve_system
    )


def _as_count(value: float | None) -> int | None:
    """Return a whole number. Home Assistant's number fields return floats."""
    return None if value is None else int(value)


def _as_days(value: float | None) -> float | None:
    """Return a number of days. Raise `ValueError` if it is not above zero: it would delete everything."""
    if value is None:
        return None
    if (days := float(value)) <= 0:
        raise ValueError(f"{days:g} days are not above zero")
    return days
