"""The times in which an entity was in a state, read from its history."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sash.intents.past.asked_states import AskedState
from sash.ports.home import NO_STATE, HistoryPoint

# A state is taken to last over a gap of this length, as when a bridge restarts.
MAX_GAP = timedelta(minutes=10)
# A history that begins later than this after the time that was asked for is not complete.
LATE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Period:
    """A time in the asked state. `has_begun` is False if the record began within it."""

    start: datetime
    end: datetime
    has_begun: bool = True

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class StateRecord:
    """What the history tells about a state from `start` to `end`. `other_state` is the last other state.

    `recorded_from` is the beginning of the record if it is later than the time that was asked for.
    """

    start: datetime
    end: datetime
    periods: tuple[Period, ...]
    other_state: str | None = None
    recorded_from: datetime | None = None

    @property
    def total(self) -> timedelta:
        return sum((period.length for period in self.periods), timedelta())

    @property
    def begun(self) -> tuple[Period, ...]:
        """The periods that began with a change."""
        return tuple(period for period in self.periods if period.has_begun)

    @property
    def is_on_at_end(self) -> bool:
        return bool(self.periods) and self.periods[-1].end >= self.end

    @property
    def share(self) -> float:
        """The part of the recorded time in the state, from 0 to 1."""
        whole = self.end - max(self.start, self.recorded_from or self.start)
        return self.total / whole if whole else float(bool(self.periods))


def read_record(
    points: Sequence[HistoryPoint], asked: AskedState, start: datetime, end: datetime
) -> StateRecord | None:
    """Return the record of a state; None if nothing is recorded in this time."""
    if not points:
        return None
    periods: list[Period] = []
    other: str | None = None
    was_known_otherwise = False
    for point, until in _list_lasting(points, asked, end):
        if asked.matches(point.state):
            if periods and periods[-1].end == point.at:
                periods[-1] = Period(periods[-1].start, until, periods[-1].has_begun)
            else:
                periods.append(Period(point.at, until, was_known_otherwise))
            was_known_otherwise = False
        elif point.state not in NO_STATE:
            other, was_known_otherwise = point.state, True
    late = points[0].at - start > LATE
    return StateRecord(start, end, tuple(periods), other, points[0].at if late else None)


def _list_lasting(
    points: Sequence[HistoryPoint], asked: AskedState, end: datetime
) -> Iterator[tuple[HistoryPoint, datetime]]:
    """Yield each point with its end. A short gap belongs to the state before it."""
    kept: list[HistoryPoint] = []
    for n, point in enumerate(points):
        until = points[n + 1].at if n + 1 < len(points) else end
        is_gap = point.state in NO_STATE and not asked.matches(point.state)
        if is_gap and kept and until - point.at <= MAX_GAP and n + 1 < len(points):
            continue
        if not kept or kept[-1].state != point.state:
            kept.append(point)
    for n, point in enumerate(kept):
        until = kept[n + 1].at if n + 1 < len(kept) else end
        if until > point.at or n + 1 == len(kept):
            yield point, max(until, point.at)
