"""Maps commands to service calls.

Entities that cannot execute the command are left out: they are unavailable, or lack the feature.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sash.home.index import HomeIndex
from sash.home.service_call import MAX_ENTITIES
from sash.intents.grammar import Interpretation
from sash.ports.home import UNAVAILABLE, Entity, State

# The required bit of `supported_features`, by service.
_REQUIRED_FEATURES = {
    "climate.set_fan_mode": 8,
    "climate.set_temperature": 1,
    "climate.turn_off": 128,
    "climate.turn_on": 256,
    "cover.close_cover": 2,
    "cover.open_cover": 1,
    "cover.set_cover_position": 4,
    "fan.set_percentage": 1,
    "fan.turn_off": 16,
    "fan.turn_on": 32,
    "lawn_mower.dock": 4,
    "lawn_mower.start_mowing": 1,
    "media_player.media_next_track": 32,
    "media_player.media_pause": 1,
    "media_player.media_play": 16384,
    "media_player.media_previous_track": 16,
    "media_player.turn_off": 256,
    "media_player.turn_on": 128,
    "media_player.volume_mute": 8,
    "media_player.volume_set": 4,
    "siren.turn_off": 2,
    "siren.turn_on": 1,
    "todo.add_item": 1,
    "todo.remove_item": 2,
    "todo.update_item": 4,
    "vacuum.return_to_base": 16,
    "vacuum.start": 8192,
    "valve.close_valve": 2,
    "valve.open_valve": 1,
    "valve.set_valve_position": 4,
    "water_heater.turn_off": 8,
    "water_heater.turn_on": 8,
}
_ON_OFF_DOMAINS = (
    "automation",
    "camera",
    "climate",
    "fan",
    "humidifier",
    "input_boolean",
    "light",
    "media_player",
    "remote",
    "siren",
    "switch",
    "water_heater",
)
_TURN_ON_SERVICES = dict.fromkeys((*_ON_OFF_DOMAINS, "scene", "script"), "turn_on") | {
    "button": "press",
    "cover": "open_cover",
    "input_button": "press",
    "lawn_mower": "start_mowing",
    "lock": "lock",
    "vacuum": "start",
    "valve": "open_valve",
}
_TURN_OFF_SERVICES = dict.fromkeys((*_ON_OFF_DOMAINS, "script"), "turn_off") | {
    "cover": "close_cover",
    "lawn_mower": "dock",
    "lock": "unlock",
    "vacuum": "return_to_base",
    "valve": "close_valve",
}
_POSITION_SERVICES = {"cover": "set_cover_position", "valve": "set_valve_position"}
_COLOUR_MODES = frozenset({"hs", "xy", "rgb", "rgbw", "rgbww"})
_BRIGHTNESS_MODES = _COLOUR_MODES | {"brightness", "color_temp", "white"}
_VOLUME_STEP_FEATURES = 1024 | 4
_MAX_ITEM_CHARS = 80
_SHOPPING_LIST = "shopping_list"
_NEGATION = re.compile(
    r"(?:no|not|none|any|kein\w*|nicht|pas|ningún|ninguna|nessun\w*|niente|non|geen|niet|inte|ingen|inget|ikke|não|nie"
    r"|żadn\w*|не|нет|ei|nem)\b",
    re.I,
)

# The service without its domain, and its data. None if the command does not apply to the entity.
EntityCommand = tuple[str, dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A service call for a command: the service, the ids of its entities, and its data."""

    service: str
    entity_ids: tuple[str, ...]
    data: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool `call_service`."""
        return {"service": self.service, "entity_ids": list(self.entity_ids), "data": self.data}


@dataclass(frozen=True, slots=True)
class CommandRule:
    """Maps an intent to a service for one entity.

    `domains` apply if the sentence names neither an entity nor a domain. If it names no entity, `states`
    limits the command to entities in one of these states: music is paused only where it plays.
    """

    build: Callable[[Interpretation, State], EntityCommand]
    domains: tuple[str, ...] = ()
    states: frozenset[str] = frozenset()


def plan_calls(
    interpretation: Interpretation, entities: Iterable[Entity], index: HomeIndex
) -> list[PlannedCall]:
    """Return the calls for a command, one for each service and its data.

    Empty if no entity can execute the command, or the sentence does not say which entity is meant.
    """
    rule = COMMANDS[interpretation.intent]
    is_named = "name" in interpretation.slots
    planned: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for entity in entities:
        state = index.states.get(entity.id)
        is_supported = entity.domain in (rule.domains or _TURN_ON_SERVICES)
        if state is None or state.state == UNAVAILABLE or not is_supported:
            continue
        if rule.states and not is_named and state.state not in rule.states:
            continue
        if (command := rule.build(interpretation, state)) is None:
            continue
        service, data = f"{entity.domain}.{command[0]}", command[1]
        if _has_feature(state, _REQUIRED_FEATURES.get(service, 0)):
            planned.setdefault((service, repr(data)), (data, []))[1].append(entity.id)
    is_specific = bool(interpretation.slots.keys() & {"name", "area", "floor", "domain"})
    if not is_specific and sum(len(entity_ids) for _, entity_ids in planned.values()) != 1:
        return []
    return [
        PlannedCall(service, tuple(entity_ids[start : start + MAX_ENTITIES]), data)
        for (service, _), (data, entity_ids) in planned.items()
        for start in range(0, len(entity_ids), MAX_ENTITIES)
    ]


def find_shopping_list(index: HomeIndex) -> tuple[Entity, ...]:
    """Return Home Assistant's own shopping list, or else the only to-do list; empty if several fit."""
    lists = [entity for entity in index.entities.values() if entity.domain == "todo"]
    own = [e for e in lists if e.platform == _SHOPPING_LIST or e.id == f"todo.{_SHOPPING_LIST}"]
    return tuple(own or lists) if len(own or lists) == 1 else ()


