"""Answers a question about the past with SQL: loads states, history and statistics, and runs the query."""

import asyncio
import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from io import StringIO
from typing import Any

from sash.errors import InvalidInput
from sash.home.history import parse_number
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.home.query_sandbox import QueryResult, Table, run_query
from sash.ports.home import Entity, HistoryPoint, HourlyStatistics
from sash.ports.tools import ToolContext

MAX_ENTITIES = 8
MAX_HOURS = 24 * 92
DEFAULT_HOURS = 72
MAX_LOADED_ROWS = 100_000
# A larger result becomes an artifact, and the model sees this many of its rows.
MAX_INLINE_ROWS = 60
PREVIEW_ROWS = 12
MAX_INLINE_CHARS = 6000
MAX_PLOTTED_COLUMNS = 8
# Other times are no times of a home, and a plot of all of them would take minutes.
PLOTTED_YEARS = range(1970, 2101)
DESCRIPTION = (
    "Answer a question about the past that get_history cannot, such as sums by day, with one SQLite SELECT: "
    "SELECT date(local_start) AS day, sum(change) FROM statistics GROUP BY day. Tables: states(entity_id, "
    "name, area, state, unit, last_changed); history(entity_id, ts, local_time, state, value): every change, "
    "state is raw (on for an open window), value is the number or NULL; statistics(entity_id, start, "
    "local_start, mean, min, max, sum, change): one row per hour, change is what a meter counted in the "
    "hour; clock(now, local_now, today, yesterday). Columns local_… are texts such as 2026-01-31 18:00:00 in "
    "the time zone of the home, ts and start are Unix seconds. Prefer statistics for energy and long spans."
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Analysis:
    """A query over the last hours before `end` of some entities, given in the index."""

    entities: Sequence[Entity]
    sql: str
    start: datetime
    end: datetime
    zone: tzinfo | None

    async def run(self, live_home: LiveHome) -> QueryResult:
        """Load the tables that the query names, and run the query in a thread."""
        ids = [entity.id for entity in self.entities]
        names = set(_WORD.findall(self.sql.lower()))
        histories: dict[str, list[HistoryPoint]] = {}
        statistics: dict[str, list[HourlyStatistics]] = {}
        if "history" in names:
            histories = await live_home.home.get_history(ids, self.start, self.end)
        if "statistics" in names:
            statistics = await live_home.home.get_statistics(ids, self.start, self.end)
        loaded = sum(map(len, histories.values())) + sum(map(len, statistics.values()))
        if loaded > MAX_LOADED_ROWS:
            raise InvalidInput(
                f"these are {loaded:,} rows, and at most {MAX_LOADED_ROWS:,} are loaded: "
                "take fewer hours or entities"
            )
        states = self._list_states(live_home.index)
        return await asyncio.to_thread(self._query, states, histories, statistics)

    def _query(
        self,
        states: list[tuple[Any, ...]],
        histories: dict[str, list[HistoryPoint]],
        statistics: dict[str, list[HourlyStatistics]],
    ) -> QueryResult:
        now, today = self.end.timestamp(), self.end.astimezone(self.zone).date()
        clock = (now, self._local(self.end), today.isoformat(), (today - timedelta(days=1)).isoformat())
        tables = {
            "states": Table(("entity_id", "name", "area", "state", "unit", "last_changed"), states),
            "history": Table(
                ("entity_id", "ts", "local_time", "state", "value"),
                [
                    (key, p.at.timestamp(), self._local(p.at), p.state, parse_number(p.state))
                    for key, points in histories.items()
                    for p in points
                ],
            ),
            "statistics": Table(
                ("entity_id", "start", "local_start", "mean", "min", "max", "sum", "change"),
                [
                    (key, h.start.timestamp(), self._local(h.start), h.mean, h.min, h.max, h.sum, h.change)
                    for key, hours in statistics.items()
                    for h in hours
                ],
            ),
            "clock": Table(("now", "local_now", "today", "yesterday"), [clock]),
        }
        return run_query(tables, self.sql)

    def _list_states(self, index: HomeIndex) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for entity in self.entities:
            area, state = index.get_area(entity), index.states.get(entity.id)
            rows.append(
                (
                    entity.id,
                    entity.name,
                    area.name if area else None,
                    index.get_state(entity.id),
                    state.unit if state else "",
                    self._local(state.changed_at) if state else None,
                )
            )
        return rows

    def _local(self, at: datetime) -> str:
        return f"{at.astimezone(self.zone):%Y-%m-%d %H:%M:%S}"


async def describe_analysis(
    analysis: Analysis, found: QueryResult, context: ToolContext, *, plot: bool
) -> dict[str, Any]:
    """Return the result as JSON values: all rows, or a preview and an artifact with all of them as CSV."""
    result: dict[str, Any] = {
        "from": analysis.start.astimezone(analysis.zone).isoformat(timespec="minutes"),
        "to": analysis.end.astimezone(analysis.zone).isoformat(timespec="minutes"),
        "entities": [{"entity_id": entity.id, "name": entity.name} for entity in analysis.entities],
        "columns": list(found.columns),
        "total": len(found.rows),
    }
    if found.is_cut:
        result["note"] = f"the query has more rows; these are the first {len(found.rows):,}"
    if len(found.rows) > MAX_INLINE_ROWS or len(str(found.rows)) > MAX_INLINE_CHARS:
        result["rows"] = [[_cut(value) for value in row] for row in found.rows[:PREVIEW_ROWS]]
        try:
            text = await asyncio.to_thread(_write_csv, found)
            ref = await context.keep(text.encode(), "text/csv", "analysis.csv")
            result["artifact"] = {"artifact": ref.id, "type": ref.type}
        except InvalidInput:
            result["note"] = (
                f"only the first {PREVIEW_ROWS} rows are shown: pass a session_id to keep all of them"
            )
    else:
        result["rows"] = [list(row) for row in found.rows]
    if plot and (image := await asyncio.to_thread(_draw, found, analysis.zone)):
        ref = await context.keep(image, "image/png", "analysis.png")
        result["plot"] = {"artifact": ref.id, "type": ref.type}
    return result


def _cut(value: Any) -> Any:
    return value[:200] if isinstance(value, str) else value


def _draw(found: QueryResult, zone: tzinfo | None) -> bytes | None:
    """Return a plot of a result, or None without times or numbers."""
    series = _find_series(found, zone)
    if not series:
        return None
    # Pillow is an optional dependency.
    from sash.home.history_plot import draw_history

    times = [point.at for points in series.values() for point in points]
    return draw_history(series, {}, min(times), max(times), zone)


def _write_csv(found: QueryResult) -> str:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(found.columns)
    writer.writerows(found.rows)
    return text.getvalue()


def _find_series(found: QueryResult, zone: tzinfo | None) -> dict[str, list[HistoryPoint]]:
    """Return the numeric columns of a result by name, over its first column of times. Empty without times."""
    for column in range(len(found.columns)):
        times = [_read_time(row[column], zone) for row in found.rows]
        if len(times) > 1 and all(times) and min(filter(None, times)) < max(filter(None, times)):
            return dict(_read_series(found, [time for time in times if time], column))
    return {}


def _read_series(
    found: QueryResult, times: list[datetime], time_column: int
) -> Iterable[tuple[str, list[HistoryPoint]]]:
    for column, name in enumerate(found.columns[:MAX_PLOTTED_COLUMNS]):
        values = [row[column] for row in found.rows]
        if column != time_column and all(isinstance(value, int | float) for value in values):
            points = [HistoryPoint(at, str(value)) for at, value in zip(times, values, strict=True)]
            yield name, sorted(points, key=lambda point: point.at)


def _read_time(value: Any, zone: tzinfo | None) -> datetime | None:
    """Return a text as a time, or None if it is not a time of `PLOTTED_YEARS`."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if at is None or at.year not in PLOTTED_YEARS:
        return None
    if at.tzinfo:
        return at
    return at.replace(tzinfo=zone) if zone else at.astimezone()
