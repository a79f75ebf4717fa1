"""The recorded past of a simulated home: its prepared history, and the changes that were made since."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sash.demo.logbook_messages import describe_change
from sash.ports.home import UNKNOWN, HistoryPoint, LogbookEntry, LogRecord, State

# The spans before now in which the newest change is searched, shortest first.
_LOOK_BACK = (timedelta(days=1), timedelta(days=7))

HistorySource = Callable[[str, datetime, datetime], Sequence[HistoryPoint]]
LogbookSource = Callable[[datetime, datetime], Sequence[LogbookEntry]]
LogSource = Callable[[datetime], Sequence[LogRecord]]


@dataclass(frozen=True, slots=True)
class DerivedState:
    """A state, or an attribute, that is computed from the states of other entities.

    `compute` receives the states of the entities in `uses`, in that order, and the current value.
    """

    entity_id: str
    uses: tuple[str, ...]
    compute: Callable[[list[str], Any], Any]
    attribute: str | None = None


class Change(NamedTuple):
    """A change of an entity to a new state at a time, with its cause in words."""

    at: datetime
    state: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class RecordedPast:
    """The prepared past of a simulated home, as stored values or as functions of the time.

    A history function returns the state at the start of a span and all changes in it. The logbook need not
    contain changes of states, because the recorder adds them.
    """

    history: HistorySource | Mapping[str, Sequence[HistoryPoint]] | None = None
    logbook: LogbookSource | Sequence[LogbookEntry] = ()
    log: LogSource | Sequence[LogRecord] = ()

    @property
    def continues(self) -> bool:
        """Whether the history also defines future changes."""
        return callable(self.history)


class HomeRecorder:
    """Returns the past of every entity for any time span.

    From its first `override` on, an entity follows its recorded changes, and no longer the prepared history.
    """

    def __init__(
        self, first_states: Iterable[State], derived: Iterable[DerivedState], past: RecordedPast
    ) -> None:
        self._first = {state.entity_id: HistoryPoint(state.changed_at, state.state) for state in first_states}
        self._derived = {each.entity_id: each for each in derived if each.attribute is None}
        history, logbook, log = past.history, past.logbook, past.log
        self._history = history if callable(history) else _read_points(history or {}, self._first)
        self._logbook = logbook if callable(logbook) else _read_entries(logbook)
        self._log = log if callable(log) else lambda now: log
        self._added_records: list[LogRecord] = []
        self._overrides: dict[str, list[Change]] = defaultdict(list)

    def override(self, entity_id: str, change: Change) -> None:
        """Record a change that the prepared history does not contain."""
        self._overrides[entity_id].append(change)

    def is_overridden(self, entity_id: str) -> bool:
        return entity_id in self._overrides

    def find_latest(self, entity_id: str, now: datetime) -> HistoryPoint:
        """Return the newest change of an entity without overrides, or its initial state."""
        first = self._first[entity_id]
        for span in _LOOK_BACK:
            points = self._history(entity_id, now - span, now)
            if len(points) > 1:
                return points[-1]
        return points[0] if points and points[0].state != first.state else first

    def list_own_changes(self, entity_id: str, after: datetime, until: datetime) -> list[HistoryPoint]:
        """Return the changes of the prepared history after a time; empty for an overridden entity."""
        if entity_id in self._overrides:
            return []
        return [point for point in self._history(entity_id, after, until) if point.at > after]

    def list_changes(self, entity_id: str, start: datetime, end: datetime) -> list[Change]:
        """Return the state at `start`, if it is known, and all changes until `end`."""
        changes = self._list_given_changes(entity_id, start, end)
        if overrides := self._overrides.get(entity_id):
            changes = [change for change in changes if change.at < overrides[0].at] + overrides
        return _clip(changes, start, end)

    def _list_given_changes(self, entity_id: str, start: datetime, end: datetime) -> list[Change]:
        if derived := self._derived.get(entity_id):
            return self._compute_changes(derived, start, end)
        points = self._history(entity_id, start, end)
        if not points and entity_id in self._first:
            points = [self._first[entity_id]]
        return [Change(point.at, point.state) for point in points]

    def _compute_changes(self, derived: DerivedState, start: datetime, end: datetime) -> list[Change]:
        moves = sorted(
            (change.at, number, change.state)
            for number, used in enumerate(derived.uses)
            for change in self.list_changes(used, start, end)
        )
        states, value = [UNKNOWN] * len(derived.uses), UNKNOWN
        values: dict[datetime, str] = {}
        for at, number, state in moves:
            states[number] = state
            values[at] = value = derived.compute(states, value)
        return [Change(at, value) for at, value in values.items()]

    def read_logbook(self, states: Iterable[State], start: datetime, end: datetime) -> list[LogbookEntry]:
        """Return the prepared logbook entries, and an entry for each change of these entities, oldest first.

        Changes of sensors and other measurements get no entry.
        """
        entries = list(self._logbook(start, end))
        known = {(entry.at, entry.entity_id) for entry in entries}
        for state in states:
            if state.domain != "sensor" and not state.unit:
                entries += [
                    e for e in self._describe_changes(state, start, end) if (e.at, e.entity_id) not in known
                ]
        return sorted(entries, key=lambda entry: entry.at)

    def _describe_changes(self, state: State, start: datetime, end: datetime) -> Iterator[LogbookEntry]:
        name = str(state.attributes.get("friendly_name", state.entity_id))
        device_class = str(state.attributes.get("device_class", ""))
        for change in self.list_changes(state.entity_id, start, end):
            if change.at > start:
                message = describe_change(state.domain, device_class, change.state)
                yield LogbookEntry(change.at, name, message, state.entity_id, change.cause)

    def read_log(self, now: datetime) -> list[LogRecord]:
        """Return the system log until `now`, oldest record first. Equal records are merged."""
        records: dict[tuple[str, str], LogRecord] = {}
        for record in sorted([*self._log(now), *self._added_records], key=lambda record: record.at):
            key = (record.source, record.message)
            if before := records.get(key):
                first_at = min(before.first_at, record.first_at)
                record = replace(record, first_at=first_at, count=before.count + record.count)
            records[key] = record
        return sorted(records.values(), key=lambda record: record.at)

    def add_log_record(
        self, at: datetime, level: Literal["warning", "error", "critical"], source: str, message: str
    ) -> None:
        self._added_records.append(LogRecord(at, at, level, source, message))


def _clip(changes: Iterable[Change], start: datetime, end: datetime) -> list[Change]:
    result: list[Change] = []
    for change in changes:
        if change.at > end:
            break
        if change.at <= start:
            result = [Change(start, change.state)]
        elif not result or result[-1].state != change.state:
            result.append(change)
    return result


def _read_points(
    points: Mapping[str, Sequence[HistoryPoint]], first: Mapping[str, HistoryPoint]
) -> HistorySource:
    """Return a history function over stored points.

    The initial state of an entity becomes its newest point, unless a stored point is newer.
    """
    changes = {key: [Change(point.at, point.state) for point in some] for key, some in points.items()}
    for key, point in first.items():
        if key in changes and (not changes[key] or changes[key][-1].at <= point.at):
            changes[key].append(Change(point.at, point.state))

    def history(entity_id: str, start: datetime, end: datetime) -> list[HistoryPoint]:
        return [HistoryPoint(c.at, c.state) for c in _clip(changes.get(entity_id, ()), start, end)]

    return history


def _read_entries(entries: Sequence[LogbookEntry]) -> LogbookSource:
    return lambda start, end: [entry for entry in entries if start <= entry.at <= end]
