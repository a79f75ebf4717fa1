"""Which services of the house a command becomes.

An entity that cannot do what is wanted is left out: one that is not available, or has not the feature.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sash.home.index import Index
from sash.home.service_call import MAX_ENTITIES
from sash.intents.grammar import Meaning
from sash.ports.home import UNAVAILABLE, Entity, State

# Services that need a feature, with its bit in `supported_features`.
_FEATURES = {
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
_SWITCHED = (
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
_ON = dict.fromkeys((*_SWITCHED, "scene", "script"), "turn_on") | {
    "button": "press",
    "cover": "open_cover",
    "input_button": "press",
    "lawn_mower": "start_mowing",
    "lock": "lock",
    "vacuum": "start",
    "valve": "open_valve",
}
_OFF = dict.fromkeys((*_SWITCHED, "script"), "turn_off") | {
    "cover": "close_cover",
    "lawn_mower": "dock",
    "lock": "unlock",
    "vacuum": "return_to_base",
    "valve": "close_valve",
}
_POSITION = {"cover": "set_cover_position", "valve": "set_valve_position"}
_COLOURS = frozenset({"hs", "xy", "rgb", "rgbw", "rgbww"})
_DIMMED = _COLOURS | {"brightness", "color_temp", "white"}
_VOLUME_STEP = 1024 | 4
_LONGEST_ITEM = 80
_SHOPPING_LIST = "shopping_list"
_negated = re.compile(
    r"(?:no|not|none|any|kein\w*|nicht|pas|ningún|ninguna|nessun\w*|niente|non|geen|niet|inte|ingen|inget|ikke|não|nie"
    r"|żadn\w*|не|нет|ei|nem)\b",
    re.I,
)

# What an entity is told: the service, without its domain, and the data. None if it is not for this entity.
Told = tuple[str, dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Call:
    """A service, the entities that it is called for, and what it is told."""

    service: str
    entity_ids: tuple[str, ...]
    data: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool `call_service`."""
        return {"service": self.service, "entity_ids": list(self.entity_ids), "data": self.data}


@dataclass(frozen=True, slots=True)
class Command:
    """What an intent tells an entity.

    `domains` are meant if the sentence names no entity and no kind. `states` are those in which an entity is
    meant that is not named: the music is paused where it plays.
    """

    tell: Callable[[Meaning, State], Told]
    domains: tuple[str, ...] = ()
    states: frozenset[str] = frozenset()


def plan(meaning: Meaning, entities: Iterable[Entity], index: Index) -> list[Call]:
    """Return the calls for a command, one for each service and its data; none if no entity can do it."""
    command = COMMANDS[meaning.intent]
    named = "name" in meaning.slots
    told: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for entity in entities:
        state = index.states.get(entity.id)
        if state is None or state.state == UNAVAILABLE or entity.domain not in (command.domains or _ON):
            continue
        if command.states and not named and state.state not in command.states:
            continue
        if (order := command.tell(meaning, state)) is None:
            continue
        service, data = f"{entity.domain}.{order[0]}", order[1]
        if _has(state, _FEATURES.get(service, 0)):
            told.setdefault((service, repr(data)), (data, []))[1].append(entity.id)
    # If nothing says which one is meant, that is sure only if there is but one.
    says_which = meaning.slots.keys() & {"name", "area", "floor", "domain"}
    if not says_which and sum(len(entity_ids) for _, entity_ids in told.values()) != 1:
        return []
    return [
        Call(service, tuple(entity_ids[start : start + MAX_ENTITIES]), data)
        for (service, _), (data, entity_ids) in told.items()
        for start in range(0, len(entity_ids), MAX_ENTITIES)
    ]


def shopping_list(index: Index) -> tuple[Entity, ...]:
    """Return the list that is meant by "my shopping list": the house's own, or else the only one."""
    lists = [entity for entity in index.entities.values() if entity.domain == "todo"]
    own = [e for e in lists if e.platform == _SHOPPING_LIST or e.id == f"todo.{_SHOPPING_LIST}"]
    return tuple(own or lists) if len(own or lists) == 1 else ()


def _has(state: State, bits: int) -> bool:
    """Whether an entity has any of these features; one that does not tell is believed to have them."""
    features = state.attributes.get("supported_features")
    return not bits or not isinstance(features, int) or bool(features & bits)


def _switch(services: Mapping[str, str]) -> Callable[[Meaning, State], Told]:
    return lambda _, state: (services[state.domain], {}) if state.domain in services else None


def _simply(service: str, **data: Any) -> Callable[[Meaning, State], Told]:
    return lambda _meaning, _state: (service, data)