def _has_feature(state: State, bits: int) -> bool:
    """Return whether an entity has at least one of the features. Without `supported_features` it has all."""
    features = state.attributes.get("supported_features")
    return not bits or not isinstance(features, int) or bool(features & bits)


def _build_switch(services: Mapping[str, str]) -> Callable[[Interpretation, State], EntityCommand]:
    return lambda _, state: (services[state.domain], {}) if state.domain in services else None


def _build_fixed(service: str, **data: Any) -> Callable[[Interpretation, State], EntityCommand]:
    return lambda _interpretation, _state: (service, data)


def _build_light(interpretation: Interpretation, state: State) -> EntityCommand:
    modes = state.attributes.get("supported_color_modes")
    brightness, colour, kelvin = (
        interpretation.get_value(slot) for slot in ("brightness", "color", "temperature")
    )
    is_able = modes is None or (
        (brightness is None or _BRIGHTNESS_MODES.intersection(modes))
        and (colour is None or _COLOUR_MODES.intersection(modes))
        and (kelvin is None or {"color_temp", "rgbww"}.intersection(modes))
    )
    data = {"brightness_pct": brightness, "color_name": colour, "color_temp_kelvin": kelvin}
    given = {key: value for key, value in data.items() if value is not None}
    return ("turn_on", given) if is_able and given and state.domain == "light" else None


def _build_position(interpretation: Interpretation, state: State) -> EntityCommand:
    service, position = _POSITION_SERVICES.get(state.domain), interpretation.get_value("position")
    return None if service is None or position is None else (service, {"position": position})


def _build_temperature(interpretation: Interpretation, _: State) -> EntityCommand:
    temperature = interpretation.get_value("temperature")
    return None if temperature is None else ("set_temperature", {"temperature": temperature})


def _build_fan_mode(interpretation: Interpretation, state: State) -> EntityCommand:
    mode, modes = interpretation.get_value("fan_mode"), state.attributes.get("fan_modes")
    return ("set_fan_mode", {"fan_mode": mode}) if mode and (modes is None or mode in modes) else None


def _build_fan_speed(interpretation: Interpretation, _: State) -> EntityCommand:
    percentage = interpretation.get_value("percentage")
    return None if percentage is None else ("set_percentage", {"percentage": percentage})


def _build_volume(interpretation: Interpretation, _: State) -> EntityCommand:
    percent = interpretation.get_value("volume_level")
    return None if percent is None else ("volume_set", {"volume_level": _compute_volume_level(percent)})


