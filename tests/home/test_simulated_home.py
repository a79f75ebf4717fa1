"""The simulated home keeps the promises of the port."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sash.demo.home_recorder import RecordedPast
from sash.errors import HomeUnavailable
from sash.ports.home import (
    Area,
    Connected,
    Disconnected,
    Entity,
    HistoryPoint,
    Home,
    LayoutChanged,
    LogbookEntry,
    LogRecord,
    StateChanged,
)
from sash.testing import FakeClock
from tests.home.one_room_home import house, listen
from tests.large_home import make_large_home


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
