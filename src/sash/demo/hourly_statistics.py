"""Long-term statistics of a simulated home, computed from its history."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sash.home.history import parse_number
from sash.ports.home import HistoryPoint, HourlyStatistics

HOUR = timedelta(hours=1)


def compute_statistics(
    points: Sequence[HistoryPoint], start: datetime, end: datetime, *, is_meter: bool
) -> Iterator[HourlyStatistics]:
    """Yield the statistics of each full hour that begins between `start` and `end`.

    `points` begin with the state at `start`. A meter counts up. An hour without a number is left out.
    """
    numbers = [(point.at, number) for point in points if (number := parse_number(point.state)) is not None]
    hour = start.replace(minute=0, second=0, microsecond=0)
    hour += HOUR if hour < start else timedelta()
    index, value = 0, None
    while hour + HOUR <= end:
        while index < len(numbers) and numbers[index][0] <= hour:
            value = numbers[index][1]
            index += 1
        first = index
        while index < len(numbers) and numbers[index][0] <= hour + HOUR:
            index += 1
        within = numbers[first:index]
        if value is not None and is_meter:
            total = within[-1][1] if within else value
            yield HourlyStatistics(hour, sum=round(total, 3), change=round(total - value, 3))
            value = total
        elif value is not None:
            values = [value, *(number for _, number in within)]
            mean = _weigh(value, within, hour)
            yield HourlyStatistics(hour, round(mean, 3), min(values), max(values))
            value = values[-1]
        elif within:
            value = within[-1][1]
        hour += HOUR


def _weigh(value: float, within: Sequence[tuple[datetime, float]], hour: datetime) -> float:
    """Return the mean of an hour. Each value counts for as long as it lasted."""
    total, since = 0.0, hour
    for at, number in within:
        total += value * (at - since).total_seconds()
        value, since = number, at
    total += value * (hour + HOUR - since).total_seconds()
    return total / HOUR.total_seconds()
