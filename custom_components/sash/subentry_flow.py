"""The flows that add and change the agents and the AI tasks of a provider."""

from collections.abc import Mapping
from typing import Any

from homeassistant.config_entries import SOURCE_USER, ConfigEntryState, ConfigSubentryFlow, SubentryFlowResult
from homeassistant.const import CONF_MODEL, CONF_NAME

from .const import (
    CONF_PROVIDER,
    CONF_REASONING_EFFORT,
    CONF_TEMPERATURE,
    DEFAULT_AGENT_NAME,
    DEFAULT_AI_TASK_NAME,
    DEFAULT_OPENAI_MODEL,
    PROVIDER_LOCAL,
    PROVIDER_OPENAI,
    SUBENTRY_AI_TASK,
)
from .option_checks import FieldError
from .option_forms import STEP_INIT, OptionForm
from .provider import check_model, check_provider

_CHECKED_OPTIONS = (CONF_MODEL, CONF_TEMPERATURE, CONF_REASONING_EFFORT)


class OptionsSubentryFlow(ConfigSubentryFlow):
    """Adds or changes a conversation agent or an AI task, in one form."""

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._form: OptionForm | None = None

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Add a subentry. The form suggests the model that the other subentries use."""
        entry = self._get_entry()
        models = [subentry.data.get(CONF_MODEL) for subentry in entry.subentries.values()]
        if entry.data[CONF_PROVIDER] == PROVIDER_OPENAI:
            models.append(DEFAULT_OPENAI_MODEL)
        self._options = {CONF_MODEL: next(filter(None, models), None)}
        return await self.async_step_init()

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Change a subentry."""
        self._options = dict(self._get_reconfigure_subentry().data)
        return await self.async_step_init()

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> SubentryFlowResult:
        """Show the form, or check and save what the user entered."""
        if self._get_entry().state is not ConfigEntryState.LOADED:
            return self.async_abort(reason="entry_not_loaded")
        if self._form is None:
            self._form = await self._create_form()
        error: FieldError | None = None
        shown: Mapping[str, Any] = self._form.make_suggestions(self.hass, self._options)
        if user_input is not None:
            shown = user_input
            error = await self._form.find_error(self.hass, user_input)
            if error is None:
                options = self._form.read_options(user_input, self._options)
                error = await self._find_model_error(options)
                if error is None:
                    return self._save(user_input.get(CONF_NAME, ""), options)
        return self.async_show_form(
            step_id=STEP_INIT,
            data_schema=self.add_suggested_values_to_schema(
                self._form.make_schema(self.hass, self._default_name if self._is_new else None), shown
            ),
            errors={error.place: error.key} if error else {},
            description_placeholders=error.placeholders if error else None,
        )

    @property
    def _is_new(self) -> bool:
        return self.source == SOURCE_USER

    @property
    def _default_name(self) -> str:
        return DEFAULT_AI_TASK_NAME if self._subentry_type == SUBENTRY_AI_TASK else DEFAULT_AGENT_NAME

    async def _create_form(self) -> OptionForm:
        """Create the form with the provider's models; if they cannot be read, the user types a name."""
        data = self._get_entry().data
        if data[CONF_PROVIDER] == PROVIDER_LOCAL:
            return OptionForm(self._subentry_type, has_model=False)
        checked = await check_provider(self.hass, data)
        return OptionForm(self._subentry_type, models=checked.models)

    async def _find_model_error(self, options: Mapping[str, Any]) -> FieldError | None:
        """Try a model that the provider does not list, and parameters that it may refuse."""
        assert self._form is not None
        before = {name: self._options.get(name) for name in _CHECKED_OPTIONS}
        after = {name: options.get(name) for name in _CHECKED_OPTIONS}
        is_listed = after.pop(CONF_MODEL) in self._form.models
        if not self._form.has_model or (is_listed and not any(after.values())):
            return None
        if not self._is_new and before == {name: options.get(name) for name in _CHECKED_OPTIONS}:
            return None
        checked = await check_model(self.hass, self._get_entry().data, options)
        return FieldError(CONF_MODEL, checked.error, {"reason": checked.reason}) if checked.error else None

    def _save(self, name: str, options: dict[str, Any]) -> SubentryFlowResult:
        if self._is_new:
            return self.async_create_entry(title=name.strip() or self._default_name, data=options)
        entry, subentry = self._get_entry(), self._get_reconfigure_subentry()
        if entry.update_listeners:
            return self.async_update_and_abort(entry, subentry, data=options)
        return self.async_update_reload_and_abort(entry, subentry, data=options)
