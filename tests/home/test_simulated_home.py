"""The simulated home keeps the promises of the port, and its services work as in Home Assistant."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.demo.home_recorder import DerivedState, RecordedPast
from sash.demo.simulated_home import SimulatedCall, SimulatedHome
from sash.errors import HomeUnavailable, ServiceFailed
from sash.ports.home import (
    Area,
    Connected,
    Dependent,
    Disconnected,
    Entity,
    HistoryPoint,
    Home,
    Layout,
    LayoutChanged,
    LogbookEntry,
    LogRecord,
    State,
    StateChanged,
)
from sash.testing import FakeClock
from tests.large_home import make_large_home

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


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def home(clock):
    home = house(clock)
    await home.open()
    yield home
    await home.close()


def listen(home):
    heard = []
    home.subscribe(heard.append)
    return heard


async def test_it_is_a_home_that_says_its_name(home):
    port: Home = home
    assert port.name == "the simulated house"
    assert (await port.get_layout()).name == "Test house"


async def test_nothing_can_be_asked_before_it_is_open():
    home, now = house(), FakeClock().now()
    heard = listen(home)
    for ask in (
        home.get_layout,
        home.get_states,
        home.get_services,
        home.get_log,
        lambda: home.get_state("light.desk"),
        lambda: home.call_service("light.turn_off", {}, ["light.desk"]),
        lambda: home.get_history(["light.desk"], now, now),
        lambda: home.get_logbook(now, now),
    ):
        with pytest.raises(HomeUnavailable):
            await ask()
    assert heard == []
    await home.open()
    assert heard == [Connected()]
    await home.close()
    assert len(heard) == 2
    assert isinstance(heard[1], Disconnected)


async def test_a_late_listener_is_told_at_once_that_the_house_can_be_asked(home):
    assert listen(home) == [Connected()]
    home.disconnect("the cable is out")
    assert listen(home) == []


async def test_a_listener_that_left_hears_nothing(home):
    heard = []
    leave = home.subscribe(heard.append)
    leave()
    leave()
    home.set_state("switch.pump", "on")
    assert heard == [Connected()]


async def test_a_lost_connection_is_told_with_its_reason_and_heals(home):
    heard = listen(home)
    home.disconnect("the cable is out")
    with pytest.raises(HomeUnavailable, match="the cable is out"):
        await home.get_states()
    home.set_state("switch.pump", "on")
    home.connect()
    assert heard == [Connected(), Disconnected("the cable is out"), Connected()]
    assert (await home.get_state("switch.pump")).state == "on"


async def test_a_house_out_of_reach_can_be_opened_and_connects_later():
    home = house()
    heard = listen(home)
    home.disconnect("no network")
    await home.open()
    assert heard == []
    home.connect()
    assert heard == [Connected()]


async def test_listeners_hear_changes_in_their_order(home):
    heard = listen(home)
    await home.call_service("scene.turn_on", {}, ["scene.dark"])
    changed = [event.entity_id for event in heard[1:]]
    assert changed == ["scene.dark", "light.desk", "light.both", "cover.blind"]


CALLS = [
    ("light.turn_on", {"brightness": 30}, "light.desk", "on", {"brightness": 30}),
    ("light.turn_on", {"brightness_pct": 50}, "light.desk", "on", {"brightness": 127}),
    ("light.turn_on", {"brightness_pct": 0}, "light.desk", "off", {"brightness": None}),
    ("light.turn_on", {"brightness_step_pct": 20}, "light.desk", "on", {"brightness": 151}),
    ("light.turn_on", {"brightness_step": -10}, "light.desk", "on", {"brightness": 90}),
    (
        "light.turn_on",
        {"color_temp_kelvin": 4000},
        "light.desk",
        "on",
        {"color_temp_kelvin": 4000, "color_mode": "color_temp"},
    ),
    (
        "light.turn_on",
        {"rgb_color": [255, 0, 0]},
        "light.desk",
        "on",
        {"rgb_color": [255, 0, 0], "hs_color": [0.0, 100.0]},
    ),
    (
        "light.turn_on",
        {"color_name": "blue"},
        "light.desk",
        "on",
        {"rgb_color": [0, 0, 255], "color_temp_kelvin": None},
    ),
    ("light.turn_on", {"hs_color": [120, 100]}, "light.desk", "on", {"rgb_color": [0, 255, 0]}),
    ("light.turn_on", {"brightness": 30}, "light.shelf", "on", {"brightness": ...}),
    ("light.turn_off", {}, "light.desk", "off", {"brightness": None, "color_temp_kelvin": None}),
    ("light.toggle", {}, "light.desk", "off", {}),
    ("homeassistant.toggle", {}, "light.shelf", "on", {}),
    ("homeassistant.turn_on", {}, "switch.pump", "on", {}),
    ("homeassistant.turn_off", {}, "climate.room", "off", {"hvac_action": "off"}),
    ("switch.turn_on", {}, "switch.pump", "on", {}),
    ("input_boolean.toggle", {}, "input_boolean.guests", "on", {}),
    ("fan.turn_on", {}, "fan.ceiling", "on", {"percentage": 40}),
    ("fan.set_percentage", {"percentage": 70}, "fan.ceiling", "on", {"percentage": 70}),
    ("fan.set_percentage", {"percentage": 0}, "fan.ceiling", "off", {"percentage": 0}),
    ("fan.oscillate", {"oscillating": True}, "fan.ceiling", "off", {"oscillating": True}),
    ("cover.close_cover", {}, "cover.blind", "closed", {"current_position": 0}),
    ("cover.set_cover_position", {"position": 35}, "cover.blind", "open", {"current_position": 35}),
    ("cover.set_cover_position", {"position": 0}, "cover.blind", "closed", {"current_position": 0}),
    ("cover.open_cover", {}, "cover.gate", "open", {"current_position": ...}),
    ("cover.toggle", {}, "cover.gate", "open", {}),
    ("lock.unlock", {}, "lock.door", "unlocked", {}),
    (
        "climate.set_temperature",
        {"temperature": 18},
        "climate.room",
        "heat",
        {"temperature": 18, "hvac_action": "idle"},
    ),
    (
        "climate.set_temperature",
        {"temperature": 22, "hvac_mode": "off"},
        "climate.room",
        "off",
        {"temperature": 22},
    ),
    ("climate.set_hvac_mode", {"hvac_mode": "off"}, "climate.room", "off", {"hvac_action": "off"}),
    ("climate.set_fan_mode", {"fan_mode": "high"}, "climate.room", "heat", {"fan_mode": "high"}),
    ("media_player.media_pause", {}, "media_player.tv", "paused", {}),
    ("media_player.media_stop", {}, "media_player.tv", "idle", {}),
    ("media_player.turn_off", {}, "media_player.tv", "off", {"volume_level": ...}),
    ("media_player.media_next_track", {}, "media_player.tv", "playing", {"media_track": 4}),
    ("media_player.media_previous_track", {}, "media_player.tv", "playing", {"media_track": 2}),
    ("media_player.volume_set", {"volume_level": 0.2}, "media_player.tv", "playing", {"volume_level": 0.2}),
    ("media_player.volume_up", {}, "media_player.tv", "playing", {"volume_level": 0.6}),
    ("media_player.volume_down", {}, "media_player.tv", "playing", {"volume_level": 0.4}),
    (
        "media_player.volume_mute",
        {"is_volume_muted": True},
        "media_player.tv",
        "playing",
        {"is_volume_muted": True},
    ),
    ("media_player.select_source", {"source": "Radio"}, "media_player.tv", "playing", {"source": "Radio"}),
    ("vacuum.start", {}, "vacuum.robot", "cleaning", {}),
    ("vacuum.pause", {}, "vacuum.robot", "paused", {}),
    ("alarm_control_panel.alarm_arm_away", {}, "alarm_control_panel.house", "armed_away", {}),
    ("automation.turn_off", {}, "automation.broken", "off", {}),
    ("todo.add_item", {"item": "Eggs"}, "todo.list", "2", {}),
    ("todo.remove_item", {"item": "Milk"}, "todo.list", "0", {}),
    ("todo.update_item", {"item": "Milk", "status": "completed"}, "todo.list", "0", {}),
    ("todo.update_item", {"item": "Milk", "rename": "Oat milk"}, "todo.list", "1", {}),
]


@pytest.mark.parametrize(("service", "data", "entity_id", "state", "attributes"), CALLS)
async def test_a_service_changes_the_state_as_home_assistant_does(
    home, clock, service, data, entity_id, state, attributes
):
    clock.advance(60)
    await home.call_service(service, data, [entity_id])
    now = await home.get_state(entity_id)
    assert now.state == state
    assert {key: now.attributes.get(key, ...) for key in attributes} == attributes
    before = THINGS[entity_id][0]
    assert now.changed_at == (clock.now() if state != before else clock.now() - timedelta(seconds=7260))


REFUSED = [
    ("light.explode", {}, ["light.desk"], "Action light.explode not found."),
    ("light.turn_off", {}, [], "must contain at least one of entity_id"),
    (
        "light.turn_off",
        {},
        ["light.gone"],
        "Referenced entities light.gone are missing or not currently available",
    ),
    ("light.turn_off", {}, ["light.lost"], "light.lost are missing or not currently available"),
    ("light.turn_off", {}, ["switch.pump"], "switch.pump are missing or not currently available"),
    ("light.turn_on", {"brightness_pct": 140}, ["light.desk"], "must be at most 100 .*Got 140"),
    ("light.turn_on", {"brightness_pct": "half"}, ["light.desk"], "must be a number"),
    ("light.turn_on", {"color_name": "mud"}, ["light.desk"], "must be one of"),
    ("light.turn_on", {"rgb_color": [300, 0, 0]}, ["light.desk"], "three numbers"),
    ("light.turn_on", {"warmth": 1}, ["light.desk"], r"extra keys not allowed @ data\['warmth'\]"),
    ("fan.set_percentage", {}, ["fan.ceiling"], r"required key not provided @ data\['percentage'\]"),
    ("fan.oscillate", {"oscillating": "yes"}, ["fan.ceiling"], "must be true or false"),
    (
        "cover.set_cover_position",
        {"position": 5},
        ["cover.blind", "cover.gate"],
        "cover.gate does not support action",
    ),
    ("homeassistant.turn_on", {}, ["switch.pump", "lock.door"], "does not support entities lock.door"),
    (
        "climate.set_temperature",
        {"temperature": 40},
        ["climate.room"],
        "temperature 40 is not valid. Accepted range is 5 to 25",
    ),
    (
        "climate.set_temperature",
        {"hvac_mode": "heat"},
        ["climate.room"],
        "must contain at least one of temperature",
    ),
    (
        "climate.set_hvac_mode",
        {"hvac_mode": "cool"},
        ["climate.room"],
        "HVAC mode cool is not valid. Valid HVAC modes are: off, heat.",
    ),
    (
        "climate.set_fan_mode",
        {"fan_mode": "storm"},
        ["climate.room"],
        "Fan mode storm is not valid. Valid fan modes are: low, high.",
    ),
    ("media_player.select_source", {"source": "CD"}, ["media_player.tv"], "Source CD is not valid"),
    ("todo.remove_item", {"item": "Gold"}, ["todo.list"], "Unable to find to-do list item: Gold"),
    ("notify.notify", {}, [], "required key not provided"),
]


@pytest.mark.parametrize(("service", "data", "entity_ids", "words"), REFUSED)
async def test_a_refused_call_says_why_and_changes_nothing(home, clock, service, data, entity_ids, words):
    before, start = await home.get_states(), clock.now() - timedelta(hours=1)
    clock.advance(5)
    heard = listen(home)
    with pytest.raises(ServiceFailed, match=words):
        await home.call_service(service, data, entity_ids)
    assert await home.get_states() == before
    assert heard == [Connected()]
    assert await home.get_logbook(start, clock.now()) == []


async def test_those_that_can_be_reached_are_called_and_the_others_are_in_the_log(home):
    await home.call_service("light.turn_off", {}, ["light.desk", "light.lost"])
    assert (await home.get_state("light.desk")).state == "off"
    (record,) = await home.get_log()
    assert "light.lost are missing" in record.message


async def test_entities_may_be_named_in_the_data(home):
    await home.call_service("light.turn_off", {"entity_id": "light.desk"})
    assert (await home.get_state("light.desk")).state == "off"
    assert home.calls == [SimulatedCall("light.turn_off", {}, ("light.desk",))]


async def test_a_light_comes_back_as_it_was(home):
    await home.call_service("light.turn_on", {"brightness": 40}, ["light.desk"])
    await home.call_service("light.turn_off", {}, ["light.desk"])
    await home.call_service("light.turn_on", {}, ["light.desk"])
    assert (await home.get_state("light.desk")).attributes["brightness"] == 40


async def test_a_group_stands_for_its_members_and_follows_them(home, clock):
    start = clock.now()
    clock.advance(60)
    await home.call_service("light.turn_off", {}, ["light.both"])
    assert [(await home.get_state(id)).state for id in ("light.desk", "light.shelf", "light.both")] == [
        "off"
    ] * 3
    history = await home.get_history(["light.both"], start, clock.now())
    assert history == {"light.both": [HistoryPoint(start, "on"), HistoryPoint(clock.now(), "off")]}


async def test_a_script_runs_and_says_when(home, clock):
    await home.call_service("script.turn_on", {}, ["script.wake"])
    assert (await home.get_state("light.desk")).attributes["brightness"] == 26
    script = await home.get_state("script.wake")
    assert (script.state, script.attributes["last_triggered"]) == ("off", clock.now().isoformat())


async def test_an_automation_that_fails_does_so_in_the_log_each_time(home, clock):
    for _ in range(3):
        clock.advance(60)
        await home.call_service("automation.trigger", {}, ["automation.broken"])
    assert (await home.get_state("switch.pump")).state == "on"
    script, automation = await home.get_log()
    assert "Service not found for call_service at pos 2" in script.message
    assert (
        automation.message
        == "Error while executing automation automation.broken: Action notify.old_phone not found."
    )
    assert automation.source == "homeassistant.components.automation.broken"
    assert (automation.level, automation.count) == ("error", 3)
    assert automation.at - automation.first_at == timedelta(seconds=120)


async def test_a_scene_and_a_button_remember_when_they_were_used(home, clock):
    await home.call_service("scene.turn_on", {}, ["scene.dark"])
    await home.call_service("button.press", {}, ["button.bell"])
    for entity_id in ("scene.dark", "button.bell"):
        assert (await home.get_state(entity_id)).state == clock.now().isoformat()
    assert (await home.get_state("cover.blind")).state == "closed"


async def test_a_notification_is_kept(home):
    await home.call_service("notify.notify", {"message": "Dinner"})
    assert home.notifications == [{"message": "Dinner"}]


async def test_a_restart_is_a_short_loss_of_connection(home):
    heard = listen(home)
    await home.call_service("homeassistant.restart", {})
    assert heard == [Connected(), Disconnected("Home Assistant is restarting"), Connected()]


async def test_changes_are_in_the_history_and_in_the_logbook(home, clock):
    start = clock.now()
    for service in ("lock.unlock", "lock.lock"):
        clock.advance(60)
        await home.call_service(service, {}, ["lock.door"])
    at = [start + timedelta(seconds=seconds) for seconds in (60, 120)]
    history = await home.get_history(["lock.door", "lock.gone"], start, clock.now())
    assert history == {
        "lock.door": [
            HistoryPoint(start, "locked"),
            HistoryPoint(at[0], "unlocked"),
            HistoryPoint(at[1], "locked"),
        ]
    }
    assert await home.get_logbook(start, clock.now(), ["lock.door"]) == [
        LogbookEntry(at[0], "lock.door", "was unlocked", "lock.door", "action lock.unlock"),
        LogbookEntry(at[1], "lock.door", "was locked", "lock.door", "action lock.lock"),
    ]
    assert len(await home.get_logbook(start, clock.now())) == 2
    assert (await home.get_history(["lock.door"], at[0], at[0]))["lock.door"] == [
        HistoryPoint(at[0], "unlocked")
    ]


async def test_the_future_is_not_told(home, clock):
    history = await home.get_history(["lock.door"], clock.now(), clock.now() + timedelta(days=1))
    assert history == {"lock.door": [HistoryPoint(clock.now(), "locked")]}


async def test_stored_history_logbook_and_log_are_told(clock):
    now = clock.now()
    points = [
        HistoryPoint(now - timedelta(hours=hours), state)
        for hours, state in ((9, "off"), (6, "on"), (5, "off"))
    ]
    entry = LogbookEntry(now - timedelta(hours=3), "Bell", "rang")
    record = LogRecord(now, now, "warning", "bell", "It is loud")
    home = house(clock, past=RecordedPast({"switch.pump": points}, [entry], [record]))
    await home.open()
    start = now - timedelta(hours=8)
    assert (await home.get_history(["switch.pump"], start, now))["switch.pump"] == [
        HistoryPoint(start, "off"),
        *points[1:],
    ]
    messages = [(entry.name, entry.message) for entry in await home.get_logbook(start, now)]
    assert messages[:3] == [("switch.pump", "turned on"), ("switch.pump", "turned off"), ("Bell", "rang")]
    assert await home.get_log() == [record]


async def test_a_house_that_lives_changes_as_the_clock_moves_until_it_is_touched(clock):
    began = clock.now()

    def history(entity_id, start, end):
        """Switch the pump every minute."""
        if entity_id != "switch.pump":
            return []
        first, last = (int((at - began).total_seconds() // 60) for at in (start, end))
        minutes = [
            HistoryPoint(began + timedelta(minutes=m), "on" if m % 2 else "off")
            for m in range(first + 1, last + 1)
        ]
        return [HistoryPoint(start, "on" if first % 2 else "off"), *minutes]

    home = house(clock, past=RecordedPast(history))
    await home.open()
    heard = listen(home)
    clock.advance(150)
    assert (await home.get_state("switch.pump")).changed_at == began + timedelta(minutes=2)
    assert [event.state.state for event in heard if isinstance(event, StateChanged)] == ["on", "off"]
    await home.call_service("switch.turn_on", {}, ["switch.pump"])
    clock.advance(600)
    told = await home.get_history(["switch.pump"], began, clock.now())
    assert [point.state for point in told["switch.pump"]] == ["off", "on", "off", "on"]
    await home.close()


async def test_a_state_can_be_set_and_a_new_entity_is_in_the_layout(home):
    heard = listen(home)
    home.set_state("light.desk", "off", brightness=5)
    home.set_state("sensor.new", "7", friendly_name="New")
    assert [type(event) for event in heard[1:]] == [StateChanged, StateChanged, LayoutChanged, StateChanged]
    assert (await home.get_layout()).entities[-1] == Entity("sensor.new", "New")
    assert (await home.get_state("sensor.new")).state == "7"


async def test_an_entity_can_be_removed(home):
    heard = listen(home)
    home.remove("switch.pump")
    assert heard[1:] == [StateChanged("switch.pump", None), LayoutChanged()]
    assert await home.get_state("switch.pump") is None
    assert "switch.pump" not in {entity.id for entity in (await home.get_layout()).entities}


async def test_a_changed_layout_is_told(home):
    heard = listen(home)
    layout = replace(await home.get_layout(), areas=(Area("room", "Study"),))
    home.change_layout(layout)
    assert heard[1:] == [LayoutChanged()]
    assert (await home.get_layout()).areas[0].name == "Study"


async def test_an_unavailable_entity_hides_what_it_measures(home):
    home.set_state("climate.room", "unavailable")
    attributes = (await home.get_state("climate.room")).attributes
    assert attributes["hvac_modes"] == ["off", "heat"]
    assert "current_temperature" not in attributes
    home.set_state("climate.room", "heat")
    assert (await home.get_state("climate.room")).attributes["current_temperature"] == 19


async def test_a_call_can_be_made_to_fail_or_to_do_nothing_once(home):
    home.fail_next("lock.unlock", ServiceFailed("The motor is blocked."))
    home.ignore_next("lock.unlock")
    with pytest.raises(ServiceFailed, match="blocked"):
        await home.call_service("lock.unlock", {}, ["lock.door"])
    await home.call_service("lock.unlock", {}, ["lock.door"])
    assert (await home.get_state("lock.door")).state == "locked"
    await home.call_service("lock.unlock", {}, ["lock.door"])
    assert (await home.get_state("lock.door")).state == "unlocked"
    assert len(home.calls) == 3


async def test_a_house_can_be_large_and_is_always_the_same(clock):
    home, other = make_large_home(1000, clock), make_large_home(1000, clock)
    await home.open()
    await other.open()
    layout = await home.get_layout()
    assert layout == await other.get_layout()
    assert await home.get_states() == await other.get_states()
    assert len({entity.id for entity in layout.entities}) == 1000
    assert len(layout.areas) == 84
    assert all(entity.exposed for entity in layout.entities)
    await home.call_service("light.turn_on", {}, ["light.kitchen_1_ceiling_light"])
    assert (await home.get_state("light.kitchen_1_ceiling_light")).state == "on"
