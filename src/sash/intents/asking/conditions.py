"""The states that a question asks for: "open" is on for the sensor of a door, and open for a blind."""

from collections.abc import Mapping

from sash.home.index import HomeIndex
from sash.ports.home import NO_STATE, Entity
from sash.values.state_words import DETECTED

# What only sensors tell.
_NOTICED = ("leak", "detected", "smoke", "carbon_monoxide", "noise", "vibrating", "charging", "plugged_in")
# The states of each domain that a word means, by the meaning of the word.
_STATES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "on": {
        "light": frozenset({"on"}),
        "switch": frozenset({"on"}),
        "fan": frozenset({"on"}),
        "input_boolean": frozenset({"on"}),
        "automation": frozenset({"on"}),
        "humidifier": frozenset({"on"}),
        "siren": frozenset({"on"}),
        "script": frozenset({"on"}),
        "media_player": frozenset({"on", "playing", "idle", "buffering"}),
        "climate": frozenset({"heat", "cool", "auto", "heat_cool", "dry", "fan_only"}),
        "alarm_control_panel": frozenset(
            {"armed_home", "armed_away", "armed_night", "armed_vacation", "arming", "pending", "triggered"}
        ),
        "vacuum": frozenset({"cleaning", "returning"}),
        "lawn_mower": frozenset({"mowing", "returning"}),
        "water_heater": frozenset({"on", "eco", "electric", "gas", "heat_pump", "performance"}),
        "binary_sensor": frozenset({"on"}),
    },
    "open": {
        "cover": frozenset({"open", "opening"}),
        "valve": frozenset({"open", "opening"}),
        "binary_sensor": frozenset({"on"}),
    },
    "locked": {"lock": frozenset({"locked", "locking"}), "binary_sensor": frozenset({"off"})},
    "home": {"person": frozenset({"home"}), "device_tracker": frozenset({"home"})},
    "playing": {"media_player": frozenset({"playing"})},
    "paused": {"media_player": frozenset({"paused"}), "vacuum": frozenset({"paused"})},
    "running": {
        "vacuum": frozenset({"cleaning"}),
        "lawn_mower": frozenset({"mowing"}),
        "switch": frozenset({"on"}),
        "fan": frozenset({"on"}),
        "script": frozenset({"on"}),
        "timer": frozenset({"active"}),
        "media_player": frozenset({"playing", "on"}),
    },
    "docked": {"vacuum": frozenset({"docked"}), "lawn_mower": frozenset({"docked"})},
    "muted": {},
    "moving": {"binary_sensor": frozenset({"on"})},
    **{name: {"binary_sensor": frozenset({"on"})} for name in _NOTICED},
    "power_cut": {},
    "updates": {"update": frozenset({"on"}), "binary_sensor": frozenset({"on"})},
    "heat": {"climate": frozenset({"heat", "auto", "heat_cool"})},
    "cool": {"climate": frozenset({"cool"})},
    "armed": {
        "alarm_control_panel": frozenset({"armed_home", "armed_away", "armed_night", "armed_vacation"})
    },
    "unavailable": {},
}
# The classes of binary sensors that answer such a question.
_CLASSES: Mapping[str, frozenset[str]] = {
    "open": frozenset({"door", "window", "garage_door", "opening", "garage"}),
    "locked": frozenset({"lock"}),
    "moving": frozenset({"motion", "occupancy", "presence", "moving"}),
    "leak": frozenset({"moisture"}),
    "detected": DETECTED,
    "smoke": frozenset({"smoke"}),
    "carbon_monoxide": frozenset({"carbon_monoxide"}),
    "noise": frozenset({"sound"}),
    "vibrating": frozenset({"vibration"}),
    "charging": frozenset({"battery_charging"}),
    "plugged_in": frozenset({"plug"}),
    "updates": frozenset({"update"}),
    "home": frozenset({"presence"}),
    "on": frozenset({"running", "power", "plug", "connectivity", "light", "heat", "cold", "sound", ""}),
}
# "Is there smoke?" asks for any, only an alarm is armed, and "did I lock up?" means all locks.
ASKS_FOR_ANY = frozenset(
    {
        "leak",
        "armed",
        "locked",
        "moving",
        "smoke",
        "carbon_monoxide",
        "noise",
        "power_cut",
        "vibrating",
        "charging",
        "updates",
    }
)
# Words that mean one of the states above, or the opposite of one.
_SAME: Mapping[str, tuple[str, bool]] = {
    "on": ("on", True),
    "off": ("on", False),
    "open": ("open", True),
    "up": ("open", True),
    "close": ("open", False),
    "down": ("open", False),
    "lock": ("locked", True),
    "unlock": ("locked", False),
    "home": ("home", True),
    "away": ("home", False),
    "play": ("playing", True),
    "pause": ("paused", True),
    "start": ("running", True),
    "run": ("running", True),
    "clean": ("running", True),
    "done": ("running", False),
    "stop": ("running", False),
    "dock": ("docked", True),
    "moving": ("moving", True),
    "vacant": ("moving", False),
    "dry": ("leak", False),
    **{name: (name, True) for name in (*_NOTICED, "updates")},
    "power_cut": ("power_cut", True),
    "unplugged": ("plugged_in", False),
    "up_to_date": ("updates", False),
    "heat": ("heat", True),
    "cool": ("cool", True),
    "arm": ("armed", True),
    "disarm": ("armed", False),
}


_OPPOSITES = {"open": "closed", "locked": "unlocked", "home": "not_home", "playing": "idle"}


class Condition:
    """The state, or its opposite, that a question asks for."""

    def __init__(self, name: str, is_true: bool, index: HomeIndex) -> None:
        self.name = name
        self.is_true = is_true
        self._index = index
        self._by_domain = _STATES[name]

    def applies_to(self, entity: Entity) -> bool:
        """Return whether an entity can have the state."""
        if entity.domain not in self._by_domain:
            return False
        if entity.domain == "binary_sensor":
            return self._index.get_device_class(entity.id) in _CLASSES.get(self.name, frozenset())
        return True

    def is_met(self, entity: Entity) -> bool | None:
        """Return whether an entity has the state that is asked for; None if its state is not known."""
        state = self._index.get_state(entity.id)
        if state in NO_STATE:
            return None
        return (state in self._by_domain[entity.domain]) == self.is_true

    def list_states(self, entity: Entity) -> frozenset[str]:
        """Return the states of an entity that have the name of the condition, without its negation."""
        return self._by_domain[entity.domain]

    def find_state(self, entity: Entity) -> str:
        """Return a state that an entity has if the condition is met, such as "open"."""
        states = self._by_domain[entity.domain]
        if self.is_true:
            return self.name if self.name in states else min(states)
        return _OPPOSITES.get(self.name, "off") if entity.domain != "binary_sensor" else "off"


def find_condition(do: tuple[str, ...], index: HomeIndex) -> Condition | None:
    """Return the condition that the words of a question mean; None if they mean none."""
    for word in do:
        if word in _SAME:
            name, is_true = _SAME[word]
            return Condition(name, is_true, index)
    return None
