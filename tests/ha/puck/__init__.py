"""Satellites without a microphone, for tests: a service speaks for the user, and an event tells announcements.

It also measures how long the event loop of Home Assistant was held up.
"""

import asyncio
from time import perf_counter

from homeassistant.config_entries import SOURCE_IMPORT, ConfigEntry
from homeassistant.const import Platform
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.helpers.typing import ConfigType

DOMAIN = "puck"
BEAT_S = 0.005


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Offer the service `puck.say`, and add two satellites."""

    async def say(call: ServiceCall) -> ServiceResponse:
        satellite = hass.data[DOMAIN][call.data["entity_id"]]
        return await satellite.hear(call.data["text"])

    lag = LoopLag()

    async def read_lag(call: ServiceCall) -> ServiceResponse:
        return {"max_ms": lag.take()}

    hass.async_create_background_task(lag.measure(), "loop lag")
    hass.services.async_register(DOMAIN, "lag", read_lag, supports_response=SupportsResponse.ONLY)
    hass.data[DOMAIN] = {}
    hass.services.async_register(DOMAIN, "say", say, supports_response=SupportsResponse.ONLY)
    if not hass.config_entries.async_entries(DOMAIN):
        hass.async_create_task(hass.config_entries.flow.async_init(DOMAIN, context={"source": SOURCE_IMPORT}))
    return True


async def async_setup_entry(hass: HomeAssistant, entry: ConfigEntry) -> bool:
    await hass.config_entries.async_forward_entry_setups(entry, [Platform.ASSIST_SATELLITE])
    return True


class LoopLag:
    """Measures how much later than asked the event loop wakes a task."""

    def __init__(self) -> None:
        self._max_s = 0.0

    async def measure(self) -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(BEAT_S)
            self._max_s = max(self._max_s, perf_counter() - before - BEAT_S)

    def take(self) -> float:
        """Return the longest delay in milliseconds since the last call."""
        taken, self._max_s = self._max_s * 1000, 0.0
        return taken
