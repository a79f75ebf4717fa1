"""What brings an entity back to what it was: for lights, switches, covers, climate, media players, fans."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sash.home.effects import SETTLED, same, settled
from sash.ports.home import State

# What is kept of an entity before it is changed, and what nobody else may have changed since.
KEPT: dict[str, tuple[str, ...]] = {
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
    """A call that brings something back."""

    service: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """A state with those attributes that can be brought back."""

    state: str
    attributes: dict[str, Any]

    @classmethod
    def of(cls, state: State) -> "Kept":
        names = KEPT.get(state.domain, ())
        attributes = {n: state.attributes[n] for n in names if state.attributes.get(n) is not None}
        return cls(state.state, attributes)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Kept":
        return cls(data["state"], data["attributes"])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """Say it in words: on (brightness 128)."""
        known = ", ".join(
            f"{name} {value}" for name, value in self.attributes.items() if name != "color_mode"
        )
        return f"{self.state} ({known})" if known else self.state

    def is_same(self, other: "Kept") -> bool:
        """Whether it is the same in everything that can be brought back."""
        names = self.attributes.keys() | other.attributes.keys()
        return self.state == other.state and not any(
            self.differs(other, name) or other.differs(self, name) for name in names
        )

    def is_as(self, other: "Kept") -> bool:
        """Whether it is the same; what is or was still moving is only asked where it goes."""
        if settled(self.state) != settled(other.state):
            return False
        if self.state in SETTLED or other.state in SETTLED:
            return True
        return not any(self.differs(other, name) for name in self.attributes)

    def differs(self, other: "Kept", name: str) -> bool:
        """Whether an attribute was known here, and is another there."""
        return name in self.attributes and not same(self.attributes[name], other.attributes.get(name), name)


def restoring(domain: str, before: Kept, now: Kept) -> list[RestoreCall]:
    """Return the calls that bring an entity back from what it is to what it was."""
    return list(_RESTORING.get(domain, _switch)(domain, before, now))


def _switch(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    yield RestoreCall(f"{domain}.turn_{'on' if before.state == 'on' else 'off'}", {})


def _light(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    if before.state != "on":
        yield RestoreCall("light.turn_off", {})
        return
    was, data = before.attributes, {}
    if "brightness" in was:
        data["brightness"] = was["brightness"]
    if was.get("color_mode") == "color_temp" and "color_temp_kelvin" in was:
        data["color_temp_kelvin"] = was["color_temp_kelvin"]
    elif (name := f"{was.get('color_mode')}_color") in was and name != "hs_color":
        data[name] = list(was[name])
    elif was.get("color_mode") in _COLOURS and "rgb_color" in was:
        data["rgb_color"] = list(was["rgb_color"])
    yield RestoreCall("light.turn_on", data)


def _cover(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    if "current_position" in before.attributes:
        yield RestoreCall("cover.set_cover_position", {"position": before.attributes["current_position"]})
    else:
        yield RestoreCall(f"cover.{'close' if settled(before.state) == 'closed' else 'open'}_cover", {})


def _climate(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    was = before.attributes
    if before.state != now.state:
        yield RestoreCall("climate.set_hvac_mode", {"hvac_mode": before.state})
    for names in (("temperature",), ("target_temp_low", "target_temp_high")):
        if any(before.differs(now, name) for name in names):
            yield RestoreCall("climate.set_temperature", {name: was[name] for name in names if name in was})
    for name in ("fan_mode", "preset_mode"):
        if before.differs(now, name):
            yield RestoreCall(f"climate.set_{name}", {name: was[name]})


def _media_player(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    was = before.attributes
    if before.state == "off":
        yield RestoreCall("media_player.turn_off", {})
        return
    if now.state == "off":
        yield RestoreCall("media_player.turn_on", {})
    if before.differs(now, "source"):
        yield RestoreCall("media_player.select_source", {"source": was["source"]})
    if before.differs(now, "volume_level"):
        yield RestoreCall("media_player.volume_set", {"volume_level": was["volume_level"]})
    if before.differs(now, "is_volume_muted"):
        yield RestoreCall("media_player.volume_mute", {"is_volume_muted": was["is_volume_muted"]})
    if before.state != now.state and before.state in ("playing", "paused"):
        yield RestoreCall(f"media_player.media_{'play' if before.state == 'playing' else 'pause'}", {})


def _fan(domain: str, before: Kept, now: Kept) -> Iterator[RestoreCall]:
    if before.state != "on":
        yield RestoreCall("fan.turn_off", {})
        return
    if now.state != "on":
        yield RestoreCall("fan.turn_on", {})
    was = before.attributes
    if was.get("preset_mode"):
        yield RestoreCall("fan.set_preset_mode", {"preset_mode": was["preset_mode"]})
    elif was.get("percentage"):
        yield RestoreCall("fan.set_percentage", {"percentage": was["percentage"]})
    if before.differs(now, "oscillating"):
        yield RestoreCall("fan.oscillate", {"oscillating": was["oscillating"]})


_RESTORING = {
    "light": _light,
    "cover": _cover,
    "climate": _climate,
    "media_player": _media_player,
    "fan": _fan,
}
