"""The forms for the options of agents and AI tasks: their fields, and the checks of what a user enters.

A form shows few fields at first. The others are in sections, which Home Assistant shows folded. It shows an
error of a field in a section at the section, so the text of such an error names the field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import probatio
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_NAME, CONF_PROMPT
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import section
from homeassistant.helpers import llm
from homeassistant.helpers.selector import (
    BooleanSelector,
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    SelectOptionDict,
    Selector,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
    TextSelector,
)
from homeassistant.helpers.translation import async_get_translations

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
    DOMAIN,
    EVERYDAY_SERVICES,
    GENERIC_SERVICES,
    OTHER_SERVICES,
    REASONING_EFFORTS,
    SESSION_SCOPES,
    SUBENTRY_AI_TASK,
)
from .option_checks import (
    FIELD_MAX_DURATION_SECONDS,
    NUMBER_RANGES,
    SERVICE_LISTS,
    FieldError,
    NumberRange,
    find_fault,
)

STEP_INIT = "init"

SECTION_ACTIONS = "actions"
SECTION_MEMORY = "memory"
SECTION_BUDGETS = "budgets"
SECTION_ADVANCED = "advanced"


_SECTIONS: Mapping[str, tuple[str, ...]] = {
    SECTION_ACTIONS: (
        CONF_ALLOWLISTED_SERVICES,
        CONF_REQUIRE_CONFIRMATION,
        CONF_DENYLISTED_SERVICES,
        CONF_APPROVAL_WAIT_SECONDS,
        CONF_MAX_ACTIONS_PER_MINUTE,
        CONF_DRY_RUN,
    ),
    SECTION_MEMORY: (
        CONF_SESSION_SCOPE,
        CONF_SESSION_IDLE_DAYS,
        CONF_TRANSCRIPT_RETENTION_DAYS,
        CONF_SLIDING_WINDOW_ENABLE,
        CONF_SLIDING_WINDOW_MAX_TOKENS,
        CONF_SLIDING_WINDOW_PRESERVE_SYSTEM,
        CONF_MAX_HISTORY_TURNS,
    ),
    SECTION_BUDGETS: (
        CONF_MAX_COST_PER_DAY_USD,
        CONF_MAX_COST_PER_TURN_USD,
        FIELD_MAX_DURATION_SECONDS,
        CONF_MAX_TOKENS_PER_TURN,
        CONF_MAX_STEPS,
        CONF_MAX_TOOL_CALLS,
    ),
    SECTION_ADVANCED: (
        CONF_REASONING_EFFORT,
        CONF_TEMPERATURE,
        CONF_MAX_OUTPUT_TOKENS,
        CONF_EARLY_WAIT_ENABLE,
        CONF_EARLY_WAIT_SECONDS,
        CONF_LLM_HASS_API,
        CONF_USE_HOME_ASSISTANT_INTENTS,
    ),
}
_AGENT_FIELDS = (CONF_MODEL, CONF_PROMPT, CONF_ALLOW_ACTUATION)
_AI_TASK_SECTIONS: Mapping[str, tuple[str, ...]] = {
    SECTION_ADVANCED: (
        CONF_REASONING_EFFORT,
        CONF_TEMPERATURE,
        CONF_MAX_OUTPUT_TOKENS,
        CONF_LLM_HASS_API,
    ),
}
# An agent without a model understands sentences of a grammar. It needs none of these.
_MODEL_FIELDS = frozenset(
    {
        CONF_MODEL,
        CONF_PROMPT,
        CONF_SLIDING_WINDOW_ENABLE,
        CONF_SLIDING_WINDOW_MAX_TOKENS,
        CONF_SLIDING_WINDOW_PRESERVE_SYSTEM,
        CONF_MAX_HISTORY_TURNS,
        *_SECTIONS[SECTION_BUDGETS],
        CONF_REASONING_EFFORT,
        CONF_TEMPERATURE,
        CONF_MAX_OUTPUT_TOKENS,
        CONF_EARLY_WAIT_ENABLE,
        CONF_EARLY_WAIT_SECONDS,
        CONF_LLM_HASS_API,
    }
)


class _UncheckedNumber(NumberSelector):
    """A number field whose range the flow checks, because Home Assistant's own error names no field."""

    def __call__(self, data: Any) -> float:
        number: float = probatio.Coerce(float)(data)
        return number


