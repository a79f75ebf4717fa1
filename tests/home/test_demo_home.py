"""The demo house is plausible, always the same, and has faults that can be found."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from sash.demo.demo_home import demo_home
from sash.ports.home import NO_STATE, UNAVAILABLE, StateChanged
from sash.testing import FakeClock

BROKEN = "automation.hallway_night_light"
GONE = {"light.hallway_mirror"}
TIMES = [datetime(2026, 11, 11, hour, 25, tzinfo=UTC) for hour in (0, 5, 9, 14, 18, 22, 23)]
DAY = timedelta(days=1)
SELECTORS = {
    "boolean": set(),
    "color_rgb": set(),
    "color_temp": {"unit", "min", "max"},
    "number": {"min", "max", "step", "mode", "unit_of_measurement"},
    "object": set(),
    "select": {"options", "multiple"},
    "state": {"attribute", "hide_states"},
    "text": set(),
}


@pytest.fixture(params=TIMES, ids=lambda at: f"{at:%H:%M}")
def clock(request):
    return FakeClock(request.param)


@pytest.fixture
async def home(clock):
    home = demo_home(clock)
    await home.open()
    yield home
    await home.close()


async def points(home, clock, entity_id, span=DAY):
    return (await home.get_history([entity_id], clock.now() - span, clock.now()))[entity_id]


async def test_it_has_rooms_floors_and_the_usual_things(home):
    layout = await home.get_layout()
    exposed = [entity for entity in layout.entities if entity.exposed]
    assert len(layout.areas) == 8
    assert 2 <= len(layout.floors) <= 3
    assert 36 <= len(exposed) <= 48
    assert 2 <= len(layout.entities) - len(exposed) <= 3
    assert {entity.domain for entity in exposed} >= {
        "light", "switch", "cover", "climate", "lock", "fan", "media_player", "vacuum", "sensor", "binary_sensor",
        "person", "weather", "alarm_control_panel", "scene", "script", "automation", "todo",
    }  # fmt: skip
    classes = {state.attributes.get("device_class") for state in await home.get_states()}
    assert classes >= {"temperature", "humidity", "power", "voltage", "battery", "illuminance"}
    assert classes >= {"door", "window", "motion", "moisture", "occupancy"}


async def test_every_reference_in_the_layout_exists(home):
    layout = await home.get_layout()
    entities, devices = {e.id for e in layout.entities}, {d.id for d in layout.devices}
    areas, floors = {a.id for a in layout.areas}, {f.id for f in layout.floors}
    assert [state.entity_id for state in await home.get_states()] == [e.id for e in layout.entities]
    assert all(e.area_id in areas | {None} and e.device_id in devices | {None} for e in layout.entities)
    assert all(set(e.labels) <= set(layout.labels) for e in layout.entities)
    assert all(d.area_id in areas and d.via_id in devices | {None} for d in layout.devices)
    assert all(a.floor_id in floors for a in layout.areas)
    assert {d.kind for d in layout.dependents} == {"automation", "script", "scene", "group", "template"}
    for dependent in layout.dependents:
        assert dependent.entity_id in entities
        assert dependent.uses - entities == (GONE if dependent.entity_id == BROKEN else set())


async def test_every_service_has_an_entity_and_well_formed_selectors(home):
    domains = {entity.domain for entity in (await home.get_layout()).entities}
    for name, service in (await home.get_services()).items():
        assert service.name == name
        assert service.description
        if service.domain not in ("homeassistant", "notify"):
            assert service.domain in domains
            assert service.target == {"entity": [{"domain": [service.domain]}]}
        for field in service.fields.values():
            ((kind, options),) = field.selector.items()
            assert field.description
            assert set(options) <= SELECTORS[kind]
            if kind in ("number", "color_temp"):
                assert options["min"] < options["max"]


async def test_what_scenes_scripts_and_automations_do_works_unless_it_is_meant_not_to(home):
    for service, entity_id in (
        ("scene.turn_on", "scene.movie_night"),
        ("script.turn_on", "script.good_night"),
        ("automation.trigger", "automation.evening_lights"),
        ("automation.trigger", "automation.leak_alert"),
    ):
        before = len(await home.get_log())
        await home.call_service(service, {}, [entity_id])
        assert len(await home.get_log()) == before
    assert home.notifications
    assert (await home.get_state("light.outdoor")).state == "on"
    assert (await home.get_state("cover.living_room_blind")).state == "closed"


async def test_two_houses_with_the_same_clock_are_equal(home, clock):
    other = demo_home(clock)
    await other.open()
    now = clock.now()
    everything = [entity.id for entity in (await home.get_layout()).entities]
    assert await home.get_layout() == await other.get_layout()
    assert await home.get_states() == await other.get_states()
    assert await home.get_log() == await other.get_log()
    assert await home.get_logbook(now - DAY, now) == await other.get_logbook(now - DAY, now)
    assert await home.get_history(everything, now - 7 * DAY, now) == await other.get_history(
        everything, now - 7 * DAY, now
    )
    await other.close()


async def test_the_faults_stay_where_they_are_when_the_house_begins_anew_a_little_later():
    earlier, later = (demo_home(FakeClock(datetime(2026, 11, 11, hour, tzinfo=UTC))) for hour in (7, 11))
    for home in (earlier, later):
        await home.open()
    leak = [await home.get_state("binary_sensor.bathroom_leak") for home in (earlier, later)]
    assert leak[0] == leak[1]


async def test_states_are_those_at_the_end_of_the_history(home, clock):
    for state in await home.get_states():
        last = (await points(home, clock, state.entity_id, 7 * DAY))[-1]
        assert last.state == state.state, state.entity_id
        assert state.changed_at <= clock.now()


async def test_history_is_in_order_and_begins_at_its_start(home, clock):
    start = clock.now() - 7 * DAY
    everything = [entity.id for entity in (await home.get_layout()).entities]
    for entity_id, told in (await home.get_history(everything, start, clock.now())).items():
        times = [point.at for point in told]
        assert times[0] == start, entity_id
        assert times == sorted(set(times)), entity_id
        assert all(one.state != next.state for one, next in pairwise(told)), entity_id


async def test_a_span_tells_the_same_as_a_part_of_a_longer_one(home, clock):
    now = clock.now()
    start, end = now - timedelta(hours=30), now - timedelta(hours=3)
    for entity_id in ("light.bedroom_ceiling", "sensor.house_power", "binary_sensor.hallway_motion"):
        long = (await home.get_history([entity_id], now - 7 * DAY, now))[entity_id]
        short = (await home.get_history([entity_id], start, end))[entity_id]
        assert short[1:] == [point for point in long if start < point.at <= end]


async def test_a_day_has_its_rhythm(home, clock):
    lit = await points(home, clock, "light.living_room_ceiling")
    assert {"on", "off"} <= {point.state for point in lit}
    turned_on = [after.at for before, after in pairwise(lit) if (before.state, after.state) == ("off", "on")]
    assert all(18 <= at.hour <= 19 for at in turned_on)
    degrees = [
        float(p.state)
        for p in await points(home, clock, "sensor.outdoor_temperature")
        if p.state not in NO_STATE
    ]
    assert 3 < max(degrees) - min(degrees) < 15
    assert all(-5 < value < 25 for value in degrees)
    assert len(await points(home, clock, "binary_sensor.hallway_motion")) > 20
    watts = [float(p.state) for p in await points(home, clock, "sensor.house_power")]
    assert min(watts) > 100
    assert max(watts) > 1500


async def test_what_follows_from_others_agrees_with_them(home, clock):
    state = {state.entity_id: state for state in await home.get_states()}
    room, bedroom = (float(state[f"sensor.{name}_temperature"].state) for name in ("living_room", "bedroom"))
    assert state["climate.living_room"].attributes["current_temperature"] == room
    assert float(state["sensor.average_indoor_temperature"].state) == pytest.approx(
        (room + bedroom) / 2, abs=0.06
    )
    assert state["light.outdoor"].state == state["light.terrace"].state
    clock.advance(12 * 3600)
    outdoor = float((await home.get_state("sensor.outdoor_temperature")).state)
    assert (await home.get_state("weather.home")).attributes["temperature"] == outdoor


async def test_the_house_goes_on_as_the_clock_moves(home, clock):
    heard, start = [], clock.now()
    home.subscribe(heard.append)
    clock.advance(DAY.total_seconds())
    told = await home.get_history(["light.terrace"], start, clock.now())
    states = [e.state.state for e in heard if isinstance(e, StateChanged) and e.entity_id == "light.terrace"]
    assert [point.state for point in told["light.terrace"]][1:] == states
    assert {"on", "off"} == set(states)


async def test_a_call_counts_more_than_the_rhythm(home, clock):
    start = clock.now()
    await home.call_service("light.turn_on", {"brightness_pct": 30}, ["light.terrace"])
    clock.advance(DAY.total_seconds())
    assert (await home.get_state("light.terrace")).state == "on"
    assert (await points(home, clock, "light.terrace"))[-1].state == "on"
    entries = await home.get_logbook(start - DAY, clock.now(), ["light.terrace"])
    assert {"action light.turn_on", "automation Evening lights"} & {entry.cause for entry in entries}


async def test_the_leak_sensor_is_lost_after_its_battery_fell(home, clock):
    leak = await home.get_state("binary_sensor.bathroom_leak")
    assert leak.state == UNAVAILABLE
    assert timedelta(hours=3) <= clock.now() - leak.changed_at <= timedelta(hours=10)
    battery = await points(home, clock, "sensor.bathroom_leak_battery", 7 * DAY)
    assert (battery[-1].at, battery[-1].state) == (leak.changed_at, UNAVAILABLE)
    levels = [int(point.state) for point in battery if point.state != UNAVAILABLE]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > 30
    assert levels[-1] == 3
    lines = [record for record in await home.get_log() if "binary_sensor.bathroom_leak" in record.message]
    assert {record.source for record in lines} == {"homeassistant.components.zha"}
    assert all(record.count > 1 for record in lines)


async def test_the_bedroom_light_flickers_whenever_the_voltage_dips(home, clock):
    volts = await points(home, clock, "sensor.bedroom_voltage")
    light = await points(home, clock, "light.bedroom_ceiling")
    dips = [point.at for point in volts if float(point.state) < 200]
    lost = [after.at for before, after in pairwise(light) if before.state == "on" != after.state]
    flickers = [at for at in lost if any(timedelta(0) < at - dip < timedelta(seconds=6) for dip in dips)]
    assert len(dips) == 7
    assert all(float(p.state) >= 190 for p in volts)
    assert len(flickers) >= 14
    assert len(lost) - len(flickers) <= 2
    lines = [record for record in await home.get_log() if "light.bedroom_ceiling" in record.message]
    assert lines[0].level == "warning"
    assert lines[0].count >= 7


async def test_the_night_light_fails_each_time_it_is_triggered(home, clock):
    def failures(log):
        return [r for r in log if r.source == f"homeassistant.components.{BROKEN}" and r.level == "error"]

    before = failures(await home.get_log())
    assert len(before) == 2
    assert all(
        record.count > 10 and "notify.mobile_app_pixel_6 not found" in record.message for record in before
    )
    assert (await home.get_state(BROKEN)).attributes["last_triggered"] == before[0].at.isoformat()
    entries = await home.get_logbook(clock.now() - DAY, clock.now(), [BROKEN])
    assert entries[-1].at == before[0].at
    assert "notify.mobile_app_pixel_6" not in await home.get_services()

    clock.advance(DAY.total_seconds())
    later = failures(await home.get_log())
    assert later[0].count > before[0].count
    assert (await home.get_state(BROKEN)).attributes["last_triggered"] == later[0].at.isoformat()
    clock.advance(60)
    await home.call_service("automation.trigger", {}, [BROKEN])
    again = failures(await home.get_log())
    assert [r.count for r in again] == [r.count + 1 for r in later]
    assert (await home.get_state(BROKEN)).attributes["last_triggered"] == clock.now().isoformat()


async def test_the_bridge_took_everything_behind_it_along_for_a_minute(home, clock):
    layout, start = await home.get_layout(), clock.now() - DAY
    bridge = await points(home, clock, "binary_sensor.zigbee_bridge")
    assert [point.state for point in bridge] == ["on", "off", "on"]
    out_at, back_at = bridge[1].at, bridge[2].at
    assert timedelta(seconds=50) < back_at - out_at < timedelta(seconds=90)
    behind = {device.id for device in layout.devices if device.via_id == "zigbee_bridge"}
    entities = [entity.id for entity in layout.entities if entity.device_id in behind]
    assert len(entities) > 10
    for entity_id, told in (await home.get_history(entities, start, clock.now())).items():
        lost = next(n for n, point in enumerate(told) if point.state == UNAVAILABLE)
        assert timedelta(0) < told[lost].at - out_at < timedelta(seconds=10), entity_id
        assert timedelta(0) < told[lost + 1].at - back_at < timedelta(seconds=30), entity_id
        assert told[lost + 1].state != UNAVAILABLE
    words = Counter(e.message for e in await home.get_logbook(start, clock.now()))
    assert words["became unavailable"] >= 10
    assert any("lost connection" in record.message for record in await home.get_log())


async def test_evenings_are_where_the_house_stands():
    clock = FakeClock(datetime(2026, 11, 11, 12, tzinfo=UTC))
    home = demo_home(clock, ZoneInfo("America/New_York"))
    await home.open()
    lit = await points(home, clock, "light.terrace")
    (at,) = [point.at for point in lit[1:] if point.state == "on" and point.at.hour != lit[0].at.hour][:1]
    assert at.astimezone(ZoneInfo("America/New_York")).hour in (17, 18)
