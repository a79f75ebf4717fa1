"""Passes the events of Home Assistant to the listeners of a home."""

from collections.abc import Callable
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_listen_entity_updates
from homeassistant.const import (
    EVENT_CORE_CONFIG_UPDATE,
    EVENT_SERVICE_REGISTERED,
    EVENT_SERVICE_REMOVED,
    EVENT_STATE_CHANGED,
)
from homeassistant.core import CoreState, Event, EventStateChangedData, HomeAssistant, callback
from homeassistant.helpers.area_registry import EVENT_AREA_REGISTRY_UPDATED
from homeassistant.helpers.device_registry import EVENT_DEVICE_REGISTRY_UPDATED
from homeassistant.helpers.entity_registry import EVENT_ENTITY_REGISTRY_UPDATED
from homeassistant.helpers.floor_registry import EVENT_FLOOR_REGISTRY_UPDATED
from homeassistant.helpers.label_registry import EVENT_LABEL_REGISTRY_UPDATED
from homeassistant.helpers.start import async_at_started
from homeassistant.util.event_type import EventType

from sash.home.home_assistant.exposure import ASSISTANT
from sash.home.home_assistant.home_assistant_json import changes_layout
from sash.home.home_assistant.home_listeners import HomeListeners
from sash.ports.home import Connected, LayoutChanged, Listener, StateChanged

from .entity_states import read_state

_LAYOUT_EVENTS: tuple[EventType[Any] | str, ...] = (
    EVENT_ENTITY_REGISTRY_UPDATED,
    EVENT_DEVICE_REGISTRY_UPDATED,
    EVENT_AREA_REGISTRY_UPDATED,
    EVENT_FLOOR_REGISTRY_UPDATED,
    EVENT_LABEL_REGISTRY_UPDATED,
    EVENT_CORE_CONFIG_UPDATE,
    EVENT_SERVICE_REGISTERED,
    EVENT_SERVICE_REMOVED,
    # The integrations that fire these events may be missing, so their names are not imported.
    "automation_reloaded",
    "scene_reloaded",
    "event_template_reloaded",
)


class HomeEvents:
    """Listens to Home Assistant while it is open."""

    def __init__(self, hass: HomeAssistant) -> None:
        self.is_open = False
        self._hass = hass
        self._listeners = HomeListeners()
        self._stop_listening: list[Callable[[], None]] = []

    def open(self) -> None:
        """Emit `Connected`, and from then on an event for every change."""
        if self.is_open:
            return
        self.is_open = True
        hass = self._hass
        self._stop_listening = [
            hass.bus.async_listen(EVENT_STATE_CHANGED, self._on_state_changed),
            *(hass.bus.async_listen(name, self._on_layout_changed) for name in _LAYOUT_EVENTS),
            async_listen_entity_updates(hass, ASSISTANT, self._on_layout_changed),
        ]
        if hass.state is not CoreState.running:
            self._stop_listening.append(async_at_started(hass, self._on_layout_changed))
        self._listeners.emit(Connected())

    def close(self) -> None:
        self.is_open = False
        while self._stop_listening:
            self._stop_listening.pop()()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Send every event to the listener. Return a function that ends the subscription."""
        return self._listeners.add(listener, is_connected=self.is_open)

    @callback
    def _on_state_changed(self, event: Event[EventStateChangedData]) -> None:
        if not self._listeners:
            return
        old, new = event.data["old_state"], event.data["new_state"]
        self._listeners.emit(StateChanged(event.data["entity_id"], read_state(new) if new else None))
        if changes_layout(old.attributes if old else None, new.attributes if new else None):
            self._listeners.emit(LayoutChanged())

    @callback
    def _on_layout_changed(self, event: Any = None) -> None:
        self._listeners.emit(LayoutChanged())
