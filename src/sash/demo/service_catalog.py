"""The services of a simulated home, described as in Home Assistant."""

from collections.abc import Iterable
from typing import Any

from sash.ports.home import Service, ServiceField

COLOR_NAMES = (
    "red",
    "orange",
    "gold",
    "yellow",
    "lime",
    "green",
    "turquoise",
    "cyan",
    "skyblue",
    "blue",
    "navy",
    "violet",
    "purple",
    "magenta",
    "pink",
    "brown",
    "white",
)

# The domains of services that exist in every home.
_COMMON_DOMAINS = frozenset({"homeassistant", "notify"})


def _build_number_selector(minimum: float, maximum: float, **more: Any) -> dict[str, Any]:
    return {"number": {"min": minimum, "max": maximum, **more}}


_PERCENT = _build_number_selector(0, 100, unit_of_measurement="%")
_STEP = _build_number_selector(-100, 100, unit_of_measurement="%")
_BYTE = _build_number_selector(0, 255)
_SECONDS = _build_number_selector(0, 300, unit_of_measurement="seconds")
_DEGREES = _build_number_selector(0, 250, step=0.1, mode="box")
_BOOLEAN: dict[str, Any] = {"boolean": {}}
_TEXT: dict[str, Any] = {"text": {}}
_OBJECT: dict[str, Any] = {"object": {}}
_MODE = {"state": {"hide_states": ["unavailable", "unknown"]}}
_CODE = ServiceField("Code of the lock or alarm.", selector=_TEXT)
_ITEM = ServiceField("The name of the to-do list item.", required=True, selector=_TEXT)
_PERCENTAGE = ServiceField("Speed of the fan.", selector=_PERCENT)
_TRANSITION = ServiceField("Duration it takes to get to the next state.", selector=_SECONDS)

_LIGHT = {
    "transition": _TRANSITION,
    "rgb_color": ServiceField("The color in RGB format.", selector={"color_rgb": {}}),
    "color_temp_kelvin": ServiceField(
        "Color temperature in Kelvin.", selector={"color_temp": {"unit": "kelvin", "min": 2000, "max": 6500}}
    ),
    "brightness_pct": ServiceField("Brightness, where 0 turns the light off.", selector=_PERCENT),
    "brightness_step_pct": ServiceField("Change brightness by a percentage.", selector=_STEP),
    "color_name": ServiceField(
        "A human-readable color name.", selector={"select": {"options": list(COLOR_NAMES)}}
    ),
    "hs_color": ServiceField("Color in hue/sat format.", selector=_OBJECT),
    "brightness": ServiceField("Brightness, where 0 turns the light off.", selector=_BYTE),
    "brightness_step": ServiceField(
        "Change brightness by an amount.", selector=_build_number_selector(-255, 255)
    ),
}

ServiceRow = tuple[str, str, dict[str, ServiceField]]

