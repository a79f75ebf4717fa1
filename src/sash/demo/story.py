"""What happens in the demo house: a daily rhythm for every entity, and the faults that can be found in it.

The faults, told from the last full six hours before the house began, so that one that begins again soon finds
the same ones:

* The bathroom leak sensor's battery fell for days; since some hours neither can be reached.
* The bedroom ceiling light flickers every evening, whenever the mains voltage of the bedroom dips.
* The automation of the hallway's night light calls a phone that is not there any more, and fails each time.
* The Zigbee bridge dropped out for a minute, and everything behind it went away seconds later.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from operator import attrgetter
from random import Random
from typing import Literal, NamedTuple

from sash.demo.rhythms import (
    WORKDAYS,
    Day,
    Rhythm,
    bursts,
    changing,
    curve,
    daylight,
    falling,
    load,
    periods,
    steady,
)
from sash.ports.home import UNAVAILABLE, LogbookEntry, LogRecord, Point

PAST = timedelta(days=7)
FULL_HOURS = 6
BATTERY_DEAD = timedelta(hours=3, minutes=10)
BRIDGE_OUT = timedelta(hours=9, minutes=20)
BRIDGE_OUT_S = 62
FLICKERING = timedelta(days=3)
FLICKER_AT = ((21, 38), (21, 52), (22, 5), (22, 7), (22, 21), (22, 33), (22, 44))

_EVENING = (18.0, 23.4, "on")
_HALLWAY_NIGHT = ((0.5, 5.0, 1), (20.5, 23.7, 5))
_HALLWAY_DAY = ((6.3, 8.3, 5), (16.2, 20.2, 6))
_COMING_AND_GOING = ((7.5, 8.6, 2), (12.0, 18.5, 4))

_RHYTHMS: dict[str, Rhythm] = {
    "light.kitchen_ceiling": periods("off", (6.6, 7.8, "on"), (17.6, 20.6, "on")),
    "light.living_room_ceiling": periods("off", (18.6, 22.1, "on")),
    "light.floor_lamp": periods("off", _EVENING, key="evening"),
    "light.garden_path": periods("off", _EVENING, key="evening"),
    "light.terrace": periods("off", _EVENING, key="evening"),
    "light.hallway": bursts("off", "on", *_HALLWAY_NIGHT, seconds=(85, 225), key="hallway"),
    "light.bedroom_ceiling": periods("off", (6.5, 7.0, "on"), (21.1, 23.1, "on")),
    "light.bedside_lamp": periods("off", (22.7, 23.4, "on")),
    "light.childrens_room": periods("off", (6.9, 7.6, "on"), (17.2, 19.9, "on")),
    "light.bathroom_mirror": bursts("off", "on", (6.2, 7.9, 3), (18.5, 22.9, 4), seconds=(240, 720)),
    "switch.coffee_machine": periods("off", (6.6, 7.4, "on"), (15.0, 15.5, "on")),
    "cover.living_room_blind": periods("closed", (7.2, 20.8, "open")),
    "cover.bedroom_blind": periods("closed", (7.0, 21.3, "open")),
    "cover.garage_door": bursts("closed", "open", (8.0, 8.4, 1), (17.1, 17.6, 1), seconds=(120, 260)),
    "climate.bathroom": periods("off", (5.8, 8.4, "heat"), (18.4, 22.2, "heat")),
    "lock.front_door": bursts("locked", "unlocked", *_COMING_AND_GOING, seconds=(75, 160), key="front door"),
    "binary_sensor.front_door": bursts("off", "on", *_COMING_AND_GOING, seconds=(15, 60), key="front door"),
    "fan.bedroom": periods("off", (21.8, 22.6, "on"), days=(4, 5)),
    "media_player.living_room_tv": periods("off", (19.3, 22.3, "playing")),
    "media_player.kitchen_radio": periods("paused", (6.7, 7.9, "playing")),
    "vacuum.robby": periods("docked", (10.5, 11.4, "cleaning")),
    "sensor.living_room_temperature": curve(21.2, 0.8, 18, 0.35),
    "sensor.living_room_humidity": curve(46, 4, 7, 3, digits=0),
    "sensor.bedroom_temperature": curve(18.9, 0.7, 20, 0.3),
    "sensor.outdoor_temperature": curve(9.5, 4.2, 15, 1.4),
    "sensor.garden_illuminance": daylight(24_000),
    "sensor.house_power": load(210, (6.5, 7.5, 900), (11.5, 12.5, 1100), (17.8, 19, 1700), (18, 23, 260)),
    "sensor.bedroom_voltage": curve(230.6, 1.1, 4, 0.9),
    "sensor.bathroom_leak_link_quality": curve(84, 6, 3, 9, digits=0),
    "binary_sensor.hallway_motion": bursts(
        "off", "on", *_HALLWAY_NIGHT, *_HALLWAY_DAY, seconds=(40, 180), key="hallway"
    ),
    "binary_sensor.living_room_occupancy": periods("off", (7.0, 8.1, "on"), (17.4, 23.0, "on")),
    "binary_sensor.bedroom_window": periods("off", (7.3, 7.8, "on"), (20.8, 21.3, "on")),
    "person.anna": periods("home", (8.2, 17.3, "not_home"), days=WORKDAYS),
    "alarm_control_panel.house": periods("disarmed", (0, 6.2, "armed_home"), (23.5, 24, "armed_home")),
    "weather.home": changing(3, "cloudy", "partlycloudy", "sunny", "cloudy", "rainy"),
}

_LEAK = frozenset(
    {"binary_sensor.bathroom_leak", "sensor.bathroom_leak_battery", "sensor.bathroom_leak_link_quality"}
)
_FOR_GOOD = timedelta(days=36_500)
_BRIDGE = "binary_sensor.zigbee_bridge"
_NIGHT_LIGHT = "automation.hallway_night_light"
_EVENING_LIGHTS = "automation.evening_lights"
_LIT_IN_THE_EVENING = (
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


_Line = tuple[list[datetime], Literal["warning", "error"], str, str]


class DemoHistory:
    """The demo house from a week before it began, on and on.

    `first` are the states of all entities; those without a rhythm stay as they are. `behind` are the entities
    that are reached by the Zigbee bridge. `zone` is where the house stands.
    """

    def __init__(
        self, began_at: datetime, zone: tzinfo, first: Mapping[str, str], behind: Collection[str]
    ) -> None:
        self._began_at = began_at
        self._zone = zone
        self._first = first
        self._behind = sorted(behind)
        self._first_day = (began_at - PAST).astimezone(zone).date()
        hours_ago = began_at.astimezone(zone).hour % FULL_HOURS
        anchor = began_at.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
        self._battery_dead_at = anchor - BATTERY_DEAD
        self._bridge_out_at = anchor - BRIDGE_OUT
        battery = falling(self._battery_dead_at, 3, 5.2)
        self._rhythms = {**_RHYTHMS, "sensor.bathroom_leak_battery": battery}
        self._days: dict[tuple[str, date], list[Point]] = {}

    def points(self, entity_id: str, start: datetime, end: datetime) -> list[Point]:
        """Return the state of an entity at `start`, or when the past begins, and all changes until `end`."""
        if entity_id not in self._first:
            return []
        start = max(start, self._midnight(self._first_day))
        found: list[Point] = []
        day, last = start.astimezone(self._zone).date(), end.astimezone(self._zone).date()
        while day <= last:
            found += self._day(entity_id, day)
            day += timedelta(days=1)
        at_start = bisect_right(found, start, key=attrgetter("at"))
        until = bisect_right(found, end, key=attrgetter("at"))
        if not found or until < at_start:
            return []
        return list(_without_repeats([Point(start, found[at_start - 1].state), *found[at_start:until]]))

    def triggers(self, automation: str, start: datetime, end: datetime) -> list[datetime]:
        """Return when an automation ran."""
        cause = {_NIGHT_LIGHT: "light.hallway", _EVENING_LIGHTS: "light.garden_path"}.get(automation)
        points = self.points(cause, start, end) if cause else []
        pairs = pairwise(points)
        return [after.at for before, after in pairs if (before.state, after.state) == ("off", "on")]

    def logbook(self, start: datetime, end: datetime) -> list[LogbookEntry]:
        """Return what automations did; the house tells the changes of states itself."""
        entries: list[LogbookEntry] = []
        for at in self.triggers(_EVENING_LIGHTS, start, end):
            entries.append(
                _triggered(at, "Evening lights", "numeric state of Garden illuminance", _EVENING_LIGHTS)
            )
            for entity_id, name in _LIT_IN_THE_EVENING:
                entries.append(LogbookEntry(at, name, "turned on", entity_id, "automation Evening lights"))
        for at in self.triggers(_NIGHT_LIGHT, start, end):
            entries.append(_triggered(at, "Hallway night light", "state of Hallway motion", _NIGHT_LIGHT))
            cause = "automation Hallway night light"
            entries.append(LogbookEntry(at, "Hallway light", "turned on", "light.hallway", cause))
        return sorted(entries, key=attrgetter("at"))

    def log(self, now: datetime) -> list[LogRecord]:
        """Return the system log, as far as it is about the faults."""
        records = []
        for times, level, source, message in self._lines(now):
            past = [at for at in times if at <= now]
            if past:
                records.append(LogRecord(past[-1], past[0], level, source, message, len(past)))
        return sorted(records, key=attrgetter("at"))

    def _lines(self, now: datetime) -> Iterator[_Line]:
        """Say which lines are in the log, and when they come until `now`, or later."""
        failed = self.triggers(_NIGHT_LIGHT, self._midnight(self._first_day), now)
        source = f"homeassistant.components.{_NIGHT_LIGHT}"
        gone = "Action notify.mobile_app_pixel_6 not found."
        script = "Hallway night light: Error executing script. Service not found for call_service at pos 2"
        yield failed, "error", source, f"{script}: {gone}"
        yield failed, "error", source, f"Error while executing automation {_NIGHT_LIGHT}: {gone}"

        dips = [at for day in self._days_until(now) for at in self._dips(day)]
        dimmer, meter = (
            "Bedroom dimmer (light.bedroom_ceiling)",
            "Bedroom circuit meter (sensor.bedroom_voltage)",
        )
        yield dips, "warning", _SHELLY, f"{dimmer}: device restarted, reset reason brownout"
        yield dips, "warning", _SHELLY, f"{meter}: undervoltage, below 207 V"

        dead_at, leak = self._battery_dead_at, "Bathroom leak sensor (binary_sensor.bathroom_leak)"
        low = [dead_at - timedelta(hours=hours) for hours in (26, 14, 2)]
        silent = [dead_at + timedelta(minutes=minutes) for minutes in (0, 30, 60, 120)]
        yield low, "warning", _ZHA, f"{leak}: battery is low (below 10 %)"
        yield silent, "warning", _ZHA, f"{leak}: device does not answer, marked as unavailable"

        out_at, port = self._bridge_out_at, "/dev/ttyUSB0 (NCP entered failed state)"
        yield [out_at], "error", _ZHA, f"Zigbee bridge: lost connection to {port}, reconnecting"
        lost = f"Zigbee bridge: {len(self._behind)} entities are unavailable while it is disconnected"
        yield [out_at + timedelta(seconds=10)], "warning", _ZHA, lost

    def _day(self, entity_id: str, day: date) -> list[Point]:
        """Return an entity's day: its rhythm, with the faults over it."""
        found = self._days.get((entity_id, day))
        if found is not None:
            return found
        start, end = self._midnight(day), self._midnight(day + timedelta(days=1))
        rhythm = self._rhythms.get(entity_id) or steady(self._first[entity_id])
        moments = sorted(rhythm(Day(day, start, entity_id)), key=lambda moment: moment[0])
        points = [Point(start + timedelta(seconds=second), state) for second, state in moments]
        for span in sorted(self._faults(entity_id, day)):
            if span.start < end and span.end > start:
                points = _overlaid(points, _Span(max(span.start, start), min(span.end, end), span.state))
        found = list(_without_repeats(point for point in points if point.at < end))
        self._days[entity_id, day] = found
        return found

    def _faults(self, entity_id: str, day: date) -> Iterator[_Span]:
        out_at = self._bridge_out_at
        if entity_id == _BRIDGE:
            yield _Span(out_at, out_at + timedelta(seconds=BRIDGE_OUT_S), "off")
        if entity_id in self._behind:
            after = Random(entity_id).uniform(2, 9)
            back = BRIDGE_OUT_S + Random(entity_id).uniform(2, 24)
            yield _Span(out_at + timedelta(seconds=after), out_at + timedelta(seconds=back), UNAVAILABLE)
        if entity_id in _LEAK:
            yield _Span(self._battery_dead_at, self._battery_dead_at + _FOR_GOOD, UNAVAILABLE)
        if entity_id in ("light.bedroom_ceiling", "sensor.bedroom_voltage"):
            for at in self._dips(day):
                yield from _flicker(entity_id, at)

    def _dips(self, day: date) -> list[datetime]:
        """Return when the mains voltage of the bedroom dips on a day."""
        if self._midnight(day) < self._began_at - FLICKERING:
            return []
        chances = Random(f"dips|{day}")
        midnight = self._midnight(day)
        return [
            midnight + timedelta(hours=hour, minutes=minute, seconds=chances.uniform(0, 50))
            for hour, minute in FLICKER_AT
        ]

    def _days_until(self, now: datetime) -> Iterator[date]:
        day = self._first_day
        while day <= now.astimezone(self._zone).date():
            yield day
            day += timedelta(days=1)

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time.min, self._zone).astimezone(self._began_at.tzinfo)


