"""The history of the demo home: a daily pattern for every entity, and some faults to diagnose.

The times of the faults are relative to the last full six hours before the start, so that a restart soon
after shows the same faults:

* The battery of the bathroom leak sensor fell for days. The sensor has been unavailable for some hours.
* The bedroom ceiling light flickers every evening, when the mains voltage of the bedroom dips.
* The automation of the hallway night light notifies a phone that no longer exists, and fails each time.
* The Zigbee bridge was offline for a minute, and all entities behind it became unavailable seconds later.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from operator import attrgetter
from random import Random
from typing import Literal, NamedTuple

from sash.demo.daily_patterns import (
    WORKDAYS,
    DailyPattern,
    Day,
    make_battery,
    make_bursts,
    make_constant,
    make_curve,
    make_daylight,
    make_load,
    make_meter,
    make_periods,
    make_random_changes,
)
from sash.ports.home import UNAVAILABLE, HistoryPoint, LogbookEntry, LogRecord

PAST_SPAN = timedelta(days=7)
ANCHOR_HOURS = 6
BATTERY_EMPTY_AGO = timedelta(hours=3, minutes=10)
BRIDGE_OFFLINE_AGO = timedelta(hours=9, minutes=20)
BRIDGE_OFFLINE_S = 62
FLICKERING_SPAN = timedelta(days=3)
FLICKER_TIMES = ((21, 38), (21, 52), (22, 5), (22, 7), (22, 21), (22, 33), (22, 44))

_EVENING = (18.0, 23.4, "on")
_HALLWAY_NIGHT = ((0.5, 5.0, 1), (20.5, 23.7, 5))
_HALLWAY_DAY = ((6.3, 8.3, 5), (16.2, 20.2, 6))
_COMING_AND_GOING = ((7.5, 8.6, 2), (12.0, 18.5, 4))

_PATTERNS: dict[str, DailyPattern] = {
    "light.kitchen_ceiling": make_periods("off", (6.6, 7.8, "on"), (17.6, 20.6, "on")),
    "light.living_room_ceiling": make_periods("off", (18.6, 22.1, "on")),
    "light.floor_lamp": make_periods("off", _EVENING, key="evening"),
    "light.garden_path": make_periods("off", _EVENING, key="evening"),
    "light.terrace": make_periods("off", _EVENING, key="evening"),
    "light.hallway": make_bursts("off", "on", *_HALLWAY_NIGHT, seconds=(85, 225), key="hallway"),
    "light.bedroom_ceiling": make_periods("off", (6.5, 7.0, "on"), (21.1, 23.1, "on")),
    "light.bedside_lamp": make_periods("off", (22.7, 23.4, "on")),
    "light.childrens_room": make_periods("off", (6.9, 7.6, "on"), (17.2, 19.9, "on")),
    "light.bathroom_mirror": make_bursts("off", "on", (6.2, 7.9, 3), (18.5, 22.9, 4), seconds=(240, 720)),
    "switch.coffee_machine": make_periods("off", (6.6, 7.4, "on"), (15.0, 15.5, "on")),
    "cover.living_room_blind": make_periods("closed", (7.2, 20.8, "open")),
    "cover.bedroom_blind": make_periods("closed", (7.0, 21.3, "open")),
    "cover.garage_door": make_bursts("closed", "open", (8.0, 8.4, 1), (17.1, 17.6, 1), seconds=(120, 260)),
    "climate.bathroom": make_periods("off", (5.8, 8.4, "heat"), (18.4, 22.2, "heat")),
    "lock.front_door": make_bursts(
        "locked", "unlocked", *_COMING_AND_GOING, seconds=(75, 160), key="front door"
    ),
    "binary_sensor.front_door": make_bursts(
        "off", "on", *_COMING_AND_GOING, seconds=(15, 60), key="front door"
    ),
    "fan.bedroom": make_periods("off", (21.8, 22.6, "on"), days=(4, 5)),
    "media_player.living_room_tv": make_periods("off", (19.3, 22.3, "playing")),
    "media_player.kitchen_radio": make_periods("paused", (6.7, 7.9, "playing")),
    "vacuum.robby": make_periods("docked", (10.5, 11.4, "cleaning")),
    "sensor.living_room_temperature": make_curve(21.2, 0.8, 18, 0.35),
    "sensor.living_room_humidity": make_curve(46, 4, 7, 3, digits=0),
    "sensor.bedroom_temperature": make_curve(18.9, 0.7, 20, 0.3),
    "sensor.outdoor_temperature": make_curve(9.5, 4.2, 15, 1.4),
    "sensor.garden_illuminance": make_daylight(24_000),
    "sensor.house_power": make_load(
        210, (6.5, 7.5, 900), (11.5, 12.5, 1100), (17.8, 19, 1700), (18, 23, 260)
    ),
    "sensor.bedroom_voltage": make_curve(230.6, 1.1, 4, 0.9),
    "sensor.bathroom_leak_link_quality": make_curve(84, 6, 3, 9, digits=0),
    "binary_sensor.hallway_motion": make_bursts(
        "off", "on", *_HALLWAY_NIGHT, *_HALLWAY_DAY, seconds=(40, 180), key="hallway"
    ),
    "binary_sensor.living_room_occupancy": make_periods("off", (7.0, 8.1, "on"), (17.4, 23.0, "on")),
    "binary_sensor.bedroom_window": make_periods("off", (7.3, 7.8, "on"), (20.8, 21.3, "on")),
    "person.anna": make_periods("home", (8.2, 17.3, "not_home"), days=WORKDAYS),
    "alarm_control_panel.house": make_periods("disarmed", (0, 6.2, "armed_home"), (23.5, 24, "armed_home")),
    "weather.home": make_random_changes(3, "cloudy", "partlycloudy", "sunny", "cloudy", "rainy"),
}

_LEAK = frozenset(
    {"binary_sensor.bathroom_leak", "sensor.bathroom_leak_battery", "sensor.bathroom_leak_link_quality"}
)
_POWER = "sensor.house_power"
_FOREVER = timedelta(days=36_500)
_BRIDGE = "binary_sensor.zigbee_bridge"
_NIGHT_LIGHT = "automation.hallway_night_light"
_EVENING_LIGHTS = "automation.evening_lights"
_EVENING_LIGHTS_ENTITIES = (
    ("light.floor_lamp", "Floor lamp"),
    ("light.garden_path", "Garden path lights"),
    ("light.terrace", "Terrace light"),
)
_ZHA = "homeassistant.components.zha"
_SHELLY = "homeassistant.components.shelly"


class _Span(NamedTuple):
    start: datetime
    end: datetime
    state: str


_LogLine = tuple[list[datetime], Literal["warning", "error"], str, str]


class DemoHistory:
    """The changes of the demo home, from a week before its start and without an end.

    `first_states` holds the initial states by entity id. An entity without a pattern keeps its initial state.
    `behind_bridge` holds the ids of the entities behind the Zigbee bridge. `zone` is the home's time zone.
    """

    def __init__(
        self,
        started_at: datetime,
        zone: tzinfo,
        first_states: Mapping[str, str],
        behind_bridge: Collection[str],
    ) -> None:
        self._started_at = started_at
        self._zone = zone
        self._first_states = first_states
        self._behind_bridge = sorted(behind_bridge)
        self._first_day = (started_at - PAST_SPAN).astimezone(zone).date()
        hours_ago = started_at.astimezone(zone).hour % ANCHOR_HOURS
        anchor = started_at.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
        self._battery_empty_at = anchor - BATTERY_EMPTY_AGO
        self._bridge_offline_at = anchor - BRIDGE_OFFLINE_AGO
        battery = make_battery(self._battery_empty_at, 3, 5.2)
        meter = make_meter(_PATTERNS[_POWER], _POWER, self._first_day, 4200)
        self._patterns = {
            **_PATTERNS,
            "sensor.bathroom_leak_battery": battery,
            "sensor.house_energy": meter,
        }
        self._days: dict[tuple[str, date], list[HistoryPoint]] = {}

    def list_points(self, entity_id: str, start: datetime, end: datetime) -> list[HistoryPoint]:
        """Return the state at `start`, or at the beginning of the history, and all changes until `end`."""
        if entity_id not in self._first_states:
            return []
        start = max(start, self._find_midnight(self._first_day))
        found: list[HistoryPoint] = []
        day, last = start.astimezone(self._zone).date(), end.astimezone(self._zone).date()
        while day <= last:
            found += self._compute_day(entity_id, day)
            day += timedelta(days=1)
        at_start = bisect_right(found, start, key=attrgetter("at"))
        until = bisect_right(found, end, key=attrgetter("at"))
        if not found or until < at_start:
            return []
        return list(_remove_repeats([HistoryPoint(start, found[at_start - 1].state), *found[at_start:until]]))

    def list_triggers(self, automation: str, start: datetime, end: datetime) -> list[datetime]:
        """Return the times at which an automation, given by its id, ran between `start` and `end`."""
        cause = {_NIGHT_LIGHT: "light.hallway", _EVENING_LIGHTS: "light.garden_path"}.get(automation)
        points = self.list_points(cause, start, end) if cause else []
        pairs = pairwise(points)
        return [after.at for before, after in pairs if (before.state, after.state) == ("off", "on")]

    def read_logbook(self, start: datetime, end: datetime) -> list[LogbookEntry]:
        """Return the logbook entries of automations. The simulated home adds the changes of states."""
        entries: list[LogbookEntry] = []
        for at in self.list_triggers(_EVENING_LIGHTS, start, end):
            entries.append(
                _describe_trigger(
                    at, "Evening lights", "numeric state of Garden illuminance", _EVENING_LIGHTS
                )
            )
            for entity_id, name in _EVENING_LIGHTS_ENTITIES:
                entries.append(LogbookEntry(at, name, "turned on", entity_id, "automation Evening lights"))
        for at in self.list_triggers(_NIGHT_LIGHT, start, end):
            entries.append(
                _describe_trigger(at, "Hallway night light", "state of Hallway motion", _NIGHT_LIGHT)
            )
            cause = "automation Hallway night light"
            entries.append(LogbookEntry(at, "Hallway light", "turned on", "light.hallway", cause))
        return sorted(entries, key=attrgetter("at"))

    def read_log(self, now: datetime) -> list[LogRecord]:
        """Return the log records of the faults until `now`, oldest first."""
        records = []
        for times, level, source, message in self._list_log_lines(now):
            past = [at for at in times if at <= now]
            if past:
                records.append(LogRecord(past[-1], past[0], level, source, message, len(past)))
        return sorted(records, key=attrgetter("at"))

    def _list_log_lines(self, now: datetime) -> Iterator[_LogLine]:
        """Yield each log line with its times, some of which may be after `now`."""
        failed = self.list_triggers(_NIGHT_LIGHT, self._find_midnight(self._first_day), now)
        source = f"homeassistant.components.{_NIGHT_LIGHT}"
        gone = "Action notify.mobile_app_pixel_6 not found."
        script = "Hallway night light: Error executing script. Service not found for call_service at pos 2"
        yield failed, "error", source, f"{script}: {gone}"
        yield failed, "error", source, f"Error while executing automation {_NIGHT_LIGHT}: {gone}"

        dips = [at for day in self._list_days(now) for at in self._list_dips(day)]
        dimmer, meter = (
            "Bedroom dimmer (light.bedroom_ceiling)",
            "Bedroom circuit meter (sensor.bedroom_voltage)",
        )
        yield dips, "warning", _SHELLY, f"{dimmer}: device restarted, reset reason brownout"
        yield dips, "warning", _SHELLY, f"{meter}: undervoltage, below 207 V"

        dead_at, leak = self._battery_empty_at, "Bathroom leak sensor (binary_sensor.bathroom_leak)"
        low = [dead_at - timedelta(hours=hours) for hours in (26, 14, 2)]
        silent = [dead_at + timedelta(minutes=minutes) for minutes in (0, 30, 60, 120)]
        yield low, "warning", _ZHA, f"{leak}: battery is low (below 10 %)"
        yield silent, "warning", _ZHA, f"{leak}: device does not answer, marked as unavailable"

        out_at, port = self._bridge_offline_at, "/dev/ttyUSB0 (NCP entered failed state)"
        yield [out_at], "error", _ZHA, f"Zigbee bridge: lost connection to {port}, reconnecting"
        lost = f"Zigbee bridge: {len(self._behind_bridge)} entities are unavailable while it is disconnected"
        yield [out_at + timedelta(seconds=10)], "warning", _ZHA, lost

    def _compute_day(self, entity_id: str, day: date) -> list[HistoryPoint]:
        """Return the points of an entity on a day: its pattern, overlaid with the faults."""
        found = self._days.get((entity_id, day))
        if found is not None:
            return found
        start, end = self._find_midnight(day), self._find_midnight(day + timedelta(days=1))
        pattern = self._patterns.get(entity_id) or make_constant(self._first_states[entity_id])
        moments = sorted(pattern(Day(day, start, entity_id)), key=lambda moment: moment[0])
        points = [HistoryPoint(start + timedelta(seconds=second), state) for second, state in moments]
        for span in sorted(self._list_faults(entity_id, day)):
            if span.start < end and span.end > start:
                points = _overlay(points, _Span(max(span.start, start), min(span.end, end), span.state))
        found = list(_remove_repeats(point for point in points if point.at < end))
        self._days[entity_id, day] = found
        return found

    def _list_faults(self, entity_id: str, day: date) -> Iterator[_Span]:
        out_at = self._bridge_offline_at
        if entity_id == _BRIDGE:
            yield _Span(out_at, out_at + timedelta(seconds=BRIDGE_OFFLINE_S), "off")
        if entity_id in self._behind_bridge:
            after = Random(entity_id).uniform(2, 9)
            back = BRIDGE_OFFLINE_S + Random(entity_id).uniform(2, 24)
            yield _Span(out_at + timedelta(seconds=after), out_at + timedelta(seconds=back), UNAVAILABLE)
        if entity_id in _LEAK:
            yield _Span(self._battery_empty_at, self._battery_empty_at + _FOREVER, UNAVAILABLE)
        if entity_id in ("light.bedroom_ceiling", "sensor.bedroom_voltage"):
            for at in self._list_dips(day):
                yield from _list_flickers(entity_id, at)

    def _list_dips(self, day: date) -> list[datetime]:
        """Return the times of a day at which the mains voltage of the bedroom dips."""
        if self._find_midnight(day) < self._started_at - FLICKERING_SPAN:
            return []
        random = Random(f"dips|{day}")
        midnight = self._find_midnight(day)
        return [
            midnight + timedelta(hours=hour, minutes=minute, seconds=random.uniform(0, 50))
            for hour, minute in FLICKER_TIMES
        ]

    def _list_days(self, now: datetime) -> Iterator[date]:
        day = self._first_day
        while day <= now.astimezone(self._zone).date():
            yield day
            day += timedelta(days=1)

    def _find_midnight(self, day: date) -> datetime:
        return datetime.combine(day, time.min, self._zone).astimezone(self._started_at.tzinfo)


def _list_flickers(entity_id: str, at: datetime) -> Iterator[_Span]:
    """Yield the state changes that a voltage dip causes in this entity: the light or the voltage sensor.

    The light goes off twice, and may become unavailable.
    """
    random = Random(at.isoformat())
    volts, gone = random.uniform(190, 199), random.random() < 0.3

    def span(start_s: float, end_s: float, state: str) -> _Span:
        return _Span(at + timedelta(seconds=start_s), at + timedelta(seconds=end_s), state)

    if entity_id == "sensor.bedroom_voltage":
        yield span(0, 4, f"{volts:.1f}")
        return
    yield span(0.4, 1.1, "off")
    yield span(2.3, 3.1, "off")
    if gone:
        yield span(3.6, 7.2, UNAVAILABLE)


def _overlay(points: list[HistoryPoint], span: _Span) -> list[HistoryPoint]:
    """Return the points with those in a span replaced. After the span, the entity returns to its pattern."""
    before = [point for point in points if point.at < span.start]
    after = [point for point in points if point.at > span.end]
    back = points[len(points) - len(after) - 1].state
    return [*before, HistoryPoint(span.start, span.state), HistoryPoint(span.end, back), *after]


def _remove_repeats(points: Iterable[HistoryPoint]) -> Iterator[HistoryPoint]:
    state = None
    for point in points:
        if point.state != state:
            yield point
        state = point.state


def _describe_trigger(at: datetime, name: str, by: str, entity_id: str) -> LogbookEntry:
    return LogbookEntry(at, name, f"triggered by {by}", entity_id)