class _UncheckedSelect(SelectSelector):
    """A selection that the flow checks, for the same reason."""

    def __call__(self, data: Any) -> Any:
        return probatio.Schema([str])(data)


@dataclass(frozen=True, slots=True)
class OptionForm:
    """The form for a kind of subentry of a provider. `has_model` is False for the provider `local`.

    `models` are the names to choose from. If it is empty, the user types a name.
    """

    kind: str
    has_model: bool = True
    models: Sequence[str] = ()

    @property
    def sections(self) -> dict[str, tuple[str, ...]]:
        """The fields of each section that this form needs."""
        every = _AI_TASK_SECTIONS if self.kind == SUBENTRY_AI_TASK else _SECTIONS
        kept = {
            name: tuple(field for field in fields if self.has_model or field not in _MODEL_FIELDS)
            for name, fields in every.items()
        }
        return {name: fields for name, fields in kept.items() if fields}

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields outside of sections."""
        every = (CONF_MODEL,) if self.kind == SUBENTRY_AI_TASK else _AGENT_FIELDS
        return tuple(field for field in every if self.has_model or field not in _MODEL_FIELDS)

    def make_schema(self, hass: HomeAssistant, name: str | None = None) -> probatio.Schema:
        """Return the schema. A new subentry has the field `name`, with this default."""
        schema: dict[probatio.Marker, Any] = {}
        if name is not None:
            schema[probatio.Required(CONF_NAME, default=name)] = TextSelector()
        for field in self.fields:
            schema[self._make_marker(field)] = self._make_selector(hass, field)
        for title, fields in self.sections.items():
            inner = {self._make_marker(field): self._make_selector(hass, field) for field in fields}
            schema[probatio.Optional(title)] = section(probatio.Schema(inner), {"collapsed": True})
        return probatio.Schema(schema)

    def make_suggestions(self, hass: HomeAssistant, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the form shows for the options of a subentry, and their defaults."""
        values: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in {**self._defaults, **options}.items()
            if value is not None
        }
        if CONF_MAX_DURATION_MS in values:
            values[FIELD_MAX_DURATION_SECONDS] = values.pop(CONF_MAX_DURATION_MS) / 1000
        if CONF_ALLOWLISTED_SERVICES in values:
            values[CONF_ALLOWLISTED_SERVICES] = [
                service for service in values[CONF_ALLOWLISTED_SERVICES] if service not in GENERIC_SERVICES
            ]
        if CONF_LLM_HASS_API in values:
            known = {api.id for api in llm.async_get_apis(hass)}
            values[CONF_LLM_HASS_API] = [api for api in values[CONF_LLM_HASS_API] if api in known]
        suggested = {field: values[field] for field in self.fields if field in values}
        for title, fields in self.sections.items():
            suggested[title] = {field: values[field] for field in fields if field in values}
        return suggested

    def read_options(self, entered: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a subentry after the user has filled in the form.

        An empty field is not part of the options. A section that was not sent keeps its options.
        """
        values = dict(entered)
        known = set(self.fields)
        for title, fields in self.sections.items():
            if title in values:
                known.update(fields)
                values |= values.pop(title)
        cleared = known | ({CONF_MAX_DURATION_MS} if FIELD_MAX_DURATION_SECONDS in known else set())
        read = {name: value for name, value in options.items() if name not in cleared}
        for field in sorted(known & values.keys()):
            if values[field] not in (None, ""):
                name, value = _read_field(field, values[field])
                read[name] = value
        return read

    async def find_error(self, hass: HomeAssistant, entered: Mapping[str, Any]) -> FieldError | None:
        """Return the first error in what the user entered, or None."""
        places = {field: field for field in self.fields}
        values = {field: entered[field] for field in self.fields if field in entered}
        for title, fields in self.sections.items():
            inside = entered.get(title, {})
            places |= dict.fromkeys(fields, title)
            values |= {field: inside[field] for field in fields if field in inside}
        for field, value in values.items():
            error = find_fault(hass, field, value)
            if error is None and field == CONF_ALLOWLISTED_SERVICES and not value:
                error = FieldError(field, "nothing_allowed") if entered.get(CONF_ALLOW_ACTUATION) else None
            if error is not None:
                label = await self._find_label(hass, field, places[field])
                return FieldError(places[field], error.key, {**error.placeholders, "field": label})
        return None

    @property
    def _defaults(self) -> Mapping[str, Any]:
        return AI_TASK_DEFAULTS if self.kind == SUBENTRY_AI_TASK else AGENT_DEFAULTS

    def _make_marker(self, field: str) -> probatio.Marker:
        """Return the marker of a field: required with a default, or optional without one."""
        if field == CONF_MODEL:
            return probatio.Required(field)
        default = self._defaults.get(field)
        if field == FIELD_MAX_DURATION_SECONDS:
            default = AGENT_DEFAULTS[CONF_MAX_DURATION_MS] / 1000
        if default is None or isinstance(default, tuple):
            return probatio.Optional(field)
        return probatio.Optional(field, default=default)

    def _make_selector(self, hass: HomeAssistant, field: str) -> Selector[Any]:
        if (numbers := NUMBER_RANGES.get(field)) is not None:
            return _make_number(numbers)
        if field == CONF_MODEL:
            return make_model_selector(self.models)
        if field == CONF_PROMPT:
            return TemplateSelector()
        if field == CONF_SESSION_SCOPE:
            return _make_choice(SESSION_SCOPES, field)
        if field == CONF_REASONING_EFFORT:
            return _make_choice(REASONING_EFFORTS, field)
        if field == CONF_LLM_HASS_API:
            apis = [SelectOptionDict(label=api.name, value=api.id) for api in llm.async_get_apis(hass)]
            return _UncheckedSelect(SelectSelectorConfig(options=apis, multiple=True))
        if field in SERVICE_LISTS:
            return _make_services()
        return BooleanSelector()

    async def _find_label(self, hass: HomeAssistant, field: str, place: str) -> str:
        """Return the label of a field, in Home Assistant's language."""
        prefix = f"component.{DOMAIN}.config_subentries.{self.kind}.step.{STEP_INIT}"
        inner = "" if place == field else f".sections.{place}"
        labels = await async_get_translations(hass, hass.config.language, "config_subentries", {DOMAIN})
        return labels.get(f"{prefix}{inner}.data.{field}", field)


def make_model_selector(models: Sequence[str]) -> Selector[Any]:
    """Return a list of models that also takes another name; without models, a field for a name."""
    if not models:
        return TextSelector()
    return SelectSelector(
        SelectSelectorConfig(options=list(models), custom_value=True, mode=SelectSelectorMode.DROPDOWN)
    )


def _read_field(field: str, value: Any) -> tuple[str, Any]:
    """Return the option that a field stands for, and its value as it is stored."""
    if field == FIELD_MAX_DURATION_SECONDS:
        return CONF_MAX_DURATION_MS, round(value * 1000)
    if (numbers := NUMBER_RANGES.get(field)) is not None:
        return field, int(value) if numbers.step == 1 else value
    if field in SERVICE_LISTS:
        names = list(dict.fromkeys(name.strip().lower() for name in value if name.strip()))
        if field == CONF_ALLOWLISTED_SERVICES and names:
            names += [service for service in GENERIC_SERVICES if service not in names]
        return field, names
    return field, value.strip() if isinstance(value, str) else value


def _make_number(numbers: NumberRange) -> NumberSelector:
    config = NumberSelectorConfig(
        min=numbers.minimum, max=numbers.maximum, step=numbers.step, mode=NumberSelectorMode.BOX
    )
    if numbers.unit:
        config["unit_of_measurement"] = numbers.unit
    return _UncheckedNumber(config)


def _make_choice(values: Sequence[str], translation_key: str) -> SelectSelector:
    return SelectSelector(
        SelectSelectorConfig(
            options=list(values), translation_key=translation_key, mode=SelectSelectorMode.DROPDOWN
        )
    )


def _make_services() -> SelectSelector:
    return SelectSelector(
        SelectSelectorConfig(
            options=[*EVERYDAY_SERVICES, *OTHER_SERVICES],
            translation_key="services",
            multiple=True,
            custom_value=True,
            mode=SelectSelectorMode.DROPDOWN,
        )
    )