def _flicker(entity_id: str, at: datetime) -> Iterator[_Span]:
    """Return what a dip of the mains does: the light goes off twice, or cannot be reached for a moment."""
    chances = Random(at.isoformat())
    volts, gone = chances.uniform(190, 199), chances.random() < 0.3

    def span(start_s: float, end_s: float, state: str) -> _Span:
        return _Span(at + timedelta(seconds=start_s), at + timedelta(seconds=end_s), state)

    if entity_id == "sensor.bedroom_voltage":
        yield span(0, 4, f"{volts:.1f}")
        return
    yield span(0.4, 1.1, "off")
    yield span(2.3, 3.1, "off")
    if gone:
        yield span(3.6, 7.2, UNAVAILABLE)


def _overlaid(points: list[Point], span: _Span) -> list[Point]:
    """Put a span over an entity's points; after it, the entity is where it would have been."""
    before = [point for point in points if point.at < span.start]
    after = [point for point in points if point.at > span.end]
    back = points[len(points) - len(after) - 1].state
    return [*before, Point(span.start, span.state), Point(span.end, back), *after]


def _without_repeats(points: Iterable[Point]) -> Iterator[Point]:
    state = None
    for point in points:
        if point.state != state:
            yield point
        state = point.state


def _triggered(at: datetime, name: str, by: str, entity_id: str) -> LogbookEntry:
    return LogbookEntry(at, name, f"triggered by {by}", entity_id)
