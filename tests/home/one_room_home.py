"""A simulated home with one room and an entity of every kind."""

from datetime import timedelta

from sash.demo.home_recorder import DerivedState
from sash.demo.simulated_home import SimulatedCall, SimulatedHome
from sash.ports.home import Area, Dependent, Entity, Layout, State
from sash.testing import FakeClock

LIGHT = {"supported_color_modes": ["color_temp", "hs"], "brightness": 100, "color_temp_kelvin": 2700}
HEATING = {
    "hvac_modes": ["off", "heat"],
    "fan_modes": ["low", "high"],
    "min_temp": 5,
    "max_temp": 25,
    "temperature": 20,
    "current_temperature": 19,
    "hvac_action": "heating",
}
PLAYER = {"volume_level": 0.5, "source_list": ["TV", "Radio"], "media_track": 3}
THINGS = {
    "light.desk": ("on", LIGHT),
    "light.shelf": ("off", {"supported_color_modes": ["onoff"]}),
    "light.both": ("on", {}),
    "switch.pump": ("off", {}),
    "input_boolean.guests": ("off", {}),
    "fan.ceiling": ("off", {"percentage": 40, "oscillating": False}),
    "cover.blind": ("open", {"current_position": 100}),
    "cover.gate": ("closed", {}),
    "lock.door": ("locked", {}),
    "climate.room": ("heat", HEATING),
    "media_player.tv": ("playing", PLAYER),
    "vacuum.robot": ("docked", {}),
    "alarm_control_panel.house": ("disarmed", {}),
    "button.bell": ("unknown", {}),
    "scene.dark": ("unknown", {}),
    "script.wake": ("off", {}),
    "automation.broken": ("on", {}),
    "todo.list": ("1", {}),
    "sensor.lost": ("unavailable", {"unit_of_measurement": "V"}),
    "light.lost": ("unavailable", LIGHT),
}
ACTIONS = {
    "scene.dark": [
        SimulatedCall("light.turn_off", {}, ("light.desk",)),
        SimulatedCall("cover.close_cover", {}, ("cover.blind",)),
    ],
    "script.wake": [SimulatedCall("light.turn_on", {"brightness_pct": 10}, ("light.desk",))],
    "automation.broken": [
        SimulatedCall("switch.turn_on", {}, ("switch.pump",)),
        SimulatedCall("notify.old_phone", {"message": "hi"}),
    ],
}


def house(clock=None, **more):
    clock = clock or FakeClock()
    since = clock.now() - timedelta(hours=2)
    layout = Layout(
        "Test house",
        tuple(Entity(entity_id, entity_id, "room") for entity_id in THINGS),
        areas=(Area("room", "Room"),),
        dependents=(Dependent("light.both", "Both", "group", frozenset({"light.desk", "light.shelf"})),),
    )
    states = [
        State(entity_id, state, {"friendly_name": entity_id, **attributes}, since, since)
        for entity_id, (state, attributes) in THINGS.items()
    ]
    group = DerivedState(
        "light.both", ("light.desk", "light.shelf"), lambda states, _: "on" if "on" in states else "off"
    )
    given = {"derived": [group], "actions": ACTIONS, "items": {"todo.list": ["Milk"]}, **more}
    return SimulatedHome(layout, states, clock=clock, **given)


def listen(home):
    """Return a list that collects the events of a home."""
    heard = []
    home.subscribe(heard.append)
    return heard
