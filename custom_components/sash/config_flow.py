"""The flow that adds and changes providers. Their agents and AI tasks have flows of their own."""

from collections.abc import Mapping
from typing import Any

import probatio
from homeassistant.config_entries import (
    SOURCE_REAUTH,
    SOURCE_RECONFIGURE,
    ConfigEntry,
    ConfigFlow,
    ConfigFlowResult,
    ConfigSubentryData,
    ConfigSubentryFlow,
)
from homeassistant.const import CONF_API_KEY, CONF_API_VERSION, CONF_MODEL
from homeassistant.core import callback
from homeassistant.data_entry_flow import AbortFlow
from homeassistant.helpers.selector import (
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TextSelector,
    TextSelectorConfig,
    TextSelectorType,
)

from sash.values.sessions import CONFIRM

from .const import (
    CONF_ALLOW_ACTUATION,
    CONF_ALLOWLISTED_SERVICES,
    CONF_API_BASE,
    CONF_AZURE_ENDPOINT,
    CONF_PROVIDER,
    CONF_REASONING_EFFORT,
    CONF_TEMPERATURE,
    DEFAULT_AGENT_NAME,
    DEFAULT_AI_TASK_NAME,
    DEFAULT_AZURE_API_VERSION,
    DEFAULT_OPENAI_MODEL,
    DOMAIN,
    EVERYDAY_SERVICES,
    GENERIC_SERVICES,
    PROVIDER_AZURE,
    PROVIDER_COMPATIBLE,
    PROVIDER_LOCAL,
    PROVIDER_OPENAI,
    PROVIDERS,
    SUBENTRY_AI_TASK,
    SUBENTRY_CONVERSATION,
)
from .option_forms import make_model_selector
from .provider import (
    CheckResult,
    check_model,
    check_provider,
    normalize_address,
    provider_address,
    provider_title,
    provider_unique_id,
)
from .subentry_flow import OptionsSubentryFlow

# The answers to "What may Sash control?".
FIELD_CONTROL = "control"
CONTROL_NOTHING = "nothing"
CONTROL_EVERYDAY = "everyday"
CONTROL_EVERYTHING = "everything"
CONTROLS = (CONTROL_NOTHING, CONTROL_EVERYDAY, CONTROL_EVERYTHING)

_ADDRESS_FIELDS = {PROVIDER_AZURE: CONF_AZURE_ENDPOINT, PROVIDER_COMPATIBLE: CONF_API_BASE}
_EXAMPLES = {
    PROVIDER_AZURE: "https://my-home.openai.azure.com",
    PROVIDER_COMPATIBLE: "http://192.168.1.20:11434/v1",
}
_SECRET = TextSelector(TextSelectorConfig(type=TextSelectorType.PASSWORD))
_ADDRESS = TextSelector(TextSelectorConfig(type=TextSelectorType.URL))
# Models of OpenAI that think before they answer. At a low effort they answer a voice in time.
_REASONING_MODELS = ("gpt-5", "gpt-6", "o1", "o3", "o4")
_OTHER_EFFORTS = ("pro", "chat")


