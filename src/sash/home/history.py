"""Summaries of an entity's history: statistics of numbers, durations of other states."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from sash.ports.home import NO_STATE, HistoryPoint

MAX_POINTS = 24
MAX_CHANGES = 30
MAX_STATES = 8
MAX_STATE_CHARS = 60
# Larger numbers are not measurements.
MAX_NUMBER = 1e15


class NumberSeries(NamedTuple):
    """Numbers with their times, in two lists of the same length."""

    times: list[datetime]
    values: list[float]


def extract_numbers(points: Sequence[HistoryPoint]) -> NumberSeries:
    """Return the points whose state is a number, with their times."""
    found = [(point.at, value) for point in points if (value := parse_number(point.state)) is not None]
    return NumberSeries([at for at, _ in found], [value for _, value in found])


def parse_number(state: str) -> float | None:
    """Return a state as a number; None if it is not a number, or implausibly large."""
    try:
        value = float(state)
    except ValueError:
        return None
    return value if abs(value) < MAX_NUMBER else None


def is_numeric(points: Sequence[HistoryPoint]) -> bool:
    """Return whether all states are numbers. Unavailable and unknown states are ignored."""
    known = [point.state for point in points if point.state not in NO_STATE and point.state != "nan"]
    return bool(known) and all(parse_number(state) is not None for state in known)


def summarize_history(
    points: Sequence[HistoryPoint], start: datetime, end: datetime, unit: str, zone: tzinfo | None
) -> dict[str, Any]:
    """Return the summary of a history as JSON values: statistics of numbers, or durations of states."""
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
    points: Sequence[HistoryPoint], start: datetime, end: datetime, unit: str, zone: tzinfo | None
) -> dict[str, Any]:
    times, values = extract_numbers(points)
    lowest, highest = min(values), max(values)
    shown = _thin_out(list(zip(times, values, strict=True)), start, end)
    return {
        "unit": unit,
        "min": lowest,
        "max": highest,
        "mean": round(_compute_mean(points, end), 3),
        "first": values[0],
        "last": values[-1],
        "min_at": _format_time(times[values.index(lowest)], zone),
        "max_at": _format_time(times[values.index(highest)], zone),
        "points": [[_format_time(at, zone), value] for at, value in shown],
    }


def _summarize_states(
    points: Sequence[HistoryPoint], start: datetime, end: datetime, zone: tzinfo | None
) -> dict[str, Any]:
    durations: dict[str, timedelta] = defaultdict(timedelta)
    for point, until in _list_spans(points, end):
        durations[point.state] += until - max(point.at, start)
    changes = [point for n, point in enumerate(points) if n and point.state != points[n - 1].state]
    shown = changes[-MAX_CHANGES:]
    longest = sorted(durations, key=lambda state: durations[state], reverse=True)[:MAX_STATES]
    return {
        "state": points[-1].state[:MAX_STATE_CHARS],
        "lasted": {state[:MAX_STATE_CHARS]: format_duration(durations[state]) for state in longest},
        "changes": len(changes),
        "last_changes": [[_format_time(point.at, zone), point.state[:MAX_STATE_CHARS]] for point in shown],
    }


def format_duration(duration: timedelta) -> str:
    """Return a text such as "3 h 12 min"."""
    seconds = max(0, round(duration.total_seconds()))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _list_spans(points: Sequence[HistoryPoint], end: datetime) -> list[tuple[HistoryPoint, datetime]]:
    """Return each point with the time at which its state ended, at the latest `end`."""
    untils = [point.at for point in points[1:]] + [max(end, points[-1].at)]
    return list(zip(points, untils, strict=True))


def _compute_mean(points: Sequence[HistoryPoint], end: datetime) -> float:
    """Return the mean of the numbers among the points, weighted by the duration of each value."""
    total = weight = 0.0
    for point, until in _list_spans(points, end):
        value = parse_number(point.state)
        if value is not None:
            seconds = max((until - point.at).total_seconds(), 1e-3)
            total += value * seconds
            weight += seconds
    return total / weight


def _thin_out(
    points: list[tuple[datetime, float]], start: datetime, end: datetime
) -> list[tuple[datetime, float]]:
    """Return at most `MAX_POINTS` points: the last one of each equal interval."""
    if len(points) <= MAX_POINTS:
        return points
    interval = (end - start) / MAX_POINTS
    last = {int((at - start) / interval): (at, value) for at, value in points}
    return list(last.values())


def _format_time(at: datetime, zone: tzinfo | None) -> str:
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
