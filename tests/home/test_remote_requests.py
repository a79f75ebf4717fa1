"""A remote home reads states, history and logs, and calls services."""

import asyncio
import math
from datetime import UTC, datetime

import pytest

from sash.errors import HomeError, HomeUnauthorized, HomeUnavailable, InvalidInput, ServiceFailed
from sash.home.remote.websocket import Timing
from sash.ports.home import Connected, HourlyStatistics, LayoutChanged, State, StateChanged
from tests.home.fake_home_assistant import ERROR, LIGHT, TOKEN
from tests.home.remote_home import at


class TestStates:
    async def test_a_state_has_its_times_and_attributes(self, hub, connect):
        hub.states["switch.new"] = {"s": "off", "a": {}, "c": "x", "lc": 50.5}
        home, _ = await connect(hub.url)
        assert await home.get_states() == [
            State("light.lamp", "on", {"friendly_name": "Lamp", "brightness": 10}, at(100), at(200)),
            State("switch.new", "off", {}, at(50.5), at(50.5)),
        ]

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (
                {"+": {"s": "off", "lc": 300.0}},
                State("light.lamp", "off", {"friendly_name": "Lamp", "brightness": 10}, at(300), at(300)),
            ),
            (
                {"+": {"a": {"brightness": 20, "effect": "x"}, "lu": 300.0}},
                State(
                    "light.lamp",
                    "on",
                    {"friendly_name": "Lamp", "brightness": 20, "effect": "x"},
                    at(100),
                    at(300),
                ),
            ),
            (
                {"+": {"lu": 300.0}, "-": {"a": ["brightness", "never"]}},
                State("light.lamp", "on", {"friendly_name": "Lamp"}, at(100), at(300)),
            ),
            (
                {"+": {"c": {"id": "y"}}},
                State("light.lamp", "on", {"friendly_name": "Lamp", "brightness": 10}, at(100), at(200)),
            ),
        ],
    )
    async def test_changes_are_applied(self, hub, connect, change, expected):
        home, watcher = await connect(hub.url)
        before = await home.get_states()
        await hub.tell("subscribe_entities", {"c": {"light.lamp": change}})
        assert await watcher.until(StateChanged) == StateChanged("light.lamp", expected)
        assert await home.get_states() == [expected]
        assert before[0].attributes == {"friendly_name": "Lamp", "brightness": 10}
        assert LayoutChanged() not in watcher.events

    async def test_many_events_in_one_frame_come_in_order(self, hub, connect):
        _, watcher = await connect(hub.url)
        events = [{"c": {"light.lamp": {"+": {"s": str(n), "lc": 300.0 + n}}}} for n in range(50)]
        await hub.tell("subscribe_entities", *events)
        await watcher.until(StateChanged, lambda event: event.state.state == "49")
        assert [event.state.state for event in watcher.events[1:]] == [str(n) for n in range(50)]

    async def test_entities_that_come_go_or_get_another_name_change_the_layout(self, hub, connect):
        home, watcher = await connect(hub.url)
        await hub.tell("subscribe_entities", {"a": {"light.new": LIGHT}})
        assert (await watcher.until(StateChanged)).entity_id == "light.new"
        await watcher.until(LayoutChanged)
        await hub.tell("subscribe_entities", {"c": {"light.new": {"+": {"a": {"friendly_name": "X"}}}}})
        await watcher.until(LayoutChanged)
        await hub.tell("subscribe_entities", {"r": ["light.new", "light.never"]})
        await watcher.until(StateChanged, lambda event: event == StateChanged("light.new", None))
        await watcher.until(LayoutChanged)
        assert [state.entity_id for state in await home.get_states()] == ["light.lamp"]

    async def test_a_change_of_an_unknown_entity_is_ignored(self, hub, connect):
        _, watcher = await connect(hub.url)
        await hub.tell(
            "subscribe_entities",
            {"c": {"light.never": {"+": {"s": "on", "lc": 1.0}}}},
            {"c": {"light.lamp": {"+": {"s": "off", "lc": 300.0}}}},
        )
        assert (await watcher.until(StateChanged)).entity_id == "light.lamp"

    @pytest.mark.parametrize(
        "event", ["entity_registry_updated", "floor_registry_updated", "automation_reloaded"]
    )
    async def test_a_change_of_a_registry_changes_the_layout(self, hub, connect, event):
        _, watcher = await connect(hub.url)
        await hub.tell(event, {"event_type": event, "data": {"action": "update"}})
        await watcher.until(LayoutChanged)

    async def test_one_state_is_asked_for_anew(self, hub, connect):
        home, _ = await connect(hub.url)
        hub.rest["light.lamp"] = (
            200,
            {
                "entity_id": "light.lamp",
                "state": "off",
                "attributes": {"brightness": None},
                "last_changed": "2026-01-01T10:00:00+00:00",
                "last_updated": "2026-01-01T10:00:01.500000+00:00",
            },
        )
        state = await home.get_state("light.lamp")
        assert (state.state, state.changed_at) == ("off", datetime(2026, 1, 1, 10, tzinfo=UTC))
        assert hub.got[0].headers["Authorization"] == f"Bearer {TOKEN}"
        assert await home.get_state("light.never") is None

    @pytest.mark.parametrize("entity_id", ["../config", "light.lamp/../x", "", "light", "light.lamp?x=1"])
    async def test_what_is_no_entity_id_is_not_asked_for(self, hub, connect, entity_id):
        home, _ = await connect(hub.url)
        assert await home.get_state(entity_id) is None
        assert hub.got == []

    @pytest.mark.parametrize(
        ("answer", "kind", "words"),
        [
            ((401, {}), HomeUnauthorized, "refuses the token"),
            ((503, {}), HomeUnavailable, "HTTP 503"),
            ((200, {"state": "on"}), HomeError, "not understood"),
        ],
    )
    async def test_a_state_that_cannot_be_had_is_a_clear_error(
        self, hub, connect, answer, kind, words, caplog
    ):
        home, _ = await connect(hub.url)
        hub.rest["light.lamp"] = answer
        with pytest.raises(kind, match=words) as caught:
            await home.get_state("light.lamp")
        chain = [caught.value, caught.value.__cause__, caught.value.__context__]
        assert not any(TOKEN in f"{error!s} {error!r}" for error in chain)


