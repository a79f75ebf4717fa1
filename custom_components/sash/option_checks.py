"""Checks of what a user enters for an option: numbers, templates, names of services and of LLM APIs."""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT, Platform
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import llm
from homeassistant.helpers.template import Template
from homeassistant.util import slugify

from .const import (
    CONF_ALLOWLISTED_SERVICES,
    CONF_APPROVAL_WAIT_SECONDS,
    CONF_DENYLISTED_SERVICES,
    CONF_EARLY_WAIT_SECONDS,
    CONF_MAX_ACTIONS_PER_MINUTE,
    CONF_MAX_COST_PER_DAY_USD,
    CONF_MAX_COST_PER_TURN_USD,
    CONF_MAX_HISTORY_TURNS,
    CONF_MAX_OUTPUT_TOKENS,
    CONF_MAX_STEPS,
    CONF_MAX_TOKENS_PER_TURN,
    CONF_MAX_TOOL_CALLS,
    CONF_REQUIRE_CONFIRMATION,
    CONF_SESSION_IDLE_DAYS,
    CONF_SLIDING_WINDOW_MAX_TOKENS,
    CONF_TEMPERATURE,
    CONF_TRANSCRIPT_RETENTION_DAYS,
    EVERYDAY_SERVICES,
    OTHER_SERVICES,
)
from .intent_services import INTENT_SCRIPT
from .llm_contexts import make_llm_context
from .prompt_template import render_prompt

# Forms show `max_duration_ms` in seconds.
FIELD_MAX_DURATION_SECONDS = "max_duration_seconds"
SERVICE_LISTS = (CONF_ALLOWLISTED_SERVICES, CONF_DENYLISTED_SERVICES, CONF_REQUIRE_CONFIRMATION)

_WILDCARDS = frozenset("*?[")


class NumberRange(NamedTuple):
    """The smallest and the greatest number of a field, and its unit. Whole numbers have the step 1."""

    minimum: float
    maximum: float
    unit: str | None = None
    step: float = 1


NUMBER_RANGES: Mapping[str, NumberRange] = {
    CONF_TEMPERATURE: NumberRange(0, 2, step=0.05),
    CONF_MAX_OUTPUT_TOKENS: NumberRange(16, 1_000_000),
    CONF_APPROVAL_WAIT_SECONDS: NumberRange(5, 3600, "s"),
    CONF_MAX_ACTIONS_PER_MINUTE: NumberRange(1, 1000),
    CONF_SLIDING_WINDOW_MAX_TOKENS: NumberRange(200, 1_000_000),
    CONF_MAX_HISTORY_TURNS: NumberRange(0, 1000),
    CONF_SESSION_IDLE_DAYS: NumberRange(1, 3650, "d"),
    CONF_TRANSCRIPT_RETENTION_DAYS: NumberRange(1, 36_500, "d"),
    CONF_MAX_STEPS: NumberRange(1, 100),
    CONF_MAX_TOOL_CALLS: NumberRange(0, 1000),
    FIELD_MAX_DURATION_SECONDS: NumberRange(5, 3600, "s"),
    CONF_MAX_TOKENS_PER_TURN: NumberRange(1000, 10_000_000),
    CONF_MAX_COST_PER_TURN_USD: NumberRange(0, 1000, "USD", step=0.001),
    CONF_MAX_COST_PER_DAY_USD: NumberRange(0, 10_000, "USD", step=0.01),
    CONF_EARLY_WAIT_SECONDS: NumberRange(1, 600, "s", step=0.5),
}


class FieldError(NamedTuple):
    """An error at a field or a section, with the values of the placeholders in its text."""

    place: str
    key: str
    placeholders: Mapping[str, str] = MappingProxyType({})


def find_fault(hass: HomeAssistant, field: str, value: Any) -> FieldError | None:
    """Return the error of a field's value, or None. The caller adds the field's label and place."""
    if (numbers := NUMBER_RANGES.get(field)) is not None:
        is_whole = numbers.step != 1 or float(value).is_integer()
        if is_whole and numbers.minimum <= value <= numbers.maximum:
            return None
        limits = {"min": f"{numbers.minimum:g}", "max": f"{numbers.maximum:.0f}"}
        return FieldError(field, "out_of_range" if is_whole else "not_whole", limits)
    if field == CONF_MODEL and not value.strip():
        return FieldError(field, "model_missing")
    if field == CONF_PROMPT and (reason := check_template(hass, value)):
        return FieldError(field, "invalid_template", {"reason": reason})
    if field == CONF_LLM_HASS_API:
        known = {api.id for api in llm.async_get_apis(hass)}
        if unknown := [api for api in value if api not in known]:
            return FieldError(field, "unknown_llm_api", {"names": ", ".join(unknown)})
    if field in SERVICE_LISTS:
        unknown = find_unknown_services(hass, value)
        return FieldError(field, "unknown_service", {"names": ", ".join(unknown)}) if unknown else None
    return None


def check_template(hass: HomeAssistant, text: str) -> str | None:
    """Return the reason why a prompt cannot be rendered, or None if it can."""
    context = make_llm_context(Context(), hass.config.language)
    try:
        render_prompt(Template(text, hass), None, context)
    except TemplateError as error:
        return str(error)
    return None


def find_unknown_services(hass: HomeAssistant, names: Iterable[str]) -> list[str]:
    """Return the names that are no service, no domain with services, and no pattern that matches one.

    A policy also judges tools of LLM APIs, as `mcp.delete_file`, and a user's own intents, as
    `intent_script.good_night`. Their names cannot be checked.
    """
    services = hass.services.async_services()
    known = {f"{domain}.{service}" for domain, verbs in services.items() for service in verbs}
    # The services of a domain are known when the first device of its kind is there.
    later = {*Platform, *EVERYDAY_SERVICES, *OTHER_SERVICES}
    tools = {*hass.config.top_level_components, *(slugify(api.name) for api in llm.async_get_apis(hass))}
    unchecked = ((later | tools) - services.keys()) | {INTENT_SCRIPT}
    return [
        name for name in names if not _is_service(name.strip().lower(), services.keys(), known, unchecked)
    ]


def _is_service(
    name: str, domains: Collection[str], services: Collection[str], unchecked: Collection[str]
) -> bool:
    domain, dot, verb = name.partition(".")
    if _WILDCARDS.intersection(name):
        return any(fnmatchcase(service, name) for service in services) or domain in unchecked
    if not dot:
        return domain in domains or domain in unchecked
    return name in services or (domain in unchecked and verb.isidentifier())
