"""The flows that mend the problems which Sash shows as repairs."""

from collections.abc import Mapping
from typing import Any

import probatio
from homeassistant.components.assist_pipeline import async_get_pipelines, async_update_pipeline
from homeassistant.components.repairs import ConfirmRepairFlow, RepairsFlow, RepairsFlowResult
from homeassistant.config_entries import ConfigEntry, ConfigEntryState
from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
from homeassistant.helpers.selector import (
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    SelectSelector,
    SelectSelectorConfig,
)

from sash.errors import SashError
from sash.stores.sqlite.damage_repair import delete_damaged

from .const import CONF_SLIDING_WINDOW_ENABLE, CONF_SLIDING_WINDOW_MAX_TOKENS, DOMAIN
from .leftover_data import LEFTOVER_DATA, delete_leftover_data
from .pipeline_issues import PIPELINE_BYPASS
from .provider import check_model, check_provider
from .store_issue import STORE_DAMAGED, check_database
from .turn_issues import CONTEXT_TOO_LONG, MODEL_UNKNOWN

# A window of a model whose prompts were too long.
MIN_WINDOW_TOKENS = 500
DEFAULT_WINDOW_TOKENS = 2000


class SashRepairFlow(RepairsFlow):
    """A flow for an issue of Sash. The issue has the ids that the flow needs as its data."""

    def _read(self, key: str) -> str:
        return str((self.data or {}).get(key))

    @property
    def _placeholders(self) -> Mapping[str, str] | None:
        issue = ir.async_get(self.hass).async_get_issue(DOMAIN, self.issue_id)
        return None if issue is None else issue.translation_placeholders

    def _find_entry(self) -> ConfigEntry | None:
        """Return the config entry of the issue if it is loaded."""
        entry = self.hass.config_entries.async_get_entry(self._read("entry_id"))
        return entry if entry is not None and entry.state is ConfigEntryState.LOADED else None

    def _show_confirmation(self) -> RepairsFlowResult:
        return self.async_show_form(
            step_id="confirm", data_schema=probatio.Schema({}), description_placeholders=self._placeholders
        )