class TestAsking:
    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("service_validation_error", "Validation error: 1000 is not valid"),
            ("home_assistant_error", "The lamp is on fire"),
            ("not_found", "Service light.nope not found."),
            ("invalid_format", "expected int at 'brightness'"),
        ],
    )
    async def test_a_refused_service_says_home_assistants_own_words(self, hub, connect, code, words):
        hub.answers["call_service"] = (ERROR, code, words)
        home, _ = await connect(hub.url)
        with pytest.raises(ServiceFailed) as caught:
            await home.call_service("light.turn_on", {})
        assert caught.value.message == words

    async def test_a_service_is_called_on_its_targets(self, hub, connect):
        hub.answers["call_service"] = {"context": {}}
        home, _ = await connect(hub.url)
        await home.call_service("light.turn_on", {"brightness": 5}, ("light.lamp",))
        await home.call_service("homeassistant.reload_all", {})
        first, second = hub.asked[-2:]
        del first["id"], second["id"]
        assert first == {
            "type": "call_service",
            "domain": "light",
            "service": "turn_on",
            "service_data": {"brightness": 5},
            "target": {"entity_id": ["light.lamp"]},
        }
        assert "target" not in second

    async def test_a_service_call_that_is_not_answered_may_have_been_done(self, hub, connect):
        hub.answers["call_service"] = None
        home, _ = await connect(hub.url, timing=Timing(long_response_s=0.05))
        with pytest.raises(HomeUnavailable, match="the result is unknown"):
            await home.call_service("light.turn_on", {})

    @pytest.mark.parametrize("value", [math.nan, "\ud800", {1, 2}])
    async def test_what_no_json_can_hold_is_not_sent_and_breaks_nothing(self, hub, connect, value):
        home, watcher = await connect(hub.url)
        with pytest.raises(InvalidInput, match="JSON only"):
            await home.call_service("light.turn_on", {"brightness": value})
        assert watcher.events == [Connected()]
        assert "call_service" not in hub.kinds()

    @pytest.mark.parametrize(
        ("name", "question"),
        [
            ("history", lambda home: home.get_history(["light.lamp"], at(1), at(2))),
            ("logbook", lambda home: home.get_logbook(at(1), at(2))),
            ("recorder", lambda home: home.get_statistics(["light.lamp"], at(1), at(2))),
            ("system log", lambda home: home.get_log()),
        ],
    )
    async def test_what_is_not_set_up_is_said_so(self, hub, connect, name, question):
        home, _ = await connect(hub.url)
        with pytest.raises(HomeError, match=f"Home Assistant's {name} is not set up"):
            await question(home)

    async def test_what_may_not_be_asked_is_said_so(self, hub, connect):
        hub.answers["system_log/list"] = (ERROR, "unauthorized", "Unauthorized")
        home, _ = await connect(hub.url)
        with pytest.raises(HomeError, match="not an administrator"):
            await home.get_log()

    async def test_history_has_a_point_for_each_change(self, hub, connect):
        hub.answers["history/history_during_period"] = {
            "light.lamp": [
                {"s": "on", "a": {}, "lc": 50.0, "lu": 60.0},
                {"s": "on", "lu": 120.0},
                {"s": "off", "lu": 150.0},
                {"s": "on", "lu": 170.0},
            ]
        }
        home, _ = await connect(hub.url)
        history = await home.get_history(["light.lamp", "light.never"], at(100), at(200))
        assert [(point.at, point.state) for point in history["light.lamp"]] == [
            (at(100), "on"),
            (at(150), "off"),
            (at(170), "on"),
        ]
        assert history["light.never"] == []
        asked = hub.asked[-1]
        assert (asked["start_time"], asked["end_time"]) == (at(100).isoformat(), at(200).isoformat())
        assert asked["minimal_response"]
        assert not asked["significant_changes_only"]
        assert await home.get_history([], at(1), at(2)) == {}

    async def test_statistics_have_a_row_for_each_hour(self, hub, connect):
        hub.answers["recorder/statistics_during_period"] = {
            "sensor.energy": [
                {"start": 3_600_000, "end": 7_200_000, "sum": 12.5, "change": 0.5, "mean": None}
            ]
        }
        home, _ = await connect(hub.url)
        found = await home.get_statistics(["sensor.energy", "sensor.none"], at(3600), at(7200))
        assert found == {
            "sensor.energy": [HourlyStatistics(at(3600), sum=12.5, change=0.5)],
            "sensor.none": [],
        }
        asked = hub.asked[-1]
        assert (asked["period"], asked["statistic_ids"]) == ("hour", ["sensor.energy", "sensor.none"])
        assert await home.get_statistics([], at(1), at(2)) == {}

    async def test_the_logbook_says_what_happened_and_why(self, hub, connect):
        hub.states["person.ada"] = {"s": "home", "a": {"friendly_name": "Ada L.", "user_id": "u2"}, "lc": 1.0}
        hub.answers["logbook/get_events"] = [
            {
                "when": 3.0,
                "state": "on",
                "entity_id": "light.lamp",
                "context_entity_id": "light.lamp",
                "context_state": "off",
            },
            {
                "when": 2.0,
                "state": "on",
                "entity_id": "light.lamp",
                "context_domain": "light",
                "context_service": "turn_on",
                "context_user_id": "u2",
            },
            {
                "when": 1.0,
                "name": "Evening",
                "message": "triggered by sunset",
                "entity_id": "automation.evening",
            },
            {
                "when": 4.0,
                "state": "off",
                "entity_id": "light.gone",
                "context_name": "Evening",
                "context_message": "triggered by sunset",
                "context_user_id": "u1",
            },
        ]
        home, _ = await connect(hub.url)
        entries = await home.get_logbook(at(0), at(10), ["light.lamp"])
        assert [(entry.at, entry.name, entry.message, entry.cause) for entry in entries] == [
            (at(1), "Evening", "triggered by sunset", ""),
            (at(2), "Lamp", "turned on", "light.turn_on by Ada L."),
            (at(3), "Lamp", "turned on", "Lamp changed to off"),
            (at(4), "light.gone", "turned off", "Evening, triggered by sunset, by Ada"),
        ]
        assert hub.asked[-1]["entity_ids"] == ["light.lamp"]

    async def test_the_log_has_warnings_and_worse_oldest_first(self, hub, connect):
        line = {"name": "homeassistant.components.hue", "source": ["hue.py", 5], "exception": "", "count": 1}
        hub.answers["system_log/list"] = [
            {
                **line,
                "level": "ERROR",
                "message": ["b", "c"],
                "timestamp": 9.0,
                "first_occurred": 5.0,
                "count": 3,
            },
            {**line, "level": "INFO", "message": ["x"], "timestamp": 8.0, "first_occurred": 8.0},
            {
                **line,
                "level": "FATAL",
                "message": ["a"],
                "timestamp": 7.0,
                "first_occurred": 7.0,
                "exception": "Traceback\n  x\nValueError: no\n",
            },
        ]
        home, _ = await connect(hub.url)
        records = await home.get_log()
        assert [(record.level, record.message, record.count) for record in records] == [
            ("critical", "a\nValueError: no", 1),
            ("error", "b\nc", 3),
        ]
        assert (records[1].first_at, records[1].at) == (at(5), at(9))
        assert records[0].source == "homeassistant.components.hue"

    async def test_services_have_their_words_and_all_their_fields(self, hub, connect):
        hub.answers["get_services"] = {
            "light": {
                "turn_on": {
                    "fields": {
                        "brightness": {"required": True, "selector": {"number": {"max": 255}}},
                        "more": {
                            "collapsed": True,
                            "fields": {"flash": {"description": "own", "selector": {}}},
                        },
                    },
                    "target": {"entity": [{"domain": ["light"]}]},
                }
            },
            "script": {"good_night": {"name": "Good night", "description": "", "fields": {}}},
            "tts": {"speak": {"fields": {}, "description_placeholders": {"docs": "https://docs"}}},
        }
        hub.answers["frontend/get_translations"] = {
            "resources": {
                "component.light.services.turn_on.description": "Turns on a light.",
                "component.light.services.turn_on.fields.brightness.description": "How bright.",
                "component.light.services.turn_on.fields.flash.description": "Flashes.",
                "component.tts.services.speak.description": "Speaks, see {docs} and {more}.",
            }
        }
        home, _ = await connect(hub.url)
        services = await home.get_services()
        turn_on = services["light.turn_on"]
        assert turn_on.description == "Turns on a light."
        assert {name: field.description for name, field in turn_on.fields.items()} == {
            "brightness": "How bright.",
            "flash": "own",
        }
        assert turn_on.fields["brightness"].required
        assert turn_on.fields["brightness"].selector == {"number": {"max": 255}}
        assert turn_on.target == {"entity": [{"domain": ["light"]}]}
        assert services["script.good_night"].description == "Good night"
        assert services["script.good_night"].target is None
        assert services["tts.speak"].description == "Speaks, see https://docs and {more}."

    async def test_services_come_without_words_if_there_are_none(self, hub, connect):
        hub.answers["get_services"] = {"light": {"turn_on": {"fields": {}}}}
        home, _ = await connect(hub.url)
        assert (await home.get_services())["light.turn_on"].description == ""

    async def test_questions_do_not_wait_for_each_other(self, hub, connect):
        both = asyncio.Event()
        hub.answers["get_services"] = None
        hub.answers["frontend/get_translations"] = lambda _: both.set()
        home, _ = await connect(hub.url)
        asking = asyncio.ensure_future(home.get_services())
        await asyncio.wait_for(both.wait(), 10)
        assert "get_services" in hub.kinds()
        await home.close()
        with pytest.raises(HomeUnavailable):
            await asking
