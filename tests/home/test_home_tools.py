"""The tools of the house, called directly, on the demo house with its faults."""

import asyncio
import json
from datetime import UTC, datetime
from io import BytesIO

import pytest
from PIL import Image

from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.errors import EntityNotFound, HomeUnavailable, InvalidInput, ToolNotFound
from sash.ports.home import LogbookEntry
from sash.ports.tools import MAX_RESULT_BYTES
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from tests.home.small_home import WAIT_S


class Demo:
    """The demo home, the clock it follows, and a runtime that is connected to it."""

    def __init__(self, runtime, home, clock):
        self.runtime, self.home, self.clock = runtime, home, clock
        self.call_tool = runtime.call_tool


@pytest.fixture
async def demo():
    clock = FakeClock(datetime(2026, 1, 15, 14, 0, tzinfo=UTC))
    home = demo_home(clock)
    async with Runtime(MemoryStore(), home=home, clock=clock, time_zone=UTC) as runtime:
        async with asyncio.timeout(WAIT_S):
            await runtime.home_ready()
        yield Demo(runtime, home, clock)


async def test_search_finds_by_words_area_and_domain(demo):
    found = await demo.call_tool("search_index", {"query": "kichen ligt", "limit": 3})
    assert found["entities"][0] == {
        "entity_id": "light.kitchen_ceiling",
        "name": "Kitchen ceiling light",
        "area": "Kitchen",
        "state": "off",
    }
    assert (len(found["entities"]), found["total"] > 3) == (3, True)
    bedroom = await demo.call_tool("search_index", {"area": "Bedroom", "domain": "cover"})
    assert [e["entity_id"] for e in bedroom["entities"]] == ["cover.bedroom_blind"]


async def test_search_without_words_shows_the_areas(demo):
    areas = (await demo.call_tool("search_index"))["areas"]
    assert len(areas) == 8
    assert {"area": "Garage", "floor": "Ground floor", "sensor": 2, "cover": 1} in areas


async def test_states_come_with_what_matters_of_their_attributes(demo):
    result = await demo.call_tool("get_states", {"entity_ids": ["Living room thermostat", "light.nowhere"]})
    [thermostat] = result["entities"]
    assert thermostat["attributes"]["temperature"] == 21.5
    assert "friendly_name" not in thermostat["attributes"]
    assert "there is no entity 'light.nowhere'" in result["not_found"][0]


async def test_history_is_told_in_a_few_numbers(demo):
    entity_ids = ["sensor.living_room_temperature", "light.hallway"]
    result = await demo.call_tool("get_history", {"entity_ids": entity_ids, "hours": 24})
    temperature, light = result["entities"]
    assert temperature["unit"] == "°C"
    assert temperature["min"] < temperature["mean"] < temperature["max"]
    assert len(temperature["points"]) <= 24
    assert set(light["lasted"]) >= {"on", "off"}
    assert light["changes"] == len(light["last_changes"])


async def test_history_can_be_drawn(demo):
    session = await demo.runtime.start_session()
    arguments = {"entity_ids": ["sensor.outdoor_temperature", "light.hallway"], "plot": True}
    result = await demo.call_tool("get_history", arguments, session_id=session.id)
    artifact = await demo.runtime.store.get_artifact("local", result["plot"]["artifact"])
    assert artifact.ref.type == "image/png"
    picture = Image.open(BytesIO(artifact.data))
    colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert {(37, 99, 235), (220, 38, 38)} <= colours  # the line, and the bar
    with pytest.raises(InvalidInput, match="session_id"):
        await demo.call_tool("get_history", arguments)


async def test_the_logbook_tells_what_happened(demo):
    result = await demo.call_tool("get_logbook", {"entity_ids": ["lock.front_door"], "limit": 2})
    assert [entry["message"] for entry in result["entries"]] == ["was unlocked", "was locked"]
    assert result["total"] > 2


