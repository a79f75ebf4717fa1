"""The services that Home Assistant's intents call, so that a policy can judge them.

`HassTurnOn`, `HassTurnOff`, `HassToggle`, `HassSetPosition` and `HassStopMoving` are not here: they act on
locks, covers and valves, too, and Home Assistant does them without an approval. Sash has its own tools for
them, which ask for approvals and read the states back.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from homeassistant.core import HomeAssistant
from homeassistant.helpers import intent

TIMER_STATUS: Final = "HassTimerStatus"
# Intents that read something and change nothing.
QUESTIONS: Final = frozenset(
    {
        "HassClimateGetTemperature",
        "HassGetCurrentDate",
        "HassGetCurrentTime",
        "HassGetState",
        "HassGetWeather",
        "HassShoppingListLastItems",
        TIMER_STATUS,
    }
)

# Intents that change the timers of a voice satellite, and nothing in the home.
TIMERS: Final = frozenset(
    {
        "HassCancelAllTimers",
        "HassCancelTimer",
        "HassDecreaseTimer",
        "HassIncreaseTimer",
        "HassPauseTimer",
        "HassStartTimer",
        "HassUnpauseTimer",
    }
)

# Intents that act on the entities of one harmless domain, with the services that they call.
ACTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "HassBroadcast": ("assist_satellite.announce",),
        "HassHumidifierMode": ("humidifier.set_mode", "humidifier.turn_on"),
        "HassHumidifierSetpoint": ("humidifier.set_humidity", "humidifier.turn_on"),
        "HassLawnMowerDock": ("lawn_mower.dock",),
        "HassLawnMowerStartMowing": ("lawn_mower.start_mowing",),
        "HassListAddItem": ("todo.add_item",),
        "HassListCompleteItem": ("todo.update_item",),
        "HassListRemoveItem": ("todo.remove_item",),
        "HassMediaNext": ("media_player.media_next_track",),
        "HassMediaPause": ("media_player.media_pause",),
        "HassMediaPlayerMute": ("media_player.volume_mute",),
        "HassMediaPlayerUnmute": ("media_player.volume_mute",),
        "HassMediaPrevious": ("media_player.media_previous_track",),
        "HassMediaSearchAndPlay": ("media_player.play_media",),
        "HassMediaUnpause": ("media_player.media_play",),
        "HassSetVolume": ("media_player.volume_set",),
        "HassSetVolumeRelative": (
            "media_player.volume_set",
            "media_player.volume_up",
            "media_player.volume_down",
        ),
        "HassShoppingListAddItem": ("todo.add_item",),
        "HassShoppingListCompleteItem": ("todo.update_item",),
        "HassVacuumCleanArea": ("vacuum.clean_area",),
        "HassVacuumReturnToBase": ("vacuum.return_to_base",),
        "HassVacuumStart": ("vacuum.start",),
    }
)

# The slot of a timer with a command that runs later, such as "turn off the light in five minutes".
DELAYED_COMMAND: Final = "conversation_command"
INTENT_SCRIPT: Final = "intent_script"


def find_services(hass: HomeAssistant, intent_type: str) -> tuple[str, ...]:
    """Return the services of an intent that acts; empty if they are unknown.

    A user's own intent stands for itself: a policy has to allow `intent_script`, or `intent_script.<name>`.
    """
    if is_users_own(hass, intent_type):
        return (f"{INTENT_SCRIPT}.{intent_type}",)
    return ACTIONS.get(intent_type, ())


def is_users_own(hass: HomeAssistant, intent_type: str) -> bool:
    """Return True if the user has written what an intent does. It may replace an intent of Home Assistant."""
    if INTENT_SCRIPT not in hass.config.components:
        return False
    from homeassistant.components.intent_script import ScriptIntentHandler

    return any(
        handler.intent_type == intent_type and isinstance(handler, ScriptIntentHandler)
        for handler in intent.async_get(hass)
    )
