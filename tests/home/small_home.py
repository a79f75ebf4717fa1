"""A small home for tests, and a live index of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from sash.demo.simulated_home import SimulatedHome
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.ports.home import Area, Dependent, Device, Entity, Floor, Layout, State
from sash.testing import FakeClock

NOW = FakeClock().now()
WAIT_S = 30


def entity(entity_id, name=None, area=None, **rest):
    return Entity(entity_id, name or entity_id.partition(".")[2].replace("_", " ").title(), area, **rest)


def state(entity_id, said="off", **attributes):
    return State(entity_id, said, attributes, NOW, NOW)


LAYOUT = Layout(
    "Test house",
    (
        entity("light.kitchen_ceiling", "Kitchen ceiling", "kitchen", aliases=("Big lamp",)),
        entity("light.kitchen_counter", "Counter", "kitchen", device_id="strip"),
        entity("light.living_room", "Reading lamp", "living_room"),
        entity("switch.kettle", "Kettle", "kitchen"),
        entity("cover.living_room", "Blinds", "living_room"),
        entity("lock.front_door", "Front door", "hall"),
        entity("climate.living_room", "Thermostat", "living_room"),
        entity("media_player.tv", "TV", "living_room"),
        entity("fan.bedroom", "Bedroom fan", "bedroom"),
        entity("sensor.kitchen_temperature", "Kitchen temperature", "kitchen", labels=("climate",)),
        entity("automation.morning", "Good morning"),
        entity("scene.movie", "Movie night"),
        entity("light.secret", "Secret lamp", "kitchen", exposed=False),
    ),
    (
        Device("strip", "LED strip", "kitchen", "Acme", "S2", via_id="bridge"),
        Device("bridge", "Zigbee bridge", "hall"),
    ),
    (
        Area("kitchen", "Kitchen", "ground", ("Cookery",)),
        Area("living_room", "Living room", "ground"),
        Area("hall", "Hall"),
        Area("bedroom", "Bedroom"),
    ),
    (Floor("ground", "Ground floor"),),
    {"climate": "Air"},
    (
        Dependent(
            "automation.morning",
            "Good morning",
            "automation",
            frozenset({"light.kitchen_ceiling", "light.secret"}),
        ),
        Dependent("automation.hidden", "Hidden one", "automation", frozenset({"light.kitchen_ceiling"})),
    ),
)
STATES = [
    state(
        "light.kitchen_ceiling",
        "off",
        supported_color_modes=["brightness"],
        friendly_name="Kitchen ceiling",
    ),
    state(
        "light.kitchen_counter",
        "on",
        brightness=128,
        color_mode="brightness",
        supported_color_modes=["brightness"],
    ),
    state("light.living_room", "off"),
    state("switch.kettle", "off"),
    state("cover.living_room", "open", current_position=100),
    state("lock.front_door", "locked"),
    state(
        "climate.living_room",
        "heat",
        temperature=20,
        current_temperature=19.5,
        hvac_modes=["heat", "off"],
        fan_mode="auto",
        fan_modes=["auto", "low", "high"],
    ),
    state(
        "media_player.tv",
        "playing",
        volume_level=0.4,
        is_volume_muted=False,
        source="HDMI",
        source_list=["HDMI", "Radio"],
    ),
    state("fan.bedroom", "on", percentage=50),
    state("sensor.kitchen_temperature", "21.5", unit_of_measurement="°C", device_class="temperature"),
    state("automation.morning", "on"),
    state("scene.movie", "unknown"),
    state("light.secret", "off"),
]


def index(layout=LAYOUT, states=STATES):
    return HomeIndex(layout, states)


def house(**options):
    """Return the small home, simulated."""
    return SimulatedHome(LAYOUT, STATES, clock=FakeClock(), **options)


def without(entity_id, layout=LAYOUT):
    return replace(layout, entities=tuple(e for e in layout.entities if e.id != entity_id))


@asynccontextmanager
async def open_live_home(home) -> AsyncIterator[LiveHome]:
    """Open a live home without delays, and close it at the end."""
    known = LiveHome(home, settle_s=0, rest_s=0)
    await known.open()
    try:
        yield known
    finally:
        await known.close()
