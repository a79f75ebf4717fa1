"""A house to talk to: demo lights and locks in two rooms, a satellite in each, a model behind HTTP, and an agent."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from homeassistant.auth.models import User
from homeassistant.components import conversation
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import Platform
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.const import DOMAIN, SUBENTRY_AI_TASK, SUBENTRY_CONVERSATION
from custom_components.sash.entry_data import SashData
from tests.models.wire import Reply, Wire, chunk, usage

PLATFORMS = [Platform.LIGHT, Platform.LOCK, Platform.SWITCH]
AREAS = {"Kitchen": ["light.kitchen_lights"], "Bedroom": ["light.bed_light"]}
LOCKS = ("lock.front_door", "lock.openable_lock")
# An agent that may use lights and locks; locks need an approval by default.
ACTING = {"allow_actuation": True, "allowlisted_services": ["light", "lock", "switch"]}


def calls(name: str, call_id: str = "call_1", **arguments: Any) -> Reply:
    """A model's answer that calls one tool."""
    call = {
        "index": 0,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return Reply(chunks=[chunk(calls=[call]), chunk(finish="tool_calls"), usage(100, 10)])


class TalkingHouse:
    """Home Assistant with the integration, and what a test needs to talk to it."""

    def __init__(self, hass: HomeAssistant, wire: Wire, entry: MockConfigEntry) -> None:
        self.hass = hass
        self.wire = wire
        self.entry = entry
        self.devices: dict[str, str] = {}

    @property
    def data(self) -> SashData:
        data: SashData = self.entry.runtime_data
        return data

    @property
    def agent_id(self) -> str:
        """The entity id of the first agent."""
        return self._find_entity(conversation.DOMAIN)

    @property
    def task_id(self) -> str:
        """The entity id of the first AI task."""
        return self._find_entity("ai_task")

    def _find_entity(self, domain: str) -> str:
        entries = er.async_entries_for_config_entry(er.async_get(self.hass), self.entry.entry_id)
        return next(entry.entity_id for entry in entries if entry.domain == domain)

    async def say(
        self,
        text: str,
        *,
        room: str | None = None,
        satellite: str | None = None,
        user: User | None = None,
        conversation_id: str | None = None,
        language: str = "en",
        extra_system_prompt: str | None = None,
    ) -> conversation.ConversationResult:
        """Say something to the agent: on the satellite of a room, or as a user on the dashboard."""
        return await conversation.async_converse(
            self.hass,
            text,
            conversation_id,
            Context(user_id=None if user is None else user.id),
            language=language,
            agent_id=self.agent_id,
            device_id=None if room is None else self.devices[room],
            satellite_id=satellite,
            extra_system_prompt=extra_system_prompt,
        )

    def read_prompts(self) -> list[str]:
        """Return the prompts that the model got, each as one text."""
        return [
            "\n".join(str(message.get("content")) for message in request.body["messages"])
            for request in self.wire.requests
            if request.path.endswith("/chat/completions")
        ]


def said_by(result: conversation.ConversationResult) -> str:
    """Return what the agent said."""
    return str(result.response.speech["plain"]["speech"])


@asynccontextmanager
async def open_house(
    hass: HomeAssistant,
    *replies: Reply,
    platforms: Iterable[Platform] = (),
    exposed: Iterable[str] = (),
    task: dict[str, Any] | None = None,
    has_model: bool = True,
    **options: Any,
) -> AsyncIterator[TalkingHouse]:
    """Set up a house whose model gives these replies, and whose agent has these options.

    `platforms` are those of more demo entities, `exposed` are entities that Home Assistant does not expose by
    itself, and `task` are the options of an AI task. Without `has_model`, the provider is "none".
    """
    async with Wire(*replies) as wire:
        compatible = {"provider": "compatible", "api_base": f"{wire.url}/v1", "api_key": "a-key"}
        entry = MockConfigEntry(
            domain=DOMAIN,
            title="Test provider",
            data=compatible if has_model else {"provider": "local"},
            subentries_data=[
                make_subentry(SUBENTRY_CONVERSATION, {"model": "m", **options}),
                *([] if task is None else [make_subentry(SUBENTRY_AI_TASK, {"model": "m", **task})]),
            ],
        )
        house = TalkingHouse(hass, wire, entry)
        await furnish(house, platforms, exposed)
        entry.add_to_hass(hass)
        assert await hass.config_entries.async_setup(entry.entry_id)
        await hass.async_block_till_done()
        await house.data.runtime.home_ready(timeout_s=30)
        wire.requests.clear()
        try:
            yield house
        finally:
            with _only_some_platforms([*PLATFORMS, *platforms]):
                for domain in (DOMAIN, "demo"):
                    for loaded in hass.config_entries.async_loaded_entries(domain):
                        await hass.config_entries.async_unload(loaded.entry_id)


def make_subentry(kind: str, data: dict[str, Any]) -> Any:
    """Return the data of an agent or of an AI task."""
    return {"subentry_type": kind, "title": "Sash", "data": data, "unique_id": None}


async def furnish(
    house: TalkingHouse, platforms: Iterable[Platform] = (), exposed: Iterable[str] = ()
) -> None:
    """Set up demo entities in rooms, and a satellite device in each room."""
    hass = house.hass
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, "conversation", {})
    with _only_some_platforms([*PLATFORMS, *platforms]):
        demo = MockConfigEntry(domain="demo")
        demo.add_to_hass(hass)
        assert await hass.config_entries.async_setup(demo.entry_id)
        await hass.async_block_till_done()
    # Home Assistant does not expose locks by itself.
    for entity_id in (*LOCKS, *exposed):
        async_expose_entity(hass, "conversation", entity_id, True)
    areas, devices, entities = ar.async_get(hass), dr.async_get(hass), er.async_get(hass)
    satellites = MockConfigEntry(domain="satellites")
    satellites.add_to_hass(hass)
    for name, entity_ids in AREAS.items():
        area = areas.async_get_or_create(name)
        for entity_id in entity_ids:
            devices.async_update_device(entities.async_get(entity_id).device_id, area_id=area.id)
        device = devices.async_get_or_create(
            config_entry_id=satellites.entry_id, identifiers={("satellites", name)}, name=f"{name} satellite"
        )
        devices.async_update_device(device.id, area_id=area.id)
        house.devices[name] = device.id


def _only_some_platforms(platforms: list[Platform]) -> Any:
    return patch("homeassistant.components.demo.COMPONENTS_WITH_CONFIG_ENTRY_DEMO_PLATFORM", platforms)
