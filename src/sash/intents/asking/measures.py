"""The values that a question asks for: temperature, humidity, power, a position, a volume."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sash.home.index import HomeIndex
from sash.ports.home import NO_STATE, Entity, State

_LIGHT_MAX = 255


class Measure(NamedTuple):
    """How to read a property: device classes of sensors, and attributes of other domains.

    With `is_rare` things of the other domains have the property only if they have the attribute.
    """

    classes: frozenset[str]
    by_domain: Mapping[str, Callable[[State], float | None]] = {}
    unit: str = ""
    is_rare: bool = False


class Reading(NamedTuple):
    """The present value of a property of an entity; None if it is not known."""

    entity: Entity
    value: float | None
    unit: str


def _read(name: str, factor: float = 1.0) -> Callable[[State], float | None]:
    def read(state: State) -> float | None:
        value: Any = state.attributes.get(name)
        return value * factor if isinstance(value, int | float) else None

    return read


MEASURES: Mapping[str, Measure] = {
    "temperature": Measure(
        frozenset({"temperature"}),
        {
            "climate": _read("current_temperature"),
            "weather": _read("temperature"),
            "water_heater": _read("current_temperature"),
        },
        "°C",
    ),
    "set_to": Measure(
        frozenset(),
        {
            "climate": _read("temperature"),
            "water_heater": _read("temperature"),
            "humidifier": _read("humidity"),
        },
        "°C",
    ),
    "humidity": Measure(
        frozenset({"humidity"}),
        {"climate": _read("current_humidity"), "weather": _read("humidity")},
        "%",
        is_rare=True,
    ),
    "brightness": Measure(frozenset({"illuminance"}), {"light": _read("brightness", 100 / _LIGHT_MAX)}, "%"),
    "volume": Measure(frozenset(), {"media_player": _read("volume_level", 100)}, "%"),
    "position": Measure(
        frozenset(), {"cover": _read("current_position"), "valve": _read("current_position")}, "%"
    ),
    "power": Measure(frozenset({"power"})),
    "energy": Measure(frozenset({"energy"})),
    "battery": Measure(frozenset({"battery"}), {"vacuum": _read("battery_level")}, "%", is_rare=True),
    "voltage": Measure(frozenset({"voltage"})),
    "co2": Measure(frozenset({"carbon_dioxide", "aqi", "volatile_organic_compounds"})),
    "pressure": Measure(
        frozenset({"pressure", "atmospheric_pressure"}), {"weather": _read("pressure")}, "hPa"
    ),
    "speed": Measure(frozenset({"speed", "wind_speed"}), {"fan": _read("percentage")}, "%"),
}


def can_measure(measure: Measure, entity: Entity, index: HomeIndex) -> bool:
    """Return whether an entity has a property."""
    if entity.domain == "sensor":
        return index.get_device_class(entity.id) in measure.classes
    if entity.domain not in measure.by_domain:
        return False
    state = index.states.get(entity.id)
    return not measure.is_rare or (state is not None and measure.by_domain[entity.domain](state) is not None)


def read_measure(measure: Measure, entity: Entity, index: HomeIndex) -> Reading:
    """Return the present value of a property of an entity."""
    state = index.states.get(entity.id)
    if state is None or state.state in NO_STATE:
        return Reading(entity, None, "")
    if entity.domain != "sensor":
        unit = measure.unit
        if entity.domain == "humidifier":
            unit = "%"
        return Reading(entity, measure.by_domain[entity.domain](state), unit)
    try:
        return Reading(entity, float(state.state), state.unit)
    except ValueError:
        return Reading(entity, None, "")