# The services that act on entities: name, description, arguments.
_ENTITY_SERVICES: tuple[ServiceRow, ...] = (
    ("light.turn_on", "Turns on one or more lights and adjusts their properties.", _LIGHT),
    ("light.turn_off", "Turns off one or more lights.", {"transition": _TRANSITION}),
    ("light.toggle", "Toggles one or more lights, from on to off, or off to on.", _LIGHT),
    ("switch.turn_on", "Turns on a switch.", {}),
    ("switch.turn_off", "Turns off a switch.", {}),
    ("switch.toggle", "Toggles a switch on/off.", {}),
    ("input_boolean.turn_on", "Turns on an input boolean.", {}),
    ("input_boolean.turn_off", "Turns off an input boolean.", {}),
    ("input_boolean.toggle", "Toggles an input boolean on/off.", {}),
    ("fan.turn_on", "Turns on a fan.", {"percentage": _PERCENTAGE}),
    ("fan.turn_off", "Turns off a fan.", {}),
    ("fan.toggle", "Toggles a fan on/off.", {}),
    (
        "fan.set_percentage",
        "Sets the speed of a fan.",
        {"percentage": ServiceField("Speed of the fan.", required=True, selector=_PERCENT)},
    ),
    (
        "fan.oscillate",
        "Controls the oscillation of a fan.",
        {"oscillating": ServiceField("Turns oscillation on/off.", required=True, selector=_BOOLEAN)},
    ),
    ("cover.open_cover", "Opens a cover.", {}),
    ("cover.close_cover", "Closes a cover.", {}),
    ("cover.stop_cover", "Stops a cover's movement.", {}),
    ("cover.toggle", "Toggles a cover open/closed.", {}),
    (
        "cover.set_cover_position",
        "Moves a cover to a specific position.",
        {"position": ServiceField("Target position.", required=True, selector=_PERCENT)},
    ),
    ("lock.lock", "Locks a lock.", {"code": _CODE}),
    ("lock.unlock", "Unlocks a lock.", {"code": _CODE}),
    (
        "climate.set_temperature",
        "Sets the target temperature of a thermostat.",
        {
            "temperature": ServiceField("The temperature setpoint.", selector=_DEGREES),
            "target_temp_high": ServiceField("The max temperature setpoint.", selector=_DEGREES),
            "target_temp_low": ServiceField("The min temperature setpoint.", selector=_DEGREES),
            "hvac_mode": ServiceField("HVAC operation mode.", selector=_MODE),
        },
    ),
    (
        "climate.set_hvac_mode",
        "Sets the HVAC mode of a thermostat.",
        {"hvac_mode": ServiceField("HVAC operation mode.", selector=_MODE)},
    ),
    (
        "climate.set_fan_mode",
        "Sets the fan mode of a thermostat.",
        {
            "fan_mode": ServiceField(
                "Fan operation mode.", required=True, selector={"state": {"attribute": "fan_mode"}}
            )
        },
    ),
    ("climate.turn_on", "Turns on a thermostat.", {}),
    ("climate.turn_off", "Turns off a thermostat.", {}),
    ("media_player.turn_on", "Turns on the power of a media player.", {}),
    ("media_player.turn_off", "Turns off the power of a media player.", {}),
    ("media_player.toggle", "Toggles a media player on/off.", {}),
    ("media_player.media_play", "Starts playback on a media player.", {}),
    ("media_player.media_pause", "Pauses playback on a media player.", {}),
    ("media_player.media_stop", "Stops playback on a media player.", {}),
    ("media_player.media_next_track", "Selects the next track on a media player.", {}),
    ("media_player.media_previous_track", "Selects the previous track on a media player.", {}),
    ("media_player.volume_up", "Turns up the volume of a media player.", {}),
    ("media_player.volume_down", "Turns down the volume of a media player.", {}),
    (
        "media_player.volume_set",
        "Sets the volume level of a media player.",
        {
            "volume_level": ServiceField(
                "The volume. 0 is inaudible, 1 is the maximum volume.",
                required=True,
                selector=_build_number_selector(0, 1, step=0.01),
            )
        },
    ),
    (
        "media_player.volume_mute",
        "Mutes or unmutes a media player.",
        {
            "is_volume_muted": ServiceField(
                "Defines whether or not it is muted.", required=True, selector=_BOOLEAN
            )
        },
    ),
    (
        "media_player.select_source",
        "Sends a media player the command to change the input source.",
        {
            "source": ServiceField(
                "Name of the source to switch to.", required=True, selector={"state": {"attribute": "source"}}
            )
        },
    ),
    ("vacuum.start", "Starts or resumes a vacuum cleaner's cleaning task.", {}),
    ("vacuum.pause", "Pauses a vacuum cleaner's current task.", {}),
    ("vacuum.return_to_base", "Sends a vacuum cleaner back to its dock.", {}),
    ("vacuum.locate", "Locates a vacuum cleaner robot.", {}),
    (
        "vacuum.set_fan_speed",
        "Sets the fan speed of a vacuum cleaner.",
        {"fan_speed": ServiceField("Name of the fan speed.", required=True, selector={"text": {}})},
    ),
    ("scene.turn_on", "Activates a scene.", {"transition": _TRANSITION}),
    ("script.turn_on", "Runs the sequence of actions defined in a script.", {}),
    ("automation.turn_on", "Enables an automation.", {}),
    ("automation.toggle", "Toggles (enable / disable) an automation.", {}),
    (
        "automation.turn_off",
        "Disables an automation.",
        {"stop_actions": ServiceField("Stops currently running actions.", selector=_BOOLEAN)},
    ),
    (
        "automation.trigger",
        "Triggers the actions of an automation.",
        {
            "skip_condition": ServiceField(
                "Defines whether or not the conditions will be skipped.", selector=_BOOLEAN
            )
        },
    ),
    ("alarm_control_panel.alarm_arm_home", "Arms an alarm in the home mode.", {"code": _CODE}),
    ("alarm_control_panel.alarm_arm_away", "Arms an alarm in the away mode.", {"code": _CODE}),
    ("alarm_control_panel.alarm_disarm", "Disarms an alarm.", {"code": _CODE}),
    ("button.press", "Presses a button.", {}),
    ("todo.add_item", "Adds a new to-do list item.", {"item": _ITEM}),
    ("todo.remove_item", "Removes an existing to-do list item by its name.", {"item": _ITEM}),
    (
        "todo.update_item",
        "Updates an existing to-do list item based on its name.",
        {
            "item": _ITEM,
            "rename": ServiceField("The new name for the to-do item.", selector=_TEXT),
            "status": ServiceField(
                "A status for the to-do item.",
                selector={"select": {"options": ["needs_action", "completed"]}},
            ),
        },
    ),
)

