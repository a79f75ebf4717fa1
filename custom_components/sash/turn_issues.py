"""Problems that the errors of turns show. They appear as repairs, and vanish when a turn succeeds."""

import logging

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntry
from homeassistant.const import CONF_MODEL
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir

from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import ContextTooLong, ModelKeyRefused, ModelUnknown
from sash.values.stats import NO_STATS

from .const import DOMAIN, SUBENTRY_CONVERSATION
from .turn_signal import find_agent_id, find_error_code, follow_turns

# The issues of an agent, by the code of the error. Their ids end in the id of the agent.
MODEL_UNKNOWN = "model_unknown"
CONTEXT_TOO_LONG = "context_too_long"
_ISSUES = {ModelUnknown.code: MODEL_UNKNOWN, ContextTooLong.code: CONTEXT_TOO_LONG}

_LOGGER = logging.getLogger(__name__)


class TurnIssues:
    """Creates and deletes the issues of one config entry. `default_model` is the model of the provider."""

    def __init__(self, hass: HomeAssistant, entry: ConfigEntry, default_model: str | None) -> None:
        self._hass = hass
        self._entry = entry
        self._default_model = default_model

    @callback
    def open(self) -> CALLBACK_TYPE:
        """Follow the turns. Return a function that stops this.

        Changed options load the entry anew. They may have mended the problems, so these are deleted first.
        """
        for subentry_id in self._entry.subentries:
            self._delete_issues(subentry_id)
        return follow_turns(self._hass, self._entry, self._on_turn)

    @callback
    def _on_turn(self, result: ContinuationResult) -> None:
        agent_id, code = find_agent_id(result), find_error_code(result)
        if (error := result.continuation.error) is not None:
            _LOGGER.warning(
                "%s: turn %s failed: %s", self._entry.title, result.continuation.id, error.message
            )
        if code == ModelKeyRefused.code:
            # Home Assistant shows an issue of its own, which leads to this flow.
            self._entry.async_start_reauth(self._hass)
        elif agent_id is not None and code in _ISSUES:
            self._create_issue(agent_id, _ISSUES[code])
        elif result.status == "completed" and (result.continuation.stats or NO_STATS).model_calls:
            self._abort_reauth()
            if agent_id is not None:
                self._delete_issues(agent_id)

    @callback
    def _create_issue(self, agent_id: str, kind: str) -> None:
        subentry = self._entry.subentries.get(agent_id)
        # An AI task has no window, so its prompt is as long as its instructions.
        if subentry is None or (kind == CONTEXT_TOO_LONG and subentry.subentry_type != SUBENTRY_CONVERSATION):
            return
        model = subentry.data.get(CONF_MODEL) or self._default_model or "?"
        ir.async_create_issue(
            self._hass,
            DOMAIN,
            f"{kind}_{agent_id}",
            is_fixable=True,
            severity=ir.IssueSeverity.ERROR,
            translation_key=kind,
            translation_placeholders={"agent": subentry.title, "model": model},
            data={"kind": kind, "entry_id": self._entry.entry_id, "subentry_id": agent_id},
        )

    @callback
    def _delete_issues(self, agent_id: str) -> None:
        for kind in _ISSUES.values():
            ir.async_delete_issue(self._hass, DOMAIN, f"{kind}_{agent_id}")

    @callback
    def _abort_reauth(self) -> None:
        """End the flow that asks for a new key: the provider accepts the old one again."""
        for flow in list(self._entry.async_get_active_flows(self._hass, {SOURCE_REAUTH})):
            self._hass.config_entries.flow.async_abort(flow["flow_id"])