def _light(meaning: Meaning, state: State) -> Told:
    modes = state.attributes.get("supported_color_modes")
    brightness, colour, kelvin = (meaning.value(slot) for slot in ("brightness", "color", "temperature"))
    able = modes is None or (
        (brightness is None or _DIMMED.intersection(modes))
        and (colour is None or _COLOURS.intersection(modes))
        and (kelvin is None or {"color_temp", "rgbww"}.intersection(modes))
    )
    data = {"brightness_pct": brightness, "color_name": colour, "color_temp_kelvin": kelvin}
    wanted = {key: value for key, value in data.items() if value is not None}
    return ("turn_on", wanted) if able and wanted and state.domain == "light" else None


def _position(meaning: Meaning, state: State) -> Told:
    service, position = _POSITION.get(state.domain), meaning.value("position")
    return None if service is None or position is None else (service, {"position": position})


def _temperature(meaning: Meaning, _: State) -> Told:
    temperature = meaning.value("temperature")
    return None if temperature is None else ("set_temperature", {"temperature": temperature})


def _fan_mode(meaning: Meaning, state: State) -> Told:
    mode, modes = meaning.value("fan_mode"), state.attributes.get("fan_modes")
    return ("set_fan_mode", {"fan_mode": mode}) if mode and (modes is None or mode in modes) else None


def _fan_speed(meaning: Meaning, _: State) -> Told:
    percentage = meaning.value("percentage")
    return None if percentage is None else ("set_percentage", {"percentage": percentage})


def _volume(meaning: Meaning, _: State) -> Told:
    percent = meaning.value("volume_level")
    return None if percent is None else ("volume_set", {"volume_level": _level(percent)})


def _volume_step(meaning: Meaning, state: State) -> Told:
    step, now = meaning.value("volume_step"), state.attributes.get("volume_level")
    if step in ("up", "down"):
        return (f"volume_{step}", {}) if _has(state, _VOLUME_STEP) else None
    if isinstance(step, int | float) and isinstance(now, int | float):
        return "volume_set", {"volume_level": _level(now * 100 + step)}
    return None


def _level(percent: float) -> float:
    return round(min(max(percent / 100, 0.0), 1.0), 2)


def _more_than_a_thing(text: str) -> bool:
    """Whether an item is several, or what is not wanted: that is for the model."""
    return bool(set(text) & set(",;\n")) or _negated.match(text) is not None


def _item(service: str, **data: Any) -> Callable[[Meaning, State], Told]:
    def tell(meaning: Meaning, _: State) -> Told:
        item = meaning.slots.get("item")
        # Several things at once are for a model, which can tell them apart.
        if item is None or not item.text or len(item.text) > _LONGEST_ITEM or _more_than_a_thing(item.text):
            return None
        return service, {"item": item.text, **data}

    return tell


_PLAYERS = ("media_player",)
_PLAYING = frozenset({"playing"})
_AUDIBLE = frozenset({"playing", "paused", "on", "idle", "buffering"})
_ADD = Command(_item("add_item"), ("todo",))
_COMPLETE = Command(_item("update_item", status="completed"), ("todo",))
COMMANDS: Mapping[str, Command] = {
    "HassClimateSetFanMode": Command(_fan_mode, ("climate",)),
    "HassClimateSetTemperature": Command(_temperature, ("climate",)),
    "HassFanSetSpeed": Command(_fan_speed, ("fan",)),
    "HassLawnMowerDock": Command(_simply("dock"), ("lawn_mower",)),
    "HassLawnMowerStartMowing": Command(_simply("start_mowing"), ("lawn_mower",)),
    "HassLightSet": Command(_light, ("light",)),
    "HassListAddItem": _ADD,
    "HassListCompleteItem": _COMPLETE,
    "HassListRemoveItem": Command(_item("remove_item"), ("todo",)),
    "HassMediaNext": Command(_simply("media_next_track"), _PLAYERS, _PLAYING),
    "HassMediaPause": Command(_simply("media_pause"), _PLAYERS, _PLAYING),
    "HassMediaPlayerMute": Command(_simply("volume_mute", is_volume_muted=True), _PLAYERS, _AUDIBLE),
    "HassMediaPlayerUnmute": Command(_simply("volume_mute", is_volume_muted=False), _PLAYERS, _AUDIBLE),
    "HassMediaPrevious": Command(_simply("media_previous_track"), _PLAYERS, _PLAYING),
    "HassMediaUnpause": Command(_simply("media_play"), _PLAYERS, frozenset({"paused"})),
    "HassSetPosition": Command(_position, ("cover", "valve")),
    "HassSetVolume": Command(_volume, _PLAYERS, _AUDIBLE),
    "HassSetVolumeRelative": Command(_volume_step, _PLAYERS, _AUDIBLE),
    "HassShoppingListAddItem": _ADD,
    "HassShoppingListCompleteItem": _COMPLETE,
    "HassTurnOff": Command(_switch(_OFF)),
    "HassTurnOn": Command(_switch(_ON)),
    "HassVacuumReturnToBase": Command(_simply("return_to_base"), ("vacuum",)),
    "HassVacuumStart": Command(_simply("start"), ("vacuum",)),
}
