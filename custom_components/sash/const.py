"""Names and defaults: the domain, the data of a provider, and the options of agents and AI tasks.

Options have the names, meanings and defaults of Sash's settings (`docs/settings.md`). The data of a subentry
is flat and may lack any option: then its default applies. `api_key`, `api_version`, `model`, `prompt` and
`llm_hass_api` are constants of Home Assistant.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT

from sash.values.sessions import CONFIRM, Budgets, Retention, SessionPolicy

DOMAIN: Final = "sash"

SUBENTRY_CONVERSATION: Final = "conversation"
SUBENTRY_AI_TASK: Final = "ai_task_data"

# The data of a config entry, which is a provider of models.
CONF_PROVIDER: Final = "provider"
CONF_API_BASE: Final = "api_base"
CONF_AZURE_ENDPOINT: Final = "azure_endpoint"

PROVIDER_OPENAI: Final = "openai"
PROVIDER_AZURE: Final = "azure"
PROVIDER_COMPATIBLE: Final = "compatible"
PROVIDER_LOCAL: Final = "local"
PROVIDERS: Final = (PROVIDER_OPENAI, PROVIDER_AZURE, PROVIDER_COMPATIBLE, PROVIDER_LOCAL)

# The model and its parameters. A provider's own default applies to a parameter that is not set.
CONF_TEMPERATURE: Final = "temperature"
CONF_REASONING_EFFORT: Final = "reasoning_effort"
CONF_MAX_OUTPUT_TOKENS: Final = "max_output_tokens"

# Actions.
CONF_ALLOW_ACTUATION: Final = "allow_actuation"
CONF_ALLOWLISTED_SERVICES: Final = "allowlisted_services"
CONF_DENYLISTED_SERVICES: Final = "denylisted_services"
CONF_REQUIRE_CONFIRMATION: Final = "require_confirmation"
CONF_APPROVAL_WAIT_SECONDS: Final = "approval_wait_seconds"
CONF_MAX_ACTIONS_PER_MINUTE: Final = "max_actions_per_minute"
CONF_DRY_RUN: Final = "dry_run"

# Memory.
CONF_SESSION_SCOPE: Final = "session_scope"
CONF_SLIDING_WINDOW_ENABLE: Final = "sliding_window_enable"
CONF_SLIDING_WINDOW_MAX_TOKENS: Final = "sliding_window_max_tokens"
CONF_SLIDING_WINDOW_PRESERVE_SYSTEM: Final = "sliding_window_preserve_system"
CONF_MAX_HISTORY_TURNS: Final = "max_history_turns"
CONF_SESSION_IDLE_DAYS: Final = "session_idle_days"
CONF_TRANSCRIPT_RETENTION_DAYS: Final = "transcript_retention_days"

# Budgets.
CONF_MAX_STEPS: Final = "max_steps"
CONF_MAX_TOOL_CALLS: Final = "max_tool_calls"
CONF_MAX_DURATION_MS: Final = "max_duration_ms"
CONF_MAX_TOKENS_PER_TURN: Final = "max_tokens_per_turn"
CONF_MAX_COST_PER_TURN_USD: Final = "max_cost_per_turn_usd"
CONF_MAX_COST_PER_DAY_USD: Final = "max_cost_per_day_usd"

# The rest.
CONF_EARLY_WAIT_ENABLE: Final = "early_wait_enable"
CONF_EARLY_WAIT_SECONDS: Final = "early_wait_seconds"
CONF_USE_HOME_ASSISTANT_INTENTS: Final = "use_home_assistant_intents"

SCOPE_CONVERSATION: Final = "conversation"
SCOPE_USER: Final = "user"
SCOPE_DEVICE: Final = "device"
SCOPE_AREA: Final = "area"
SCOPE_HOUSE: Final = "house"
SCOPE_STATELESS: Final = "stateless"
SESSION_SCOPES: Final = (
    SCOPE_DEVICE,
    SCOPE_AREA,
    SCOPE_HOUSE,
    SCOPE_USER,
    SCOPE_CONVERSATION,
    SCOPE_STATELESS,
)

REASONING_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# Services of everyday life. A lock inside a scene or a script still needs an approval.
EVERYDAY_SERVICES: Final = (
    "light",
    "switch",
    "fan",
    "media_player",
    "climate",
    "humidifier",
    "vacuum",
    "lawn_mower",
    "scene",
    "script",
    "input_boolean",
    "input_number",
    "input_select",
    "timer",
    "todo",
)
# Services for entities of any domain. They also need the domain of each entity, so they allow nothing alone.
GENERIC_SERVICES: Final = ("homeassistant.turn_on", "homeassistant.turn_off", "homeassistant.toggle")
# Further services that the form offers.
OTHER_SERVICES: Final = (
    *CONFIRM,
    "automation",
    "button",
    "calendar",
    "input_button",
    "input_datetime",
    "input_text",
    "notify",
    "number",
    "remote",
    "select",
    "shopping_list",
    "siren",
    "water_heater",
)

DEFAULT_OPENAI_MODEL: Final = "gpt-5-mini"
DEFAULT_AZURE_API_VERSION: Final = "2025-04-01-preview"
DEFAULT_AGENT_NAME: Final = "Sash"
DEFAULT_AI_TASK_NAME: Final = "Sash AI Task"

_BUDGETS = Budgets()
_POLICY = SessionPolicy()
_RETENTION = Retention()

# None means that the model, the provider or Sash decides. `denylisted_services` extend the built-in list.
AGENT_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        CONF_MODEL: None,
        CONF_PROMPT: None,
        CONF_TEMPERATURE: None,
        CONF_REASONING_EFFORT: None,
        CONF_MAX_OUTPUT_TOKENS: None,
        CONF_ALLOW_ACTUATION: _POLICY.allow_actuation,
        CONF_ALLOWLISTED_SERVICES: (*EVERYDAY_SERVICES, *GENERIC_SERVICES),
        CONF_DENYLISTED_SERVICES: (),
        CONF_REQUIRE_CONFIRMATION: CONFIRM,
        CONF_APPROVAL_WAIT_SECONDS: 60,
        CONF_MAX_ACTIONS_PER_MINUTE: _POLICY.max_actions_per_minute,
        CONF_DRY_RUN: _POLICY.dry_run,
        CONF_SESSION_SCOPE: SCOPE_DEVICE,
        CONF_SLIDING_WINDOW_ENABLE: True,
        CONF_SLIDING_WINDOW_MAX_TOKENS: None,
        CONF_SLIDING_WINDOW_PRESERVE_SYSTEM: True,
        CONF_MAX_HISTORY_TURNS: 0,
        CONF_SESSION_IDLE_DAYS: _RETENTION.session_idle_days,
        CONF_TRANSCRIPT_RETENTION_DAYS: _RETENTION.transcript_retention_days,
        CONF_MAX_STEPS: _BUDGETS.max_steps,
        CONF_MAX_TOOL_CALLS: _BUDGETS.max_tool_calls,
        CONF_MAX_DURATION_MS: _BUDGETS.max_duration_ms,
        CONF_MAX_TOKENS_PER_TURN: _BUDGETS.max_tokens_per_turn,
        CONF_MAX_COST_PER_TURN_USD: _BUDGETS.max_cost_per_turn_usd,
        CONF_MAX_COST_PER_DAY_USD: _BUDGETS.max_cost_per_day_usd,
        CONF_EARLY_WAIT_ENABLE: False,
        CONF_EARLY_WAIT_SECONDS: 5.0,
        CONF_LLM_HASS_API: (),
        CONF_USE_HOME_ASSISTANT_INTENTS: True,
    }
)
AI_TASK_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        CONF_MODEL: None,
        CONF_TEMPERATURE: None,
        CONF_REASONING_EFFORT: None,
        CONF_MAX_OUTPUT_TOKENS: None,
        CONF_LLM_HASS_API: (),
    }
)
