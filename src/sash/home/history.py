"""What an entity's past adds up to: the numbers of a sensor, or how long it was on."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from sash.ports.home import NO_STATE, Point

MAX_POINTS = 24
MAX_CHANGES = 30
MAX_STATES = 8
LONGEST_STATE = 60
# What is larger was not measured.
LARGEST = 1e15


class Numbers(NamedTuple):
    """The points of a history that are numbers."""

    times: list[datetime]
    values: list[float]


def numbers(points: Sequence[Point]) -> Numbers:
    """Return those points that are numbers."""
    found = [(point.at, value) for point in points if (value := as_number(point.state)) is not None]
    return Numbers([at for at, _ in found], [value for _, value in found])


def as_number(state: str) -> float | None:
    try:
        value = float(state)
    except ValueError:
        return None
    return value if abs(value) < LARGEST else None


def is_numeric(points: Sequence[Point]) -> bool:
    """Whether a history is one of numbers; that it was not there for a while does not matter."""
    known = [point.state for point in points if point.state not in NO_STATE and point.state != "nan"]
    return bool(known) and all(as_number(state) is not None for state in known)


def summarize(
    points: Sequence[Point], start: datetime, end: datetime, unit: str, zone: tzinfo | None
) -> dict[str, Any]:
    """Say in a few numbers what a history was."""
    if not points:
        return {"note": "no history in this time"}
    gaps = sum(point.state in NO_STATE for point in points)
    summary = (
        _summarize_numbers(points, start, end, unit, zone)
        if is_numeric(points)
        else _summarize_states(points, start, end, zone)
    )
    return summary | ({"times_unavailable": gaps} if gaps else {})


def _summarize_numbers(
    points: Sequence[Point], start: datetime, end: datetime, unit: str, zone: tzinfo | None
) -> dict[str, Any]:
    times, values = numbers(points)
    lowest, highest = min(values), max(values)
    shown = _thinned(list(zip(times, values, strict=True)), start, end)
    return {
        "unit": unit,
        "min": lowest,
        "max": highest,
        "mean": round(_mean(points, end), 3),
        "first": values[0],
        "last": values[-1],
        "min_at": _time(times[values.index(lowest)], zone),
        "max_at": _time(times[values.index(highest)], zone),
        "points": [[_time(at, zone), value] for at, value in shown],
    }


def _summarize_states(
    points: Sequence[Point], start: datetime, end: datetime, zone: tzinfo | None
) -> dict[str, Any]:
    lasting: dict[str, timedelta] = defaultdict(timedelta)
    for point, until in _spans(points, end):
        lasting[point.state] += until - max(point.at, start)
    changes = [point for n, point in enumerate(points) if n and point.state != points[n - 1].state]
    shown = changes[-MAX_CHANGES:]
    longest = sorted(lasting, key=lambda state: lasting[state], reverse=True)[:MAX_STATES]
    return {
        "state": points[-1].state[:LONGEST_STATE],
        "lasted": {state[:LONGEST_STATE]: in_words(lasting[state]) for state in longest},
        "changes": len(changes),
        "last_changes": [[_time(point.at, zone), point.state[:LONGEST_STATE]] for point in shown],
    }


def in_words(time: timedelta) -> str:
    """Write a duration: 3 h 12 min."""
    seconds = max(0, round(time.total_seconds()))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _spans(points: Sequence[Point], end: datetime) -> list[tuple[Point, datetime]]:
    """Return each point with the time until which it was so."""
    untils = [point.at for point in points[1:]] + [max(end, points[-1].at)]
    return list(zip(points, untils, strict=True))


def _mean(points: Sequence[Point], end: datetime) -> float:
    """Return the mean over time: a value counts for as long as it lasted."""
    total = weight = 0.0
    for point, until in _spans(points, end):
        value = as_number(point.state)
        if value is not None:
            seconds = max((until - point.at).total_seconds(), 1e-3)
            total += value * seconds
            weight += seconds
    return total / weight


def _thinned(
    points: list[tuple[datetime, float]], start: datetime, end: datetime
) -> list[tuple[datetime, float]]:
    """Return a few points that show the course: the last one of each stretch of time."""
    if len(points) <= MAX_POINTS:
        return points
    stretch = (end - start) / MAX_POINTS
    last = {int((at - start) / stretch): (at, value) for at, value in points}
    return list(last.values())


def _time(at: datetime, zone: tzinfo | None) -> str:
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