class SashConfigFlow(ConfigFlow, domain=DOMAIN):
    """Adds a provider with a first agent, and changes providers."""

    VERSION = 1
    MINOR_VERSION = 1

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self._models: tuple[str, ...] = ()

    @classmethod
    @callback
    def async_get_supported_subentry_types(
        cls, config_entry: ConfigEntry
    ) -> dict[str, type[ConfigSubentryFlow]]:
        """Return the flows of the subentries. AI tasks need a model."""
        types: dict[str, type[ConfigSubentryFlow]] = {SUBENTRY_CONVERSATION: OptionsSubentryFlow}
        if config_entry.data[CONF_PROVIDER] != PROVIDER_LOCAL:
            types[SUBENTRY_AI_TASK] = OptionsSubentryFlow
        return types

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Let the user choose a provider."""
        return self.async_show_menu(step_id="user", menu_options=list(PROVIDERS))

    async def async_step_reconfigure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Let the user choose the provider again. The entry keeps its agents and their memory."""
        return self.async_show_menu(step_id="reconfigure", menu_options=list(PROVIDERS))

    async def async_step_openai(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the key of OpenAI."""
        return await self._async_step_provider(PROVIDER_OPENAI, user_input)

    async def async_step_azure(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the address and the key of an Azure OpenAI resource."""
        return await self._async_step_provider(PROVIDER_AZURE, user_input)

    async def async_step_compatible(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the address of a server with OpenAI's API, and for its key if it needs one."""
        return await self._async_step_provider(PROVIDER_COMPATIBLE, user_input)

    async def async_step_local(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Use no model: Sash understands the sentences of a grammar."""
        self._data = {CONF_PROVIDER: PROVIDER_LOCAL}
        return await self._async_provider_checked(CheckResult())

    async def async_step_agent(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for the first agent's model and rights, and create the entry."""
        checked = CheckResult()
        if user_input is not None:
            checked = await self._async_check_model(user_input)
            if checked.error is None:
                return await self._async_create_entry(user_input)
        schema: dict[probatio.Marker, Any] = {}
        if self._data[CONF_PROVIDER] != PROVIDER_LOCAL:
            schema[probatio.Required(CONF_MODEL)] = make_model_selector(self._models)
        schema[probatio.Required(FIELD_CONTROL)] = SelectSelector(
            SelectSelectorConfig(
                options=list(CONTROLS), translation_key=FIELD_CONTROL, mode=SelectSelectorMode.LIST
            )
        )
        return self._show_model_form("agent", schema, user_input, checked)

    async def async_step_new_model(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Ask for a model of the new provider, for the agents and AI tasks whose model it does not have."""
        checked = CheckResult()
        if user_input is not None:
            checked = await self._async_check_model(user_input)
            if checked.error is None:
                self._replace_models(user_input[CONF_MODEL].strip())
                return self._update_entry()
        schema: dict[probatio.Marker, Any] = {
            probatio.Required(CONF_MODEL): make_model_selector(self._models)
        }
        return self._show_model_form("new_model", schema, user_input, checked)

    async def async_step_reauth(self, entry_data: Mapping[str, Any]) -> ConfigFlowResult:
        """Ask for a new key, because the provider refused the old one."""
        return await self.async_step_reauth_confirm()

    async def async_step_reauth_confirm(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Check the new key and keep it."""
        checked = CheckResult()
        if user_input is not None:
            key = user_input[CONF_API_KEY].strip()
            self._data = {**self._get_reauth_entry().data, CONF_API_KEY: key}
            checked = await check_provider(self.hass, self._data)
            if checked.error is None:
                self._abort_if_provider_exists()
                return self._update_entry()
        return self.async_show_form(
            step_id="reauth_confirm",
            data_schema=probatio.Schema({probatio.Required(CONF_API_KEY): _SECRET}),
            errors={"base": checked.error} if checked.error else {},
        )

    @property
    def _present_entry(self) -> ConfigEntry | None:
        """The entry that this flow changes; None for a new one."""
        if self.source == SOURCE_REAUTH:
            return self._get_reauth_entry()
        return self._get_reconfigure_entry() if self.source == SOURCE_RECONFIGURE else None

    async def _async_step_provider(
        self, provider: str, user_input: dict[str, Any] | None
    ) -> ConfigFlowResult:
        errors: dict[str, str] = {}
        if user_input is not None:
            errors = self._read_provider(provider, user_input)
            if not errors:
                self._abort_if_provider_exists()
                checked = await check_provider(self.hass, self._data)
                if checked.error is None:
                    return await self._async_provider_checked(checked)
                place = CONF_API_KEY if checked.error == "invalid_auth" else "base"
                errors[place] = checked.error
        entry = self._present_entry
        present = entry.data if entry and entry.data[CONF_PROVIDER] == provider else {}
        shown = {name: value for name, value in present.items() if name != CONF_API_KEY} | (user_input or {})
        return self.async_show_form(
            step_id=provider,
            data_schema=self.add_suggested_values_to_schema(_make_provider_schema(provider, present), shown),
            errors=errors,
            description_placeholders={"example": _EXAMPLES.get(provider, "")},
        )

    def _read_provider(self, provider: str, user_input: Mapping[str, Any]) -> dict[str, str]:
        """Set the data of the entry from what the user entered, and return the errors in it."""
        entered = {name: value.strip() for name, value in user_input.items()}
        data = {CONF_PROVIDER: provider, **{name: value for name, value in entered.items() if value}}
        errors: dict[str, str] = {}
        if field := _ADDRESS_FIELDS.get(provider):
            address = normalize_address(entered[field], provider)
            errors = {} if address else {field: "invalid_address"}
            data[field] = address
        present = self._present_entry.data if self._present_entry else {}
        # The key goes to the server that it belongs to, and to no other.
        if (
            CONF_API_KEY not in data
            and present.get(CONF_PROVIDER) == provider
            and provider_address(present) == provider_address(data)
            and CONF_API_KEY in present
        ):
            data[CONF_API_KEY] = present[CONF_API_KEY]
        if CONF_API_KEY not in data and provider != PROVIDER_COMPATIBLE:
            errors[CONF_API_KEY] = "key_missing"
        self._data = data
        return errors

    async def _async_provider_checked(self, checked: CheckResult) -> ConfigFlowResult:
        """Continue after the check of a provider: with the first agent, or with the end of a change."""
        self._abort_if_provider_exists()
        self._models = checked.models
        entry = self._present_entry
        if entry is None:
            return await self.async_step_agent()
        if self._data[CONF_PROVIDER] != PROVIDER_LOCAL and self._find_lost_models():
            return await self.async_step_new_model()
        return self._update_entry()

    def _find_lost_models(self) -> list[str]:
        """Return the ids of the subentries whose model the changed provider may not have."""
        entry = self._get_reconfigure_entry()
        is_same = all(
            read(entry.data) == read(self._data)
            for read in (provider_address, lambda data: data[CONF_PROVIDER])
        )
        models = {
            subentry.subentry_id: subentry.data.get(CONF_MODEL) for subentry in entry.subentries.values()
        }
        return [] if is_same else [each for each, model in models.items() if model not in self._models]

    def _replace_models(self, model: str) -> None:
        """Give the subentries whose model is lost a new one, without the parameters of the old one."""
        entry = self._get_reconfigure_entry()
        for subentry_id in self._find_lost_models():
            subentry = entry.subentries[subentry_id]
            unsuited = (CONF_REASONING_EFFORT, CONF_TEMPERATURE)
            kept = {name: value for name, value in subentry.data.items() if name not in unsuited}
            self.hass.config_entries.async_update_subentry(entry, subentry, data={**kept, CONF_MODEL: model})

    async def _async_check_model(self, user_input: Mapping[str, Any]) -> CheckResult:
        """Check a model that the provider does not list."""
        if self._data[CONF_PROVIDER] == PROVIDER_LOCAL or user_input[CONF_MODEL] in self._models:
            return CheckResult()
        if not user_input[CONF_MODEL].strip():
            return CheckResult("model_missing")
        return await check_model(self.hass, self._data, {CONF_MODEL: user_input[CONF_MODEL].strip()})

    def _show_model_form(
        self,
        step_id: str,
        schema: dict[probatio.Marker, Any],
        user_input: dict[str, Any] | None,
        checked: CheckResult,
    ) -> ConfigFlowResult:
        suggested = DEFAULT_OPENAI_MODEL if self._data[CONF_PROVIDER] == PROVIDER_OPENAI else None
        if self._models and suggested not in self._models:
            suggested = self._models[0]
        shown = user_input or ({CONF_MODEL: suggested} if suggested else {})
        return self.async_show_form(
            step_id=step_id,
            data_schema=self.add_suggested_values_to_schema(probatio.Schema(schema), shown),
            errors={CONF_MODEL: checked.error} if checked.error else {},
            description_placeholders={"provider": provider_title(self._data), "reason": checked.reason},
        )

    def _abort_if_provider_exists(self) -> None:
        """Abort the flow if another entry has the same provider, address and key."""
        unique_id = provider_unique_id(self._data)
        existing = self.hass.config_entries.async_entry_for_domain_unique_id(DOMAIN, unique_id)
        if existing is not None and existing is not self._present_entry:
            raise AbortFlow("already_configured")

    async def _async_create_entry(self, user_input: Mapping[str, Any]) -> ConfigFlowResult:
        """Create the entry with a first agent and, if there is a model, a first AI task."""
        await self.async_set_unique_id(provider_unique_id(self._data), raise_on_progress=False)
        self._abort_if_unique_id_configured()
        model = user_input.get(CONF_MODEL, "").strip()
        options: dict[str, Any] = {CONF_MODEL: model} if model else {}
        if self._data[CONF_PROVIDER] == PROVIDER_OPENAI and _can_think_less(model):
            options[CONF_REASONING_EFFORT] = "low"
        agent = {**options, **_make_rights(user_input[FIELD_CONTROL])}
        subentries = [_make_subentry(SUBENTRY_CONVERSATION, DEFAULT_AGENT_NAME, agent)]
        if self._data[CONF_PROVIDER] != PROVIDER_LOCAL:
            subentries.append(_make_subentry(SUBENTRY_AI_TASK, DEFAULT_AI_TASK_NAME, options))
        return self.async_create_entry(
            title=provider_title(self._data), data=self._data, subentries=subentries
        )

    def _update_entry(self) -> ConfigFlowResult:
        """Change the entry and reload it: by its own listener, if it has one."""
        entry = self._present_entry
        assert entry is not None
        changes: dict[str, Any] = {
            "unique_id": provider_unique_id(self._data),
            "title": provider_title(self._data),
            "data": self._data,
        }
        if entry.title != provider_title(entry.data):
            # The user has chosen another title.
            del changes["title"]
        if entry.update_listeners:
            return self.async_update_and_abort(entry, **changes)
        return self.async_update_reload_and_abort(entry, **changes)


def _make_provider_schema(provider: str, present: Mapping[str, Any]) -> probatio.Schema:
    """Return the form of a provider. A key that is already known need not be entered again."""
    is_key_needed = provider != PROVIDER_COMPATIBLE and CONF_API_KEY not in present
    fields: dict[probatio.Marker, Any] = {}
    if field := _ADDRESS_FIELDS.get(provider):
        fields[probatio.Required(field)] = _ADDRESS
    fields[probatio.Required(CONF_API_KEY) if is_key_needed else probatio.Optional(CONF_API_KEY)] = _SECRET
    if provider == PROVIDER_AZURE:
        fields[probatio.Required(CONF_API_VERSION, default=DEFAULT_AZURE_API_VERSION)] = TextSelector()
    return probatio.Schema(fields)


def _make_rights(control: str) -> dict[str, Any]:
    """Return the options for an answer to "What may Sash control?"."""
    if control == CONTROL_NOTHING:
        return {CONF_ALLOW_ACTUATION: False}
    services = [*EVERYDAY_SERVICES, *(CONFIRM if control == CONTROL_EVERYTHING else ()), *GENERIC_SERVICES]
    return {CONF_ALLOW_ACTUATION: True, CONF_ALLOWLISTED_SERVICES: services}


def _make_subentry(kind: str, title: str, options: Mapping[str, Any]) -> ConfigSubentryData:
    return ConfigSubentryData(data=dict(options), subentry_type=kind, title=title, unique_id=None)


def _can_think_less(model: str) -> bool:
    """Return True for a model of OpenAI that accepts the reasoning effort `low`."""
    return model.startswith(_REASONING_MODELS) and not any(part in model for part in _OTHER_EFFORTS)