async def test_the_logbook_does_not_tell_of_what_is_hidden(demo):
    layout = await demo.home.get_layout()
    hidden = next(e for e in layout.entities if not e.exposed)
    now = demo.clock.now()

    async def logbook(start, end, entity_ids=()):
        return [
            LogbookEntry(now, hidden.name, "turned on", hidden.id),
            LogbookEntry(
                now, "Hallway light", "turned on", "light.hallway", f"{hidden.name} changed", hidden.id
            ),
            LogbookEntry(now, "Hallway light", "turned off", "light.hallway", "Anna", "person.anna"),
        ]

    demo.home.get_logbook = logbook
    entries = (await demo.call_tool("get_logbook"))["entries"]
    assert [(e["name"], e.get("cause")) for e in entries] == [
        ("Hallway light", None),
        ("Hallway light", "Anna"),
    ]


SHAPE = {
    "entity_id",
    "name",
    "status",
    "current_state",
    "last_changed",
    "device",
    "area",
    "root_causes",
    "impact",
    "recommendations",
}


async def test_an_empty_battery_is_found(demo):
    found = await demo.call_tool("diagnose_entity", {"entity_id": "binary_sensor.bathroom_leak"})
    assert set(found) == SHAPE
    assert (found["status"], found["current_state"]) == ("unavailable", "unavailable")
    assert found["root_causes"][0]["description"] == "its battery is empty"
    assert found["device"]["via"] == "Zigbee bridge"
    assert found["area"] == "Bathroom"
    assert found["impact"]["affected_entities"] == ["sensor.bathroom_leak_battery"]
    assert [a["name"] for a in found["impact"]["affected_automations"]] == ["Leak alert"]
    assert found["recommendations"][0] == "Replace the battery of Bathroom leak sensor"


async def test_a_light_that_flickers_with_the_voltage_is_found(demo):
    found = await demo.call_tool("diagnose_entity", {"entity_id": "light.bedroom_ceiling"})
    assert found["status"] == "warning"
    assert found["root_causes"][0]["description"] == "it flickers when the mains voltage dips"
    assert "electrician" in found["recommendations"][0]


async def test_an_automation_that_fails_is_found(demo):
    found = await demo.call_tool("diagnose_entity", {"entity_id": "automation.hallway_night_light"})
    assert found["status"] == "warning"
    assert "notify.mobile_app_pixel_6" in found["recommendations"][0]


async def test_what_is_well_is_healthy(demo):
    found = await demo.call_tool("diagnose_entity", {"entity_id": "light.kitchen_ceiling"})
    assert (found["status"], found["root_causes"], found["recommendations"]) == ("healthy", [], [])


async def test_a_bridge_that_is_down_is_blamed_for_all_behind_it(demo):
    layout = await demo.home.get_layout()
    connected = {device.id for device in layout.devices if device.via_id == "zigbee_bridge"}
    for entity in layout.entities:
        if entity.device_id in connected:
            demo.home.set_state(entity.id, "unavailable")
    found = await demo.call_tool("diagnose_entity", {"entity_id": "light.terrace"})
    assert found["root_causes"][0]["description"] == "its bridge, Zigbee bridge, is down"


@pytest.mark.parametrize("timeframe", ["1h", "24h", "7d"])
async def test_errors_are_analysed_within_a_time(demo, timeframe):
    result = await demo.call_tool("analyze_errors", {"timeframe": timeframe})
    assert result["timeframe"] == timeframe
    assert result["total_incidents"] >= len(result["incidents"])
    assert len(json.dumps(result).encode()) <= MAX_RESULT_BYTES


async def test_the_bridge_that_took_others_down_is_a_cascade(demo):
    result = await demo.call_tool("analyze_errors")
    [cascade] = [c for c in result["cascades"] if c["incidents"] > 10]
    assert "Zigbee bridge" in cascade["began_with"] or "zigbee" in cascade["began_with"].lower()
    assert result["recommendations"]
    shown = json.dumps(result["incidents"])
    assert "Terrace light was unavailable" not in shown


async def test_what_has_been_away_for_long_is_no_cascade(demo):
    for entity_id in ("light.terrace", "light.garden_path"):
        demo.home.set_state(entity_id, "unavailable")
    demo.clock.advance(3 * 3600)
    result = await demo.call_tool("analyze_errors", {"timeframe": "1h"})
    away = [i for i in result["incidents"] if "light.terrace" in i["entities"]]
    assert "for 3 h" in away[0]["message"]
    assert not any("Terrace" in c["began_with"] or "Garden" in c["began_with"] for c in result["cascades"])


