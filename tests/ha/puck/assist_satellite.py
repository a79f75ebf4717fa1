"""Two satellites. They hear text instead of sound, and have no user, as real satellites."""

from time import perf_counter
from typing import Any, override

from homeassistant.components.assist_pipeline import PipelineEvent, PipelineEventType, PipelineStage
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline
from homeassistant.components.assist_pipeline.run import PipelineInput, PipelineRun
from homeassistant.components.assist_satellite import (
    AssistSatelliteAnnouncement,
    AssistSatelliteConfiguration,
    AssistSatelliteEntity,
    AssistSatelliteEntityFeature,
)
from homeassistant.config_entries import ConfigEntry
from homeassistant.core import Context, HomeAssistant, callback
from homeassistant.helpers.chat_session import async_get_chat_session
from homeassistant.helpers.device_registry import DeviceInfo
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback

from . import DOMAIN

ROOMS = ("Kitchen", "Bedroom")


async def async_setup_entry(
    hass: HomeAssistant, entry: ConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    async_add_entities([Puck(room) for room in ROOMS])


class Puck(AssistSatelliteEntity):
    """A satellite that hears what the service `puck.say` says."""

    _attr_has_entity_name = True
    _attr_name = None
    _attr_supported_features = (
        AssistSatelliteEntityFeature.ANNOUNCE | AssistSatelliteEntityFeature.START_CONVERSATION
    )

    def __init__(self, room: str) -> None:
        self._attr_unique_id = room
        self._attr_device_info = DeviceInfo(identifiers={(DOMAIN, room)}, name=f"{room} puck")

    @override
    async def async_added_to_hass(self) -> None:
        await super().async_added_to_hass()
        self.hass.data[DOMAIN][self.entity_id] = self

    @callback
    @override
    def async_get_configuration(self) -> AssistSatelliteConfiguration:
        return AssistSatelliteConfiguration([], [], 1)

    @override
    async def async_set_configuration(self, config: AssistSatelliteConfiguration) -> None:
        return None

    @callback
    @override
    def on_pipeline_event(self, event: PipelineEvent) -> None:
        return None

    @override
    async def async_announce(self, announcement: AssistSatelliteAnnouncement) -> None:
        self.hass.bus.async_fire(
            "puck_announced", {"entity_id": self.entity_id, "message": announcement.message}
        )

    @override
    async def async_start_conversation(self, start_announcement: AssistSatelliteAnnouncement) -> None:
        await self.async_announce(start_announcement)

    async def hear(self, text: str) -> dict[str, Any]:
        """Run the preferred pipeline from text to answer, without a user."""
        events: list[PipelineEvent] = []
        entry = self.registry_entry
        # As Home Assistant's own code does it for satellites that hear sound.
        extra_system_prompt, self._extra_system_prompt = self._extra_system_prompt, None
        with async_get_chat_session(self.hass, self._conversation_id) as session:
            self._conversation_id = session.conversation_id
            run = PipelineInput(
                session=session,
                intent_input=text,
                device_id=entry.device_id,
                satellite_id=self.entity_id,
                conversation_extra_system_prompt=extra_system_prompt,
                run=PipelineRun(
                    self.hass,
                    context=Context(),
                    pipeline=async_get_pipeline(self.hass),
                    start_stage=PipelineStage.INTENT,
                    end_stage=PipelineStage.INTENT,
                    event_callback=events.append,
                ),
            )
            before = perf_counter()
            await run.execute(validate=True)
            took_ms = (perf_counter() - before) * 1000
        (end,) = [event.data for event in events if event.type is PipelineEventType.INTENT_END]
        output = end["intent_output"]
        return {
            "speech": output["response"]["speech"]["plain"]["speech"],
            "continue_conversation": output["continue_conversation"],
            "processed_locally": end["processed_locally"],
            "took_ms": took_ms,
        }
