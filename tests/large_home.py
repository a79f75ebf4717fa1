"""A home with many entities, for tests and benchmarks."""

from datetime import timedelta
from typing import Any

from sash.demo.simulated_home import SimulatedHome
from sash.ports.home import Area, Device, Entity, Floor, Layout, State
from sash.values.clock import Clock, SystemClock

ENTITIES_AN_AREA = 12
AREAS_A_FLOOR = 8

_MEASURED = "measurement"
_ROOMS = (
    "Kitchen",
    "Living room",
    "Bedroom",
    "Bathroom",
    "Office",
    "Hallway",
    "Guest room",
    "Children's room",
    "Workshop",
    "Laundry",
    "Storage",
    "Meeting room",
)

# The entities of a room: domain, name, state, attributes.
_THINGS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("light", "ceiling light", "off", {"supported_color_modes": ["brightness"], "brightness": 180}),
    (
        "sensor",
        "temperature",
        "21.3",
        {"device_class": "temperature", "unit_of_measurement": "°C", "state_class": _MEASURED},
    ),
    ("binary_sensor", "motion", "off", {"device_class": "motion"}),
    (
        "light",
        "floor lamp",
        "on",
        {"supported_color_modes": ["color_temp", "hs"], "brightness": 90, "color_temp_kelvin": 2700},
    ),
    (
        "sensor",
        "humidity",
        "47",
        {"device_class": "humidity", "unit_of_measurement": "%", "state_class": _MEASURED},
    ),
    ("cover", "blind", "open", {"device_class": "blind", "current_position": 100}),
    ("switch", "socket", "on", {"device_class": "outlet"}),
    (
        "sensor",
        "socket power",
        "42",
        {"device_class": "power", "unit_of_measurement": "W", "state_class": _MEASURED},
    ),
    (
        "climate",
        "thermostat",
        "heat",
        {
            "hvac_modes": ["off", "heat"],
            "temperature": 21,
            "current_temperature": 21.3,
            "min_temp": 5,
            "max_temp": 28,
            "hvac_action": "idle",
        },
    ),
    ("binary_sensor", "window", "off", {"device_class": "window"}),
    (
        "sensor",
        "window battery",
        "88",
        {"device_class": "battery", "unit_of_measurement": "%", "state_class": _MEASURED},
    ),
    (
        "media_player",
        "speaker",
        "paused",
        {"device_class": "speaker", "volume_level": 0.3, "source_list": ["Radio", "Line-in"]},
    ),
)


def make_large_home(n: int, clock: Clock | None = None) -> SimulatedHome:
    """Return a home of `n` entities, always the same: twelve in a room, eight rooms on a floor."""
    clock = clock or SystemClock()
    since = clock.now() - timedelta(hours=1)
    floors, areas, devices, entities, states = {}, {}, {}, [], []
    for number in range(n):
        room, thing = divmod(number, len(_THINGS))
        domain, called, state, attributes = _THINGS[thing]
        floor = room // AREAS_A_FLOOR
        place = f"{_ROOMS[room % len(_ROOMS)]} {room // len(_ROOMS) + 1}"
        area_id = place.lower().replace(" ", "_").replace("'", "")
        floors[floor] = Floor(f"floor_{floor}", f"Floor {floor}")
        areas[room] = Area(area_id, place, floors[floor].id)
        device = Device(
            f"device_{number // 3}", f"{place} device {thing // 3 + 1}", area_id, "Acme", "Multi 3"
        )
        devices[device.id] = device
        entity_id, name = f"{domain}.{area_id}_{called.replace(' ', '_')}", f"{place} {called}"
        entities.append(Entity(entity_id, name, area_id, device.id, platform="acme"))
        states.append(State(entity_id, state, {"friendly_name": name, **attributes}, since, since))
    layout = Layout(
        f"A house of {n}",
        tuple(entities),
        tuple(devices.values()),
        tuple(areas.values()),
        tuple(floors.values()),
    )
    return SimulatedHome(layout, states, clock=clock, name=f"a house of {n}")