async def test_motion_is_no_flicker(demo):
    for n in range(20):
        demo.home.set_state("binary_sensor.hallway_motion", "on" if n % 2 else "off")
        demo.clock.advance(10)
    found = await demo.call_tool("diagnose_entity", {"entity_id": "binary_sensor.hallway_motion"})
    assert "flickers" not in json.dumps(found)


async def test_search_finds_by_state(demo):
    away = await demo.call_tool("search_index", {"state": "unavailable"})
    assert {e["entity_id"] for e in away["entities"]} == {
        "binary_sensor.bathroom_leak",
        "sensor.bathroom_leak_battery",
    }


async def test_binary_sensors_are_read_by_their_device_class(demo):
    window = "binary_sensor.bedroom_window"
    found = await demo.call_tool("search_index", {"state": "open", "domain": "binary_sensor"})
    assert found["total"] == 0
    demo.home.set_state(window, "on")
    found = await demo.call_tool("search_index", {"state": "open", "domain": "binary_sensor"})
    assert [(e["entity_id"], e["state"]) for e in found["entities"]] == [(window, "open")]
    raw = await demo.call_tool("search_index", {"state": "on", "query": "bedroom window"})
    assert raw["entities"][0] == found["entities"][0]
    [read] = (await demo.call_tool("get_states", {"entity_ids": [window]}))["entities"]
    assert read["state"] == "open"
    diagnosis = await demo.call_tool("diagnose_entity", {"entity_id": window})
    assert diagnosis["current_state"] == "open"
    [history] = (await demo.call_tool("get_history", {"entity_ids": [window]}))["entities"]
    assert history["state"] == "open"
    assert set(history["lasted"]) <= {"open", "closed", "unavailable"}


async def test_results_show_no_unit_without_a_value_and_no_state_of_a_scene(demo):
    ids = ["sensor.bathroom_leak_battery", "scene.movie_night", "climate.living_room"]
    battery, scene, thermostat = (await demo.call_tool("get_states", {"entity_ids": ids}))["entities"]
    assert (battery["state"], "unit" in battery) == ("unavailable", False)
    assert "state" not in scene
    assert thermostat["state"].endswith(" °C") and " → " in thermostat["state"]


async def test_the_services_of_a_domain_are_listed_with_their_arguments(demo):
    listed = await demo.call_tool("list_services", {"domain": "light"})
    services = {each["service"]: each for each in listed["services"]}
    assert listed["total"] == len(services) and all(name.startswith("light.") for name in services)
    assert services["light.turn_on"]["takes_entities"] is True
    assert services["light.turn_on"]["arguments"]["brightness_pct"].startswith("0 to 100")
    [forecast] = (await demo.call_tool("list_services", {"domain": "weather"}))["services"]
    assert "query_service" in forecast["note"] and forecast["arguments"]["type"].startswith("required, ")
    with pytest.raises(InvalidInput, match=r"no services of 'lihgt'; there are light"):
        await demo.call_tool("list_services", {"domain": "lihgt"})


async def test_the_logbook_tells_the_user_of_a_cause_that_is_not_exposed(demo):
    at, hidden = demo.clock.now(), "automation.hidden"

    async def get_logbook(start, end, entity_ids=()):
        lamp = ("Lamp", "turned on", "light.hallway")
        return [
            LogbookEntry(at, *lamp, "Hidden one changed to on by Anna", hidden, "Anna"),
            LogbookEntry(at, *lamp, "Hidden one changed to on", hidden),
            LogbookEntry(at, *lamp, "light.turn_on by Anna", None, "Anna"),
        ]

    demo.home.get_logbook = get_logbook
    entries = (await demo.call_tool("get_logbook"))["entries"]
    assert [entry.get("cause") for entry in entries] == ["by Anna", None, "light.turn_on by Anna"]


async def test_a_word_of_many_letters_is_searched_in_no_time(demo):
    assert (await demo.call_tool("search_index", {"query": "x" * 30_000}))["total"] == 0
    with pytest.raises(EntityNotFound):
        await demo.call_tool("diagnose_entity", {"entity_id": "light." + "x" * 10_000})


