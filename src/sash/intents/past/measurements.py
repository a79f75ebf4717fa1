"""Numbers of the past: the extremes and the mean of a measurement, and the consumption of a meter."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from sash.home.history import parse_number
from sash.intents.sentence.moments import Span
from sash.ports.home import HistoryPoint, Home, HourlyStatistics

HOUR = timedelta(hours=1)
# Longer spans are read from the statistics, so that the number of points does not grow with the time.
MAX_HISTORY = timedelta(hours=6)
# Without statistics, the history of this time is read.
MAX_HISTORY_ONLY = timedelta(days=10)
# The hours at the ends of a longer span. Their difference is the consumption.
LONG = timedelta(days=40)
EDGE = timedelta(days=2)


class Sample(NamedTuple):
    """A number with the time from which it was valid."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of a span. `recorded_from` is set if the record begins later than the span."""

    lowest: Sample
    highest: Sample
    mean: float
    recorded_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Consumed:
    """What a meter counted in a span. `recorded_from` is set if the record begins later than the span."""

    amount: float
    recorded_from: datetime | None = None


async def read_value_at(home: Home, entity_id: str, moment: datetime) -> float | None:
    """Return the number that a sensor had at a moment; None if it is not recorded."""
    start = moment - HOUR
    points = (await home.get_history([entity_id], start, moment)).get(entity_id, [])
    known = [sample for sample in _list_samples(points) if sample.at <= moment]
    if known:
        return known[-1].value
    hour = moment.replace(minute=0, second=0, microsecond=0)
    hours = (await home.get_statistics([entity_id], hour, hour + HOUR)).get(entity_id, [])
    return hours[0].mean if hours else None


async def read_measured(home: Home, entity_id: str, span: Span) -> Measured | None:
    """Return the extremes and the mean of a sensor; None if nothing is recorded."""
    hours = await _read_hours(home, entity_id, span)
    known = [hour for hour in hours if hour.min is not None and hour.max is not None]
    if not known:
        if span.end - span.start > MAX_HISTORY_ONLY:
            return None
        points = (await home.get_history([entity_id], span.start, span.end)).get(entity_id, [])
        return measure([], points, span)
    edges = await _read_edges(home, entity_id, span, known)
    return measure(known, edges, span)


async def read_consumed(home: Home, entity_id: str, span: Span) -> Consumed | None:
    """Return what a meter counted; None if nothing is recorded."""
    if span.end - span.start > LONG:
        return await _read_long_consumption(home, entity_id, span)
    hours = [hour for hour in await _read_hours(home, entity_id, span) if hour.sum is not None]
    if not hours:
        if span.end - span.start > MAX_HISTORY_ONLY:
            return None
        points = (await home.get_history([entity_id], span.start, span.end)).get(entity_id, [])
        samples = _list_samples(points)
        late = samples[0].at if samples and samples[0].at - span.start > HOUR else None
        return Consumed(count_increases(samples), late) if samples else None
    amount = _count_hours(hours)
    for start, end in _list_edges(span, hours):
        points = (await home.get_history([entity_id], start, end)).get(entity_id, [])
        amount += count_increases(_list_samples(points))
    return Consumed(amount, _find_late_start(hours, span))


async def read_hour_extreme(home: Home, entity_id: str, sample: Sample, *, highest: bool) -> Sample:
    """Return the exact time of an extreme that the statistics know by its hour."""
    points = (await home.get_history([entity_id], sample.at, sample.at + HOUR)).get(entity_id, [])
    samples = [each for each in _list_samples(points) if sample.at <= each.at <= sample.at + HOUR]
    if not samples:
        return sample
    return max(samples, key=lambda each: each.value if highest else -each.value)


def measure(hours: Sequence[HourlyStatistics], points: Sequence[HistoryPoint], span: Span) -> Measured | None:
    """Return the extremes and the mean of full hours, and of the points outside of them."""
    samples = _list_samples(points)
    lows = [Sample(h.start, h.min) for h in hours if h.min is not None] + samples
    highs = [Sample(h.start, h.max) for h in hours if h.max is not None] + samples
    if not lows or not highs:
        return None
    means = [h.mean for h in hours if h.mean is not None]
    mean = sum(means) / len(means) if means else _weigh(samples, span.end)
    first = min(lows, key=lambda sample: sample.at).at
    late = first if first - span.start > HOUR else None
    lowest = min(lows, key=lambda sample: sample.value)
    return Measured(lowest, max(highs, key=lambda sample: sample.value), mean, late)


def count_increases(samples: Sequence[Sample]) -> float:
    """Return how much a meter counted. After a fall it has begun again at zero."""
    total = 0.0
    for before, after in pairwise(samples):
        total += after.value - before.value if after.value >= before.value else after.value
    return total


async def _read_hours(home: Home, entity_id: str, span: Span) -> list[HourlyStatistics]:
    """Return the full hours within a span; none for a short one, which is read from the history."""
    if span.end - span.start <= MAX_HISTORY:
        return []
    found = (await home.get_statistics([entity_id], span.start, span.end)).get(entity_id, [])
    return [hour for hour in found if hour.start >= span.start and hour.start + HOUR <= span.end]


async def _read_edges(
    home: Home, entity_id: str, span: Span, hours: Sequence[HourlyStatistics]
) -> list[HistoryPoint]:
    found: list[HistoryPoint] = []
    for start, end in _list_edges(span, hours):
        found += (await home.get_history([entity_id], start, end)).get(entity_id, [])
    return found


def _list_edges(span: Span, hours: Sequence[HourlyStatistics]) -> list[tuple[datetime, datetime]]:
    """Return the times before and after the full hours. A long one is a gap of the record."""
    edges = [(span.start, hours[0].start), (hours[-1].start + HOUR, span.end)]
    return [(start, end) for start, end in edges if timedelta() < end - start <= 3 * HOUR]


def _find_late_start(hours: Sequence[HourlyStatistics], span: Span) -> datetime | None:
    return hours[0].start if hours[0].start - span.start > 3 * HOUR else None


def _count_hours(hours: Sequence[HourlyStatistics]) -> float:
    """Return the difference of the totals. It also counts hours without a record between them."""
    first, last = hours[0], hours[-1]
    assert first.sum is not None and last.sum is not None
    return last.sum - first.sum + (first.change or 0.0)


async def _read_long_consumption(home: Home, entity_id: str, span: Span) -> Consumed | None:
    """Return the difference of the totals at the ends of a long span, without the hours between them."""
    first = (await home.get_statistics([entity_id], span.start, span.start + EDGE)).get(entity_id, [])
    last = (await home.get_statistics([entity_id], span.end - EDGE, span.end)).get(entity_id, [])
    hours = [hour for hour in (*first[:1], *last[-1:]) if hour.sum is not None]
    return Consumed(_count_hours(hours)) if len(hours) == 2 else None


def _list_samples(points: Sequence[HistoryPoint]) -> list[Sample]:
    return [Sample(p.at, value) for p in points if (value := parse_number(p.state)) is not None]


def _weigh(samples: Sequence[Sample], end: datetime) -> float:
    """Return the mean. Each value counts for as long as it lasted."""
    total = weight = 0.0
    for n, sample in enumerate(samples):
        until = samples[n + 1].at if n + 1 < len(samples) else end
        seconds = max((until - sample.at).total_seconds(), 1e-3)
        total, weight = total + sample.value * seconds, weight + seconds
    return total / weight
