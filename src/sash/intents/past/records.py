"""Reads the states of a time from the history of a home."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sash.intents.past.question import Target
from sash.intents.past.state_periods import StateRecord, read_record
from sash.intents.sentence.moments import Span
from sash.intents.situation import Situation
from sash.ports.home import HistoryPoint

# The times before now in which the last change is searched, shortest first.
LOOK_BACK = (timedelta(days=1), timedelta(days=10))
# The longest history of states that is read, and how far back it is searched for its beginning.
MAX_SPAN = timedelta(days=31)
# A part of a day, such as "last night", may begin this much earlier.
SLACK = timedelta(hours=1)
# The live state counts if a span ends this short before now. A home writes its history some seconds late.
_NOW = timedelta(seconds=5)

Records = list[tuple[Target, StateRecord]]


async def read_records(
    situation: Situation, targets: Sequence[Target], start: datetime, end: datetime
) -> Records:
    """Return the records of the targets that have one in this time."""
    start = max(start, end - MAX_SPAN)
    ids = [target.entity.id for target in targets]
    histories = await situation.home.home.get_history(ids, start, end)
    found = []
    for target in targets:
        assert target.asked is not None
        points: Sequence[HistoryPoint] = histories.get(target.entity.id, [])
        if situation.now - end <= _NOW:
            points = _add_live_state(situation, target.entity.id, points)
        record = read_record(points, target.asked, start, end)
        if record is not None:
            found.append((target, record))
    return found


async def read_latest_records(situation: Situation, targets: Sequence[Target], count: int = 1) -> Records:
    """Return records up to now that reach back to the last `count` changes into the asked state."""
    found: Records = []
    for span in LOOK_BACK:
        found = await read_records(situation, targets, situation.now - span, situation.now)
        if sum(len(record.begun) for _, record in found) >= count:
            break
    return found


async def read_with_slack(
    situation: Situation, targets: Sequence[Target], span: Span, *, is_rough: bool
) -> Records:
    """Return the records of a span.

    If the span is only roughly known ("last night") and nothing changed in it, start one hour earlier.
    """
    found = await read_records(situation, targets, span.start, span.end)
    if not is_rough or any(record.begun for _, record in found):
        return found
    wider = await read_records(situation, targets, span.start - SLACK, span.end)
    return wider if any(record.begun for _, record in wider) else found


async def find_first_record(
    situation: Situation, targets: Sequence[Target], after: datetime
) -> datetime | None:
    """Return the beginning of the records after a time without one; None if it is not found."""
    start = max(after, situation.now - MAX_SPAN)
    ids = [target.entity.id for target in targets]
    histories = await situation.home.home.get_history(ids, start, situation.now)
    return min((points[0].at for points in histories.values() if points), default=None)


def _add_live_state(
    situation: Situation, entity_id: str, points: Sequence[HistoryPoint]
) -> Sequence[HistoryPoint]:
    state = situation.index.states.get(entity_id)
    if state is None or (points and (points[-1].state == state.state or points[-1].at >= state.changed_at)):
        return points
    return [*points, HistoryPoint(state.changed_at, state.state)]
