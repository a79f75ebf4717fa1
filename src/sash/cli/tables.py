"""Tables that fit: with little room they have fewer columns, and with less their rows are stacked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sash.cli.console import WIDE, plain

NOTHING = "–"
# What a column that wraps needs at least.
NARROW = 20
# Where a date has its year.
ROOMY = 100

Row = Sequence[RenderableType]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the greater its rank, the sooner it is left out; one that does not wrap is shown whole."""

    name: str
    rank: int = 0
    wraps: bool = False


def print_table(console: Console, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print a table of as many columns as there is room for, or its rows below each other."""
    for rank in sorted({column.rank for column in columns}, reverse=True):
        kept = [n for n, column in enumerate(columns) if column.rank <= rank]
        table = _table(console, [columns[n] for n in kept], [[row[n] for n in kept] for row in rows])
        if _measure(console, table).minimum <= console.width:
            put(console, table)
            return
    for row in rows:
        _stack(console, columns, row)


def put(console: Console, shown: RenderableType) -> None:
    """Print something; in a pipe its lines do not end in blanks."""
    if console.is_terminal:
        console.print(shown)
        return
    with console.capture() as captured:
        console.print(shown)
    for line in captured.get().splitlines():
        console.out(line.rstrip(), highlight=False)


def cell(value: object, style: str = "") -> Text:
    """Return what a table shows of a value."""
    return Text(NOTHING if value is None or value == "" else plain(str(value)), style=style)


def when(console: Console, at: datetime) -> str:
    """Return a time of this place, in as many words as there is room for."""
    at = at.astimezone()
    if console.width >= ROOMY:
        return f"{at:%Y-%m-%d %H:%M}"
    return f"{at:%m-%d %H:%M}" if at.year == datetime.now().astimezone().year else f"{at:%Y-%m-%d}"


def cost(usd: float) -> str:
    """Return what something cost, if it did."""
    return f"${usd:.4f}" if usd else ""


def _table(console: Console, columns: Sequence[Column], rows: Iterable[Row]) -> Table:
    """Return a table: with a rule below its head on a terminal, and only columns in a pipe."""
    lines, gap = (box.SIMPLE_HEAD, 1) if console.is_terminal else (None, 2)
    table = Table(box=lines, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    rows = list(rows)
    for n, column in enumerate(columns):
        cells = [column.name, *(row[n] for row in rows)]
        width = max(_measure(console, one).maximum for one in cells)
        table.add_column(column.name, min_width=min(width, NARROW) if column.wraps else width)
    for row in rows:
        table.add_row(*row)
    return table


def _measure(console: Console, shown: RenderableType) -> Measurement:
    """Measure something as if there were room."""
    return Measurement.get(console, console.options.update(max_width=WIDE), shown)


def _stack(console: Console, columns: Sequence[Column], row: Row) -> None:
    """Print a row as its first cell, which is never cut, with the others below it."""
    told = Text()
    for column, one in zip(columns[1:], row[1:], strict=True):
        if isinstance(one, Text) and one.plain != NOTHING:
            told.append(", " if told else "").append(f"{column.name} ", style="dim").append_text(one)
    console.print(row[0], soft_wrap=True)
    put(console, Padding(told, (0, 0, 0, 2)))