def _build_volume_step(interpretation: Interpretation, state: State) -> EntityCommand:
    step, now = interpretation.get_value("volume_step"), state.attributes.get("volume_level")
    if step in ("up", "down"):
        return (f"volume_{step}", {}) if _has_feature(state, _VOLUME_STEP_FEATURES) else None
    if isinstance(step, int | float) and isinstance(now, int | float):
        return "volume_set", {"volume_level": _compute_volume_level(now * 100 + step)}
    return None


def _compute_volume_level(percent: float) -> float:
    return round(min(max(percent / 100, 0.0), 1.0), 2)


def _is_complex_item(text: str) -> bool:
    """Return whether an item is a list or a negation, which only the model can understand."""
    return bool(set(text) & set(",;\n")) or _NEGATION.match(text) is not None


def _build_item(service: str, **data: Any) -> Callable[[Interpretation, State], EntityCommand]:
    def build(interpretation: Interpretation, _: State) -> EntityCommand:
        item = interpretation.slots.get("item")
        if item is None or not item.text or len(item.text) > _MAX_ITEM_CHARS or _is_complex_item(item.text):
            return None
        return service, {"item": item.text, **data}

    return build


_PLAYERS = ("media_player",)
_PLAYING_STATES = frozenset({"playing"})
_AUDIBLE_STATES = frozenset({"playing", "paused", "on", "idle", "buffering"})
_ADD_ITEM = CommandRule(_build_item("add_item"), ("todo",))
_COMPLETE_ITEM = CommandRule(_build_item("update_item", status="completed"), ("todo",))
COMMANDS: Mapping[str, CommandRule] = {
    "HassClimateSetFanMode": CommandRule(_build_fan_mode, ("climate",)),
    "HassClimateSetTemperature": CommandRule(_build_temperature, ("climate",)),
    "HassFanSetSpeed": CommandRule(_build_fan_speed, ("fan",)),
    "HassLawnMowerDock": CommandRule(_build_fixed("dock"), ("lawn_mower",)),
    "HassLawnMowerStartMowing": CommandRule(_build_fixed("start_mowing"), ("lawn_mower",)),
    "HassLightSet": CommandRule(_build_light, ("light",)),
    "HassListAddItem": _ADD_ITEM,
    "HassListCompleteItem": _COMPLETE_ITEM,
    "HassListRemoveItem": CommandRule(_build_item("remove_item"), ("todo",)),
    "HassMediaNext": CommandRule(_build_fixed("media_next_track"), _PLAYERS, _PLAYING_STATES),
    "HassMediaPause": CommandRule(_build_fixed("media_pause"), _PLAYERS, _PLAYING_STATES),
    "HassMediaPlayerMute": CommandRule(
        _build_fixed("volume_mute", is_volume_muted=True), _PLAYERS, _AUDIBLE_STATES
    ),
    "HassMediaPlayerUnmute": CommandRule(
        _build_fixed("volume_mute", is_volume_muted=False), _PLAYERS, _AUDIBLE_STATES
    ),
    "HassMediaPrevious": CommandRule(_build_fixed("media_previous_track"), _PLAYERS, _PLAYING_STATES),
    "HassMediaUnpause": CommandRule(_build_fixed("media_play"), _PLAYERS, frozenset({"paused"})),
    "HassSetPosition": CommandRule(_build_position, ("cover", "valve")),
    "HassSetVolume": CommandRule(_build_volume, _PLAYERS, _AUDIBLE_STATES),
    "HassSetVolumeRelative": CommandRule(_build_volume_step, _PLAYERS, _AUDIBLE_STATES),
    "HassShoppingListAddItem": _ADD_ITEM,
    "HassShoppingListCompleteItem": _COMPLETE_ITEM,
    "HassTurnOff": CommandRule(_build_switch(_TURN_OFF_SERVICES)),
    "HassTurnOn": CommandRule(_build_switch(_TURN_ON_SERVICES)),
    "HassVacuumReturnToBase": CommandRule(_build_fixed("return_to_base"), ("vacuum",)),
    "HassVacuumStart": CommandRule(_build_fixed("start"), ("vacuum",)),
}
