"""Tables that fit the console: a narrow console gets fewer columns, a very narrow one stacked cells."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sash.cli.terminal.console import PIPE_WIDTH, strip_controls

EMPTY = "–"
# The smallest width of a column that wraps.
MIN_WRAPPED_WIDTH = 20
# The console width from which times show their year.
WIDE_CONSOLE = 100

Row = Sequence[RenderableType]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. A narrow console drops the columns with the highest rank first."""

    name: str
    rank: int = 0
    wraps: bool = False


def print_table(console: Console, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print a table with as many columns as fit, or stacked rows if even the first column does not fit."""
    for rank in sorted({column.rank for column in columns}, reverse=True):
        kept = [n for n, column in enumerate(columns) if column.rank <= rank]
        table = _make_table(console, [columns[n] for n in kept], [[row[n] for n in kept] for row in rows])
        if _measure(console, table).minimum <= console.width:
            print_trimmed(console, table)
            return
    for row in rows:
        _print_stacked(console, columns, row)


def print_trimmed(console: Console, content: RenderableType) -> None:
    """Print content. In a pipe, lines have no trailing blanks."""
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    for line in captured.get().splitlines():
        console.out(line.rstrip(), highlight=False)


def cell(value: object, style: str = "") -> Text:
    """Return a table cell for a value; None and "" become a dash."""
    return Text(EMPTY if value is None or value == "" else strip_controls(str(value)), style=style)


def format_time(console: Console, time: datetime) -> str:
    """Return a time in the local time zone as text, shorter in a narrow console."""
    time = time.astimezone()
    if console.width >= WIDE_CONSOLE:
        return f"{time:%Y-%m-%d %H:%M}"
    return f"{time:%m-%d %H:%M}" if time.year == datetime.now().astimezone().year else f"{time:%Y-%m-%d}"


def format_cost(usd: float) -> str:
    """Return a cost in dollars as text, or "" for zero."""
    return f"${usd:.4f}" if usd else ""


def _make_table(console: Console, columns: Sequence[Column], rows: Iterable[Row]) -> Table:
    """Return a table with a line under its header. In a pipe there is no line."""
    lines, gap = (box.SIMPLE_HEAD, 1) if console.is_terminal else (None, 2)
    table = Table(box=lines, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    rows = list(rows)
    for n, column in enumerate(columns):
        cells = [column.name, *(row[n] for row in rows)]
        width = max(_measure(console, content).maximum for content in cells)
        table.add_column(column.name, min_width=min(width, MIN_WRAPPED_WIDTH) if column.wraps else width)
    for row in rows:
        table.add_row(*row)
    return table


def _measure(console: Console, content: RenderableType) -> Measurement:
    """Return the minimum and maximum width of content, without the limit of the console's width."""
    return Measurement.get(console, console.options.update(max_width=PIPE_WIDTH), content)


def _print_stacked(console: Console, columns: Sequence[Column], row: Row) -> None:
    """Print the first cell of a row on its own line, and the other cells below it."""
    rest = Text()
    for column, content in zip(columns[1:], row[1:], strict=True):
        if isinstance(content, Text) and content.plain != EMPTY:
            rest.append(", " if rest else "").append(f"{column.name} ", style="dim").append_text(content)
    console.print(row[0], soft_wrap=True)
    print_trimmed(console, Padding(rest, (0, 0, 0, 2)))
