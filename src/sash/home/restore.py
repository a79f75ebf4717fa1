"""The service calls that restore an entity to an earlier state.

Lights, switches, covers, climate devices, media players and fans can be restored.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sash.home.expected_effects import FINAL_STATES, get_final_state, is_same_value
from sash.ports.home import State
from sash.values.attribute_words import describe_attributes

# The attributes that are saved before an action and restored by an undo, by domain.
RESTORABLE_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "light": ("brightness", "color_mode", "color_temp_kelvin", "rgb_color", "rgbw_color", "rgbww_color"),
    "switch": (),
    "input_boolean": (),
    "cover": ("current_position",),
    "climate": ("temperature", "target_temp_low", "target_temp_high", "fan_mode", "preset_mode"),
    "media_player": ("volume_level", "is_volume_muted", "source"),
    "fan": ("percentage", "preset_mode", "oscillating"),
}
_COLOURS = ("hs", "rgb", "xy", "rgbw", "rgbww")


class RestoreCall(NamedTuple):
    """A service call that restores an entity."""

    service: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state with the attributes that can be restored."""

    state: str
    attributes: dict[str, Any]

    @classmethod
    def from_state(cls, state: State) -> "SavedState":
        names = RESTORABLE_ATTRIBUTES.get(state.domain, ())
        attributes = {n: state.attributes[n] for n in names if state.attributes.get(n) is not None}
        return cls(state.state, attributes)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "SavedState":
        return cls(data["state"], data["attributes"])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """Return a text such as "on (50 % bright)"."""
        details = describe_attributes(self.attributes)
        return f"{self.state} ({details})" if details else self.state

    def is_same(self, other: "SavedState") -> bool:
        """Return whether both have the same state and the same restorable attributes."""
        names = self.attributes.keys() | other.attributes.keys()
        return self.state == other.state and not any(
            self.differs(other, name) or other.differs(self, name) for name in names
        )

    def is_unchanged_in(self, other: "SavedState") -> bool:
        """Return whether the later state `other` still has this state and these attributes.

        If this or the other state is a movement, only the final states are compared.
        """
        if get_final_state(self.state) != get_final_state(other.state):
            return False
        if self.state in FINAL_STATES or other.state in FINAL_STATES:
            return True
        return not any(self.differs(other, name) for name in self.attributes)

    def differs(self, other: "SavedState", name: str) -> bool:
        """Return whether this state has the attribute `name` and `other` lacks it or has another value."""
        return name in self.attributes and not is_same_value(
            self.attributes[name], other.attributes.get(name), name
        )


def plan_restore(domain: str, before: SavedState, now: SavedState) -> list[RestoreCall]:
    """Return the calls that change an entity from the state `now` back to the state `before`."""
    return list(_PLANNERS.get(domain, _plan_switch)(domain, before, now))


def _plan_switch(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    yield RestoreCall(f"{domain}.turn_{'on' if before.state == 'on' else 'off'}", {})


def _plan_light(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    if before.state != "on":
        yield RestoreCall("light.turn_off", {})
        return
    saved, data = before.attributes, {}
    if "brightness" in saved:
        data["brightness"] = saved["brightness"]
    if saved.get("color_mode") == "color_temp" and "color_temp_kelvin" in saved:
        data["color_temp_kelvin"] = saved["color_temp_kelvin"]
    elif (name := f"{saved.get('color_mode')}_color") in saved and name != "hs_color":
        data[name] = list(saved[name])
    elif saved.get("color_mode") in _COLOURS and "rgb_color" in saved:
        data["rgb_color"] = list(saved["rgb_color"])
    yield RestoreCall("light.turn_on", data)


def _plan_cover(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    if "current_position" in before.attributes:
        yield RestoreCall("cover.set_cover_position", {"position": before.attributes["current_position"]})
    else:
        yield RestoreCall(
            f"cover.{'close' if get_final_state(before.state) == 'closed' else 'open'}_cover", {}
        )


def _plan_climate(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    saved = before.attributes
    if before.state != now.state:
        yield RestoreCall("climate.set_hvac_mode", {"hvac_mode": before.state})
    for names in (("temperature",), ("target_temp_low", "target_temp_high")):
        if any(before.differs(now, name) for name in names):
            yield RestoreCall(
                "climate.set_temperature", {name: saved[name] for name in names if name in saved}
            )
    for name in ("fan_mode", "preset_mode"):
        if before.differs(now, name):
            yield RestoreCall(f"climate.set_{name}", {name: saved[name]})


def _plan_media_player(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    saved = before.attributes
    if before.state == "off":
        yield RestoreCall("media_player.turn_off", {})
        return
    if now.state == "off":
        yield RestoreCall("media_player.turn_on", {})
    if before.differs(now, "source"):
        yield RestoreCall("media_player.select_source", {"source": saved["source"]})
    if before.differs(now, "volume_level"):
        yield RestoreCall("media_player.volume_set", {"volume_level": saved["volume_level"]})
    if before.differs(now, "is_volume_muted"):
        yield RestoreCall("media_player.volume_mute", {"is_volume_muted": saved["is_volume_muted"]})
    if before.state != now.state and before.state in ("playing", "paused"):
        yield RestoreCall(f"media_player.media_{'play' if before.state == 'playing' else 'pause'}", {})


def _plan_fan(domain: str, before: SavedState, now: SavedState) -> Iterator[RestoreCall]:
    if before.state != "on":
        yield RestoreCall("fan.turn_off", {})
        return
    if now.state != "on":
        yield RestoreCall("fan.turn_on", {})
    saved = before.attributes
    if saved.get("preset_mode"):
        yield RestoreCall("fan.set_preset_mode", {"preset_mode": saved["preset_mode"]})
    elif saved.get("percentage"):
        yield RestoreCall("fan.set_percentage", {"percentage": saved["percentage"]})
    if before.differs(now, "oscillating"):
        yield RestoreCall("fan.oscillate", {"oscillating": saved["oscillating"]})


_PLANNERS = {
    "light": _plan_light,
    "cover": _plan_cover,
    "climate": _plan_climate,
    "media_player": _plan_media_player,
    "fan": _plan_fan,
}