async def test_severity_leaves_out_what_is_below_it(demo):
    errors = await demo.call_tool("analyze_errors", {"severity": "error"})
    assert {i["severity"] for i in errors["incidents"]} == {"error"}
    everything = await demo.call_tool("analyze_errors", {"severity": "warning"})
    assert errors["total_incidents"] < everything["total_incidents"]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("get_states", {}, "entity_ids"),
        ("get_history", {"entity_ids": []}, "entity_ids"),
        ("get_history", {"entity_ids": ["light.hallway"], "hours": 9999}, "hours"),
        ("get_history", {"entity_ids": ["light.hallway"], "until": "soon"}, "until must be a time"),
        ("get_history", {"entity_ids": ["light.hallway"], "until": "0001-01-01T00:00"}, "the year 1"),
        ("remember", {"text": "x"}, "cannot be called directly"),
        ("analyze_errors", {"timeframe": "2h"}, "timeframe"),
        ("search_index", {"query": 3}, "query"),
        ("search_index", {"limit": 10**6}, "limit"),
        ("call_service", {"service": "light.turn_on"}, "cannot be called directly"),
        ("undo_last_action", {}, "cannot be called directly"),
    ],
)
async def test_bad_arguments_are_refused(demo, name, arguments, says):
    with pytest.raises(InvalidInput, match=says):
        await demo.call_tool(name, arguments)


async def test_an_unknown_tool_and_an_unknown_entity_are_named(demo):
    with pytest.raises(ToolNotFound, match="search_index"):
        await demo.call_tool("dance")
    with pytest.raises(EntityNotFound, match=r"light\.kitchen_ceiling"):
        await demo.call_tool("diagnose_entity", {"entity_id": "light.kitchen"})


READING = [
    ("search_index", {"query": "light"}),
    ("get_states", {"entity_ids": ["light.hallway"]}),
    ("get_history", {"entity_ids": ["light.hallway"]}),
    ("get_logbook", {}),
    ("diagnose_entity", {"entity_id": "light.hallway"}),
    ("analyze_errors", {}),
]


@pytest.mark.parametrize(("name", "arguments"), READING)
async def test_a_house_that_is_away_says_so(demo, name, arguments):
    demo.home.disconnect("the router is down")
    with pytest.raises(HomeUnavailable, match="the router is down"):
        await demo.call_tool(name, arguments)


async def test_no_tool_tells_of_what_is_not_exposed(demo):
    """No tool result contains the id or the name of a hidden entity."""
    layout = await demo.home.get_layout()
    hidden = [e for e in layout.entities if not e.exposed]
    assert hidden
    session = await demo.runtime.start_session()
    told = []
    for name, arguments in READING:
        told.append(await demo.call_tool(name, arguments, session_id=session.id))
    for entity in hidden:
        told.append(await demo.call_tool("search_index", {"query": entity.name}))
        told.append(await demo.call_tool("search_index", {"query": entity.id, "limit": 50}))
        for name in ("get_history", "diagnose_entity", "get_logbook"):
            key = "entity_id" if name == "diagnose_entity" else "entity_ids"
            value = entity.id if name == "diagnose_entity" else [entity.id]
            with pytest.raises(EntityNotFound):
                await demo.call_tool(name, {key: value})
    text = json.dumps(told)
    for entity in hidden:
        assert entity.id not in text
        assert entity.name not in text


async def test_a_service_that_only_answers_can_be_asked(demo):
    forecast = await demo.call_tool(
        "query_service",
        {"service": "weather.get_forecasts", "entity_ids": ["weather.home"], "data": {"type": "daily"}},
    )
    days = forecast["response"]["weather.home"]["forecast"]
    assert [day["datetime"][:10] for day in days] == [f"2026-01-{number}" for number in range(16, 21)]


async def test_the_items_of_a_list_can_be_asked(demo):
    [todo] = [e for e in demo.runtime.home.index.entities if e.startswith("todo.")]
    await demo.home.call_service("todo.add_item", {"item": "milk"}, [todo])
    asked = await demo.call_tool("query_service", {"service": "todo.get_items", "entity_ids": [todo]})
    assert {"summary": "milk", "status": "needs_action"} in asked["response"][todo]["items"]


@pytest.mark.parametrize("service", ["light.turn_on", "recorder.get_statistics", "weather.nothing"])
async def test_only_services_that_answer_about_entities_can_be_asked(demo, service):
    with pytest.raises(InvalidInput, match=f"no service '{service}'"):
        await demo.call_tool("query_service", {"service": service, "entity_ids": ["light.kitchen_ceiling"]})
    assert demo.home.calls == []
