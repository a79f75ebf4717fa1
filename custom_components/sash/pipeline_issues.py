"""Finds pipelines that let Home Assistant act although the policy of our agent would ask or refuse.

A pipeline that prefers local commands runs them before it calls the agent. Home Assistant's own commands know
no confirmations and no lists of allowed services, so such a pipeline unlocks a door for which the agent would
ask.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from homeassistant.components.assist_pipeline import Pipeline, async_get_pipelines
from homeassistant.components.assist_pipeline.pipeline import KEY_ASSIST_PIPELINE
from homeassistant.components.homeassistant.exposed_entities import async_should_expose
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import CALLBACK_TYPE, HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.helpers.start import async_at_started

from sash.engine.policy import judge
from sash.home.home_assistant.exposure import ASSISTANT
from sash.ports.tools import ServiceUse
from sash.values.sessions import UNLIMITED, SessionPolicy

from .agent import Agent
from .const import DOMAIN
from .sash_events import find_agent_entity

PIPELINE_BYPASS = "pipeline_bypass"
INTERVAL = timedelta(hours=1)
# The domains of entities that Home Assistant's own commands act on.
LOCAL_DOMAINS = (
    "button",
    "climate",
    "cover",
    "fan",
    "humidifier",
    "input_boolean",
    "input_button",
    "lawn_mower",
    "light",
    "lock",
    "media_player",
    "scene",
    "script",
    "siren",
    "switch",
    "todo",
    "vacuum",
    "valve",
    "water_heater",
)


class PipelineIssues:
    """Creates and deletes the issues for the pipelines with agents of one config entry."""

    def __init__(self, hass: HomeAssistant, entry: ConfigEntry, agents: Mapping[str, Agent]) -> None:
        self._hass = hass
        self._prefix = f"{PIPELINE_BYPASS}_{entry.entry_id}_"
        self._agents = agents

    @callback
    def open(self) -> CALLBACK_TYPE:
        """Check the pipelines at the start, when they change, and every hour. Return a function to stop."""
        # The entities of other integrations are there when Home Assistant has started.
        stops = [
            async_at_started(self._hass, self._on_start),
            async_track_time_interval(self._hass, self._on_change, INTERVAL),
        ]
        if KEY_ASSIST_PIPELINE in self._hass.data:
            pipelines = self._hass.data[KEY_ASSIST_PIPELINE].pipeline_store
            stops.append(pipelines.async_add_change_set_listener(self._on_change))

        @callback
        def close() -> None:
            for stop in stops:
                stop()
            self._keep_only(())

        return close

    @callback
    def _on_start(self, _: HomeAssistant) -> None:
        self.check()

    async def _on_change(self, _: object) -> None:
        self.check()

    @callback
    def check(self) -> None:
        """Create the issues of pipelines that bypass the policy, and delete those of the others."""
        agents = {find_agent_entity(self._hass, agent.id): agent for agent in self._agents.values()}
        has_pipelines = KEY_ASSIST_PIPELINE in self._hass.data
        found = [
            (pipeline, agents[pipeline.conversation_engine])
            for pipeline in (async_get_pipelines(self._hass) if has_pipelines else ())
            if pipeline.prefer_local_intents
            and pipeline.conversation_engine in agents
            and self._may_refuse(agents[pipeline.conversation_engine].options.policy)
        ]
        for pipeline, agent in found:
            self._create(pipeline, agent)
        self._keep_only(f"{self._prefix}{pipeline.id}" for pipeline, _ in found)

    def _may_refuse(self, policy: SessionPolicy) -> bool:
        """Return True if the agent asks before some actions, or does not act on all exposed entities."""
        if policy.require_confirmation or not policy.allow_actuation or policy.dry_run:
            return True
        refused = [
            domain
            for domain in LOCAL_DOMAINS
            if judge([ServiceUse(f"{domain}.*")], policy, UNLIMITED.policy).what != "allow"
        ]
        return any(
            async_should_expose(self._hass, ASSISTANT, entity_id)
            for entity_id in self._hass.states.async_entity_ids(refused)
        )

    @callback
    def _create(self, pipeline: Pipeline, agent: Agent) -> None:
        ir.async_create_issue(
            self._hass,
            DOMAIN,
            f"{self._prefix}{pipeline.id}",
            is_fixable=True,
            severity=ir.IssueSeverity.WARNING,
            translation_key=PIPELINE_BYPASS,
            translation_placeholders={"pipeline": pipeline.name, "agent": agent.title},
            data={"kind": PIPELINE_BYPASS, "pipeline_id": pipeline.id},
        )

    @callback
    def _keep_only(self, issue_ids: Iterable[str]) -> None:
        kept = set(issue_ids)
        for domain, issue_id in list(ir.async_get(self._hass).issues):
            if domain == DOMAIN and issue_id.startswith(self._prefix) and issue_id not in kept:
                ir.async_delete_issue(self._hass, DOMAIN, issue_id)
