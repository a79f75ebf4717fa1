"""Sentences about timers, on a device that has timers of its own: it shows them, and rings when they end."""

from hassil.recognize import RecognizeResult
from homeassistant.components.intent import async_device_supports_timers
from homeassistant.core import HomeAssistant

from sash.ports.intents import Utterance
from sash.ports.model import Answer

from .home_assistant_intents import HomeAssistantIntents
from .intent_services import DELAYED_COMMAND, TIMER_STATUS, TIMERS

_ABOUT_TIMERS = TIMERS | {TIMER_STATUS}


class DeviceTimers:
    """Leaves sentences about timers to Home Assistant, before Sash promises to tell when the time is over.

    A command for later needs no timer: Sash promises it, and keeps it over a restart.
    """

    def __init__(self, hass: HomeAssistant, sentences: HomeAssistantIntents) -> None:
        self._hass = hass
        self._sentences = sentences

    async def understand(self, utterance: Utterance) -> Answer | None:
        """Return the call for a sentence about timers, and after it what Home Assistant says."""
        device_id = None if utterance.caller is None else utterance.caller.device_id
        if device_id is None or not async_device_supports_timers(self._hass, device_id):
            return None
        return await self._sentences.understand(utterance, _is_about_timers)


def _is_about_timers(found: RecognizeResult) -> bool:
    return found.intent.name in _ABOUT_TIMERS and DELAYED_COMMAND not in found.entities
