"""The daily patterns of the demo home: curves for measurements, periods and bursts for other states.

A pattern returns the states of one day, each with its seconds since midnight; the first state is at 0. A
pattern depends only on the date and a key. So a date always has the same states, and patterns with the same
key change at the same times.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random

DAY_S = 86_400
_HOUR_S = 3600
_ALL_DAYS = frozenset(range(7))
WORKDAYS = frozenset(range(5))


@dataclass(frozen=True, slots=True)
class Day:
    """A day, and the key for its random numbers."""

    date: date
    start: datetime
    key: str

    def make_random(self, *more: object) -> Random:
        return Random("|".join(map(str, (self.key, self.date, *more))))


TimedState = tuple[float, str]
DailyPattern = Callable[[Day], Iterable[TimedState]]


def make_constant(state: str) -> DailyPattern:
    """Return a pattern with the same state all day."""
    return lambda _: [(0, state)]


def make_samples(value: Callable[[Day, float], float], every_s: int, digits: int = 0) -> DailyPattern:
    """Return a pattern of measurements every `every_s` seconds. `value` is a function of day and hour."""

    def pattern(day: Day) -> Iterator[TimedState]:
        for second in range(0, DAY_S, every_s):
            yield second, f"{value(day, second / _HOUR_S):.{digits}f}"

    return pattern


def make_curve(mean: float, swing: float, peak_hour: float, noise: float, digits: int = 1) -> DailyPattern:
    """Return a pattern with one maximum per day, and with slow noise that does not jump at midnight."""

    def value(day: Day, hour: float) -> float:
        daily = math.cos((hour - peak_hour) * math.tau / 24)
        return mean + swing * daily + noise * _compute_noise(day, hour)

    return make_samples(value, 600, digits)


def make_daylight(noon_lux: float) -> DailyPattern:
    """Return a pattern of brightness in lux from 6:00 to 18:00, reduced by clouds."""

    def value(day: Day, hour: float) -> float:
        height = max(0.0, math.sin((hour - 6) * math.tau / 24))
        clouds = 0.75 + 0.25 * _compute_noise(day, hour)
        return noon_lux * height**2 * clouds

    return make_samples(value, 600)


def make_load(base_watts: float, *loads: tuple[float, float, float]) -> DailyPattern:
    """Return a pattern of power in watts: a base load and further loads (start hour, end hour, watts)."""

    def value(day: Day, hour: float) -> float:
        running = sum(watts for start, end, watts in loads if start <= hour < end)
        wavering = 1 + 0.12 * day.make_random(hour).uniform(-1, 1)
        return (base_watts + running) * wavering

    return make_samples(value, 300)


def make_meter(load: DailyPattern, key: str, first_day: date, first_kwh: float) -> DailyPattern:
    """Return a pattern of a meter in kWh that counts a load in watts from the first day on, hour by hour.

    `key` is the key of the load. Before the first day the meter stands still.
    """

    def count_hours(day: Day) -> list[float]:
        hours = [0.0] * 24
        samples = list(load(Day(day.date, day.start, key)))
        for second, watts in samples:
            hours[int(second // _HOUR_S)] += float(watts) / 1000 * 24 / len(samples)
        return hours

    counted: dict[date, list[float]] = {}

    def find_hours(day: Day) -> list[float]:
        if day.date not in counted:
            counted[day.date] = count_hours(day)
        return counted[day.date]

    def find_total(day: Day) -> float:
        """Return the total at the start of a day."""
        total, current = first_kwh, first_day
        while current < day.date:
            total += sum(find_hours(Day(current, day.start, key)))
            current += timedelta(days=1)
        return total

    def pattern(day: Day) -> Iterator[TimedState]:
        total = find_total(day)
        yield 0, f"{total:.3f}"
        for hour, kwh in enumerate(find_hours(day)[:-1], 1):
            total += kwh
            yield hour * _HOUR_S, f"{total:.3f}"

    return pattern


def make_battery(anchor: datetime, percent: float, percent_a_day: float) -> DailyPattern:
    """Return a pattern of a battery's level in percent. It has `percent` left at the time `anchor`."""

    def value(day: Day, hour: float) -> float:
        days = (day.start - anchor).total_seconds() / DAY_S + hour / 24
        return min(100.0, max(0.0, percent - percent_a_day * days))

    return make_samples(value, _HOUR_S)


def make_periods(
    otherwise: str, *parts: tuple[float, float, str], key: str = "", days: Iterable[int] = _ALL_DAYS
) -> DailyPattern:
    """Return a pattern of periods (start hour, end hour, state). The hours vary a little."""
    on_days = frozenset(days)

    def pattern(day: Day) -> Iterator[TimedState]:
        yield 0, parts[0][2] if parts and parts[0][0] == 0 else otherwise
        if day.date.weekday() not in on_days:
            return
        day = Day(day.date, day.start, key or day.key)
        for number, (start, end, state) in enumerate(parts):
            random, about_s = day.make_random(number), min(600, round((end - start) * _HOUR_S / 3))
            earlier, later = (hour * _HOUR_S + random.randint(-about_s, about_s) for hour in (start, end))
            if start > 0:
                yield earlier, state
            if end < 24:
                yield later, otherwise

    return pattern


def make_bursts(
    rest: str, active: str, *parts: tuple[float, float, int], seconds: tuple[int, int], key: str = ""
) -> DailyPattern:
    """Return a pattern of short times in the state `active`, which last `seconds` (shortest, longest).

    A part is a start hour, an end hour, and the number of active times between them.
    """

    def pattern(day: Day) -> Iterator[TimedState]:
        yield 0, rest
        day = Day(day.date, day.start, key or day.key)
        for start, end, times in sorted(parts):
            random = day.make_random(start)
            slot_s = (end - start) * _HOUR_S / times
            for number in range(times):
                begin = round((start * _HOUR_S) + slot_s * (number + 0.6 * random.random()))
                yield begin, active
                yield begin + round(seconds[0] + (seconds[1] - seconds[0]) * random.random()), rest

    return pattern


def make_random_changes(every_hours: int, *states: str) -> DailyPattern:
    """Return a pattern that picks a random state every few hours."""

    def pattern(day: Day) -> Iterator[TimedState]:
        for hour in range(0, 24, every_hours):
            yield hour * _HOUR_S, day.make_random(hour).choice(states)

    return pattern


def _compute_noise(day: Day, hour: float) -> float:
    """Return slow noise between -1 and 1 that is continuous over midnight."""
    phase = Random(day.key).random() * math.tau
    hours = day.start.timestamp() / _HOUR_S + hour
    return (math.sin(hours / 3.1 + phase) + math.sin(hours / 1.37 + 2 * phase)) / 2
