"""Tells a person something outside of a pipeline: on the satellite they spoke to, and as a notification."""

import asyncio
import logging
from typing import Any

from homeassistant.components import persistent_notification
from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import Event, EventStateChangedData, HomeAssistant, callback
from homeassistant.helpers.event import async_track_state_change_event

from .session_scope import Speaker

SATELLITE_DOMAIN = "assist_satellite"
IDLE = "idle"
# An announcement is given up if its satellite is busy for this long. The notification stays.
MAX_WAIT_S = 600.0
MOBILE_APP = "mobile_app"
NOTIFY = "notify"

_LOGGER = logging.getLogger(__name__)


class Announcer:
    """Reaches the people of the house."""

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass

    async def tell(self, speaker: Speaker, message: str, tag: str) -> None:
        """Announce a message on the satellite that was spoken to, and leave a notification with this tag."""
        await self.notify(speaker, message, tag)
        if speaker.satellite_id is not None:
            await self.announce(speaker.satellite_id, message)

    async def notify(
        self,
        speaker: Speaker,
        message: str,
        tag: str,
        *,
        actions: tuple[tuple[str, str], ...] = (),
        hint: str = "",
    ) -> None:
        """Notify the phones of the user who spoke. Without such a phone, Home Assistant shows the message.

        `actions` are the ids and titles of buttons. Home Assistant's own notifications have no buttons, so
        `hint` says there how to answer.
        """
        data: dict[str, Any] = {"tag": tag}
        if actions:
            data["actions"] = [{"action": action, "title": title} for action, title in actions]
        reached = False
        for service in self._find_phones(speaker.user_id):
            reached |= await self._call(NOTIFY, service, {"message": message, "title": "Sash", "data": data})
        if not reached:
            text = f"{message}\n\n{hint}" if hint else message
            persistent_notification.async_create(self._hass, text, "Sash", tag)

    async def clear(self, speaker: Speaker, tag: str) -> None:
        """Remove a notification."""
        persistent_notification.async_dismiss(self._hass, tag)
        for service in self._find_phones(speaker.user_id):
            await self._call(NOTIFY, service, {"message": "clear_notification", "data": {"tag": tag}})

    @callback
    def _find_phones(self, user_id: str | None) -> list[str]:
        """Return the services that notify the companion apps of a user."""
        if user_id is None or MOBILE_APP not in self._hass.config.components:
            return []
        from homeassistant.components.mobile_app.util import get_notify_service

        entries = self._hass.config_entries.async_loaded_entries(MOBILE_APP)
        found = [
            get_notify_service(self._hass, entry.data["webhook_id"])
            for entry in entries
            if entry.data.get("user_id") == user_id
        ]
        return [service for service in found if service is not None]

    async def announce(self, satellite_id: str, message: str) -> None:
        """Announce a message when the satellite is idle: an announcement ends what a satellite is doing.

        Only a busy satellite is tried again. Another failure may come after the message was spoken.
        """
        from homeassistant.components.assist_satellite.errors import SatelliteBusyError

        data = {ATTR_ENTITY_ID: satellite_id, "message": message}
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                while True:
                    await self._wait_until_idle(satellite_id)
                    try:
                        await self._hass.services.async_call(
                            SATELLITE_DOMAIN, "announce", data, blocking=True
                        )
                        return
                    except SatelliteBusyError:
                        await self._wait_for_change(satellite_id)
        except TimeoutError:
            _LOGGER.info("%s was busy for too long to announce an answer", satellite_id)
        except Exception as error:
            _log_failure(SATELLITE_DOMAIN, "announce", error)

    async def _wait_until_idle(self, satellite_id: str) -> None:
        while (state := self._hass.states.get(satellite_id)) is not None and state.state != IDLE:
            await self._wait_for_change(satellite_id)

    async def _wait_for_change(self, entity_id: str) -> None:
        changed = asyncio.Event()

        @callback
        def note(_: Event[EventStateChangedData]) -> None:
            changed.set()

        stop = async_track_state_change_event(self._hass, entity_id, note)
        try:
            await changed.wait()
        finally:
            stop()

    async def _call(self, domain: str, service: str, data: dict[str, Any]) -> bool:
        """Call a service and return True if it succeeds."""
        try:
            await self._hass.services.async_call(domain, service, data, blocking=True)
        except Exception as error:
            _log_failure(domain, service, error)
            return False
        return True


def _log_failure(domain: str, service: str, error: Exception) -> None:
    """Log an error of the integration of a phone or a satellite, which may raise anything."""
    _LOGGER.warning("%s.%s failed: %s", domain, service, str(error) or type(error).__name__)