_COMMON_SERVICES: tuple[Service, ...] = (
    Service("homeassistant.turn_on", "Generic action to turn devices on under any domain.", target={}),
    Service("homeassistant.turn_off", "Generic action to turn devices off under any domain.", target={}),
    Service("homeassistant.toggle", "Generic action to toggle devices on/off under any domain.", target={}),
    Service("homeassistant.restart", "Restarts Home Assistant."),
    Service(
        "notify.notify",
        "Sends a notification message to selected targets.",
        {
            "message": ServiceField("Message body of the notification.", required=True, selector=_TEXT),
            "title": ServiceField("Title for your notification.", selector=_TEXT),
        },
    ),
)


_QUERY_SERVICES: tuple[tuple[str, str, dict[str, ServiceField]], ...] = (
    (
        "weather.get_forecasts",
        "Retrieves the forecast from selected weather services.",
        {
            "type": ServiceField(
                "The scope of the weather forecast.",
                required=True,
                selector={"select": {"options": ["daily", "hourly", "twice_daily"]}},
            )
        },
    ),
    (
        "todo.get_items",
        "Gets items on a to-do list.",
        {
            "status": ServiceField(
                "Only return to-do items with the specified statuses.",
                selector={"select": {"options": ["needs_action", "completed"], "multiple": True}},
            )
        },
    ),
)


def list_services(domains: Iterable[str]) -> dict[str, Service]:
    """Return the services, by name, of a home with entities of these domains."""
    available = _COMMON_DOMAINS.union(domains)
    services = [
        *_COMMON_SERVICES,
        *(Service(name, text, fields, _build_target(name)) for name, text, fields in _ENTITY_SERVICES),
        *(
            Service(name, text, fields, _build_target(name), response="only")
            for name, text, fields in _QUERY_SERVICES
        ),
    ]
    return {service.name: service for service in services if service.domain in available}


def _build_target(name: str) -> dict[str, Any]:
    return {"entity": [{"domain": [name.partition(".")[0]]}]}
