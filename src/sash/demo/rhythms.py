"""How an entity of the demo house spends a day: curves for what is measured, periods and bursts for the rest.

A rhythm returns the states of one day by seconds since midnight, the first at 0. It is drawn from the date
and a key: the same day is always the same, and rhythms with the same key happen at the same moments.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from random import Random

DAY_S = 86_400
_HOUR_S = 3600
_WEEK = frozenset(range(7))
WORKDAYS = frozenset(range(5))


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the house, and the key that its chances are drawn by."""

    date: date
    start: datetime
    key: str

    def chances(self, *more: object) -> Random:
        return Random("|".join(map(str, (self.key, self.date, *more))))


Moment = tuple[float, str]
Rhythm = Callable[[Day], Iterable[Moment]]


def steady(state: str) -> Rhythm:
    """Stay in one state."""
    return lambda _: [(0, state)]


def measured(value: Callable[[Day, float], float], every_s: int, digits: int = 0) -> Rhythm:
    """Measure a value, a function of the day and its hour, again and again."""

    def rhythm(day: Day) -> Iterator[Moment]:
        for second in range(0, DAY_S, every_s):
            yield second, f"{value(day, second / _HOUR_S):.{digits}f}"

    return rhythm


def curve(mean: float, swing: float, peak_hour: float, noise: float, digits: int = 1) -> Rhythm:
    """Go up and down once a day, with slow noise that knows no midnight."""

    def value(day: Day, hour: float) -> float:
        daily = math.cos((hour - peak_hour) * math.tau / 24)
        return mean + swing * daily + noise * _wobble(day, hour)

    return measured(value, 600, digits)


def daylight(noon_lux: float) -> Rhythm:
    """Be bright from six to six, less so under clouds."""

    def value(day: Day, hour: float) -> float:
        height = max(0.0, math.sin((hour - 6) * math.tau / 24))
        clouds = 0.75 + 0.25 * _wobble(day, hour)
        return noon_lux * height**2 * clouds

    return measured(value, 600)


def load(base_watts: float, *loads: tuple[float, float, float]) -> Rhythm:
    """Draw power: a base, and more from one hour to another."""

    def value(day: Day, hour: float) -> float:
        running = sum(watts for start, end, watts in loads if start <= hour < end)
        wavering = 1 + 0.12 * day.chances(hour).uniform(-1, 1)
        return (base_watts + running) * wavering

    return measured(value, 300)


def falling(anchor: datetime, percent: float, percent_a_day: float) -> Rhythm:
    """Run down like a battery that has `percent` left at the anchor."""

    def value(day: Day, hour: float) -> float:
        days = (day.start - anchor).total_seconds() / DAY_S + hour / 24
        return min(100.0, max(0.0, percent - percent_a_day * days))

    return measured(value, _HOUR_S)


def periods(
    otherwise: str, *parts: tuple[float, float, str], key: str = "", days: Iterable[int] = _WEEK
) -> Rhythm:
    """Be in a state from about one hour to about another, and else in the other one."""
    on_days = frozenset(days)

    def rhythm(day: Day) -> Iterator[Moment]:
        yield 0, parts[0][2] if parts and parts[0][0] == 0 else otherwise
        if day.date.weekday() not in on_days:
            return
        day = Day(day.date, day.start, key or day.key)
        for number, (start, end, state) in enumerate(parts):
            chances, about_s = day.chances(number), min(600, round((end - start) * _HOUR_S / 3))
            earlier, later = (hour * _HOUR_S + chances.randint(-about_s, about_s) for hour in (start, end))
            if start > 0:
                yield earlier, state
            if end < 24:
                yield later, otherwise

    return rhythm


def bursts(
    rest: str, active: str, *parts: tuple[float, float, int], seconds: tuple[int, int], key: str = ""
) -> Rhythm:
    """Be active for moments: so many times from one hour to another, each time for some seconds."""

    def rhythm(day: Day) -> Iterator[Moment]:
        yield 0, rest
        day = Day(day.date, day.start, key or day.key)
        for start, end, times in sorted(parts):
            chances = day.chances(start)
            slot_s = (end - start) * _HOUR_S / times
            for number in range(times):
                begin = round((start * _HOUR_S) + slot_s * (number + 0.6 * chances.random()))
                yield begin, active
                yield begin + round(seconds[0] + (seconds[1] - seconds[0]) * chances.random()), rest

    return rhythm


def changing(every_hours: int, *states: str) -> Rhythm:
    """Take one of some states every few hours."""

    def rhythm(day: Day) -> Iterator[Moment]:
        for hour in range(0, 24, every_hours):
            yield hour * _HOUR_S, day.chances(hour).choice(states)

    return rhythm


def _wobble(day: Day, hour: float) -> float:
    """Return slow noise between -1 and 1 that goes on from day to day."""
    phase = Random(day.key).random() * math.tau
    hours = day.start.timestamp() / _HOUR_S + hour
    return (math.sin(hours / 3.1 + phase) + math.sin(hours / 1.37 + 2 * phase)) / 2