class OptionFlow(SashRepairFlow):
    """Asks for another value of one option of an agent, and loads the agent anew with it."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Show the form, and write the answer into the subentry of the agent."""
        entry = self._find_entry()
        subentry = None if entry is None else entry.subentries.get(self._read("subentry_id"))
        if entry is None or subentry is None:
            return self.async_abort(reason="agent_gone")
        # Home Assistant starts a flow with the id of the issue as its first input.
        answer = {key: value for key, value in (user_input or {}).items() if key != "issue_id"}
        options, errors = {**subentry.data, **self._make_change(answer)}, {}
        if answer:
            errors = await self._check(entry, options)
            if not errors:
                # The entry follows its own changes, and loads itself anew.
                self.hass.config_entries.async_update_subentry(entry, subentry, data=options)
                return self.async_create_entry(data={})
        return self.async_show_form(
            step_id="init",
            data_schema=self.add_suggested_values_to_schema(
                await self._make_schema(entry, subentry.data), answer
            ),
            errors=errors,
            description_placeholders=self._placeholders,
        )

    async def _make_schema(self, entry: ConfigEntry, options: Mapping[str, Any]) -> probatio.Schema:
        """Return the form. `options` are the present ones."""
        raise NotImplementedError

    def _make_change(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the options that the answer changes."""
        return answer

    async def _check(self, entry: ConfigEntry, options: Mapping[str, Any]) -> dict[str, str]:
        """Return what is wrong with the new options, by field."""
        return {}


class ModelUnknownFlow(OptionFlow):
    """Asks for another model, because the provider does not know the present one."""

    async def _make_schema(self, entry: ConfigEntry, options: Mapping[str, Any]) -> probatio.Schema:
        models = [*(await check_provider(self.hass, entry.data)).models]
        config = SelectSelectorConfig(options=models, custom_value=True, sort=True)
        return probatio.Schema({probatio.Required(CONF_MODEL): SelectSelector(config)})

    async def _check(self, entry: ConfigEntry, options: Mapping[str, Any]) -> dict[str, str]:
        error = (await check_model(self.hass, entry.data, options)).error
        return {} if error is None else {CONF_MODEL: error}


class ContextTooLongFlow(OptionFlow):
    """Asks for a smaller window, because the prompts are longer than the model can read."""

    async def _make_schema(self, entry: ConfigEntry, options: Mapping[str, Any]) -> probatio.Schema:
        present = options.get(CONF_SLIDING_WINDOW_MAX_TOKENS)
        smaller = DEFAULT_WINDOW_TOKENS if present is None else max(MIN_WINDOW_TOKENS, int(present) // 2)
        config = NumberSelectorConfig(
            min=MIN_WINDOW_TOKENS, step=1, mode=NumberSelectorMode.BOX, unit_of_measurement="tokens"
        )
        return probatio.Schema(
            {probatio.Required(CONF_SLIDING_WINDOW_MAX_TOKENS, default=smaller): NumberSelector(config)}
        )

    def _make_change(self, answer: dict[str, Any]) -> dict[str, Any]:
        if not answer:
            return {}
        tokens = int(answer[CONF_SLIDING_WINDOW_MAX_TOKENS])
        return {CONF_SLIDING_WINDOW_ENABLE: True, CONF_SLIDING_WINDOW_MAX_TOKENS: tokens}


class PipelineBypassFlow(SashRepairFlow):
    """Lets a pipeline ask our agent first. The agent understands local commands itself."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Show the confirmation."""
        return self._show_confirmation()

    async def async_step_confirm(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Change the pipeline, if it still exists."""
        if user_input is None:
            return self._show_confirmation()
        for pipeline in async_get_pipelines(self.hass):
            if pipeline.id == self._read("pipeline_id"):
                await async_update_pipeline(self.hass, pipeline, prefer_local_intents=False)
        return self.async_create_entry(data={})


class StoreDamagedFlow(SashRepairFlow):
    """Deletes the damaged records of a database."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Show the confirmation."""
        return self._show_confirmation()

    async def async_step_confirm(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Delete the records, and check the database again."""
        if user_input is None:
            return self._show_confirmation()
        entry = self._find_entry()
        if entry is None:
            return self.async_abort(reason="not_loaded")
        try:
            await delete_damaged(entry.runtime_data.store)
        except SashError as error:
            return self.async_abort(
                reason="not_repaired", description_placeholders={"message": error.message}
            )
        checked = await check_database(self.hass, entry)
        if checked.status == "wrong":
            message = f"{checked.found}. {checked.advice}"
            return self.async_abort(reason="not_repaired", description_placeholders={"message": message})
        self.hass.config_entries.async_schedule_reload(entry.entry_id)
        return self.async_create_entry(data={})


class LeftoverDataFlow(SashRepairFlow):
    """Asks whether to delete the conversations of a provider that was removed."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Show the choices."""
        return self.async_show_menu(
            step_id="init", menu_options=["delete", "keep"], description_placeholders=self._placeholders
        )

    async def async_step_delete(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Delete the files."""
        await delete_leftover_data(self.hass, self._read("entry_id"))
        return self.async_create_entry(data={})

    async def async_step_keep(self, user_input: dict[str, Any] | None = None) -> RepairsFlowResult:
        """Keep the files, and ask no more."""
        return self.async_create_entry(data={})


FLOWS: Mapping[str, type[SashRepairFlow]] = {
    MODEL_UNKNOWN: ModelUnknownFlow,
    CONTEXT_TOO_LONG: ContextTooLongFlow,
    PIPELINE_BYPASS: PipelineBypassFlow,
    STORE_DAMAGED: StoreDamagedFlow,
    LEFTOVER_DATA: LeftoverDataFlow,
}


async def async_create_fix_flow(
    hass: HomeAssistant, issue_id: str, data: dict[str, str | int | float | None] | None
) -> RepairsFlow:
    """Return the flow for an issue. Its data say which kind of issue it is."""
    flow = FLOWS.get(str((data or {}).get("kind")))
    return ConfirmRepairFlow() if flow is None else flow()
