"""Tables of facts and pins."""

from collections.abc import Sequence

from rich.console import Console

from sash.cli.terminal.tables import Column, cell, format_time, print_table
from sash.values.sessions import Fact, Pin


def print_facts(console: Console, facts: Sequence[Fact]) -> None:
    rows = [
        [cell(fact.id), cell(fact.text), cell(format_time(console, fact.updated_at or fact.created_at))]
        for fact in facts
    ]
    print_table(console, (Column("id"), Column("fact"), Column("noted", 1)), rows)


def print_pins(console: Console, pins: Sequence[Pin]) -> None:
    rows = [
        [
            cell(pin.id),
            cell(pin.entity_id or ""),
            cell(pin.text),
            cell(format_time(console, pin.created_at)),
        ]
        for pin in pins
    ]
    print_table(console, (Column("id"), Column("entity"), Column("text"), Column("pinned", 1)), rows)
