"""What has happened in a simulated house: what its history tells, and what was done on top of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sash.demo.logbook_words import in_words
from sash.ports.home import UNKNOWN, LogbookEntry, LogRecord, Point, State

# How long ago a state is looked for when the house begins.
_LOOK_BACK = (timedelta(days=1), timedelta(days=7))

History = Callable[[str, datetime, datetime], Sequence[Point]]
Logbook = Callable[[datetime, datetime], Sequence[LogbookEntry]]
Log = Callable[[datetime], Sequence[LogRecord]]


@dataclass(frozen=True, slots=True)
class Derived:
    """A state, or an attribute, that follows from the states of others.

    `value` makes it of their states, in the order of `uses`, and of the value so far.
    """

    entity_id: str
    uses: tuple[str, ...]
    value: Callable[[list[str], Any], Any]
    attribute: str | None = None


class Change(NamedTuple):
    """An entity came to a state, and what made it do so."""

    at: datetime
    state: str
    cause: str = ""


class Past:
    """The past of every entity, to be asked for any time span.

    `history` returns the state at the span's start and all changes in it, always the same ones for the same
    span. An entity that was touched follows its own changes from then on, and no longer the history.
    """

    def __init__(
        self,
        first: Iterable[State],
        derived: Iterable[Derived],
        history: History | Mapping[str, Sequence[Point]] | None,
        logbook: Logbook | Sequence[LogbookEntry],
        log: Log | Sequence[LogRecord],
    ) -> None:
        self._first = {state.entity_id: Point(state.changed_at, state.state) for state in first}
        self._derived = {one.entity_id: one for one in derived if one.attribute is None}
        self._history = history if callable(history) else _stored(history or {}, self._first)
        self._logbook = logbook if callable(logbook) else _within(logbook)
        self._log = log if callable(log) else _always(log)
        self._logged: list[LogRecord] = []
        self._touched: dict[str, list[Change]] = defaultdict(list)

    def touch(self, entity_id: str, change: Change) -> None:
        """Note what somebody did to an entity."""
        self._touched[entity_id].append(change)

    def is_touched(self, entity_id: str) -> bool:
        return entity_id in self._touched

    def latest(self, entity_id: str, now: datetime) -> Point:
        """Return the state of an entity that nobody has touched, and since when it is so."""
        first = self._first[entity_id]
        for span in _LOOK_BACK:
            points = self._history(entity_id, now - span, now)
            if len(points) > 1:
                return points[-1]
        return points[0] if points and points[0].state != first.state else first

    def coming(self, entity_id: str, after: datetime, until: datetime) -> list[Point]:
        """Return the changes that an entity makes by itself after a moment."""
        if entity_id in self._touched:
            return []
        return [point for point in self._history(entity_id, after, until) if point.at > after]

    def changes(self, entity_id: str, start: datetime, end: datetime) -> list[Change]:
        """Return the state at `start`, if it is known, and all changes until `end`."""
        changes = self._told(entity_id, start, end)
        if touched := self._touched.get(entity_id):
            changes = [change for change in changes if change.at < touched[0].at] + touched
        return _clipped(changes, start, end)

    def _told(self, entity_id: str, start: datetime, end: datetime) -> list[Change]:
        if derived := self._derived.get(entity_id):
            return self._follow(derived, start, end)
        points = self._history(entity_id, start, end)
        if not points and entity_id in self._first:
            points = [self._first[entity_id]]
        return [Change(point.at, point.state) for point in points]

    def _follow(self, derived: Derived, start: datetime, end: datetime) -> list[Change]:
        moves = sorted(
            (change.at, number, change.state)
            for number, used in enumerate(derived.uses)
            for change in self.changes(used, start, end)
        )
        states, value = [UNKNOWN] * len(derived.uses), UNKNOWN
        values: dict[datetime, str] = {}
        for at, number, state in moves:
            states[number] = state
            values[at] = value = derived.value(states, value)
        return [Change(at, value) for at, value in values.items()]

    def logbook(self, states: Iterable[State], start: datetime, end: datetime) -> list[LogbookEntry]:
        """Return what the logbook tells, and the changes of these entities, unless they only measure."""
        entries = list(self._logbook(start, end))
        told = {(entry.at, entry.entity_id) for entry in entries}
        for state in states:
            if state.domain != "sensor" and not state.unit:
                entries += [e for e in self._entries(state, start, end) if (e.at, e.entity_id) not in told]
        return sorted(entries, key=lambda entry: entry.at)

    def _entries(self, state: State, start: datetime, end: datetime) -> Iterator[LogbookEntry]:
        name = str(state.attributes.get("friendly_name", state.entity_id))
        device_class = str(state.attributes.get("device_class", ""))
        for change in self.changes(state.entity_id, start, end):
            if change.at > start:
                message = in_words(state.domain, device_class, change.state)
                yield LogbookEntry(change.at, name, message, state.entity_id, change.cause)

    def log(self, now: datetime) -> list[LogRecord]:
        """Return the log, each line once, oldest first."""
        lines: dict[tuple[str, str], LogRecord] = {}
        for record in sorted([*self._log(now), *self._logged], key=lambda record: record.at):
            key = (record.source, record.message)
            if before := lines.get(key):
                first_at = min(before.first_at, record.first_at)
                record = replace(record, first_at=first_at, count=before.count + record.count)
            lines[key] = record
        return sorted(lines.values(), key=lambda record: record.at)

    def add_log(
        self, at: datetime, level: Literal["warning", "error", "critical"], source: str, message: str
    ) -> None:
        self._logged.append(LogRecord(at, at, level, source, message))


def _clipped(changes: Iterable[Change], start: datetime, end: datetime) -> list[Change]:
    clipped: list[Change] = []
    for change in changes:
        if change.at > end:
            break
        if change.at <= start:
            clipped = [Change(start, change.state)]
        elif not clipped or clipped[-1].state != change.state:
            clipped.append(change)
    return clipped


def _stored(points: Mapping[str, Sequence[Point]], first: Mapping[str, Point]) -> History:
    """Make a history of stored points; the state that an entity was given counts if it is the latest."""
    changes = {key: [Change(point.at, point.state) for point in some] for key, some in points.items()}
    for key, point in first.items():
        if key in changes and (not changes[key] or changes[key][-1].at <= point.at):
            changes[key].append(Change(point.at, point.state))

    def history(entity_id: str, start: datetime, end: datetime) -> list[Point]:
        return [Point(c.at, c.state) for c in _clipped(changes.get(entity_id, ()), start, end)]

    return history


def _within(entries: Sequence[LogbookEntry]) -> Logbook:
    return lambda start, end: [entry for entry in entries if start <= entry.at <= end]


def _always(records: Sequence[LogRecord]) -> Log:
    return lambda _: records
