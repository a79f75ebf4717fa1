"""A table of what waits."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console

from sash.app.schemas import WaitingShown
from sash.cli.terminal.tables import Column, cell, format_time, print_table


def print_waiting(console: Console, waiting: Sequence[WaitingShown]) -> None:
    rows = [
        [cell(each.id), cell(each.summary), cell(_describe(console, each)), cell(each.session_id)]
        for each in waiting
    ]
    columns = (
        Column("id"),
        Column("what", wraps=True),
        Column("waits for", wraps=True),
        Column("session", 1),
    )
    print_table(console, columns, rows)


def _describe(console: Console, waiting: WaitingShown) -> str:
    """Return the time or the state that something waits for, with its conditions."""
    at = None if waiting.at is None else format_time(console, datetime.fromisoformat(waiting.at))
    return ", only if ".join([at or waiting.when or "", *waiting.only_if])
