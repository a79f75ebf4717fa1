"""`sash sessions`: which there are."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sash.cli.options import LOCAL, MOST, Config, Data, Json, Owner, Place, Store

if TYPE_CHECKING:
    from rich.console import Console

    from sash.values.sessions import Session

LONGEST_NAME = 24


def sessions(
    status: Annotated[
        Literal["active", "ended", "expired"] | None, typer.Option(help="Only those that are so.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="At most so many, the newest.")] = 20,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """List sessions, the newest first."""
    from sash.app.access import Caller
    from sash.app.schemas import SessionList
    from sash.app.service import AgentService
    from sash.cli.console import make_console, print_json, say
    from sash.cli.opening import read
    from sash.values.codec import adapter

    async def find(desk: AgentService, caller: Caller) -> SessionList:
        return await desk.list_sessions(caller, status=status, limit=limit)

    found = read(Place(data, store, config, owner), find)
    if as_json:
        print_json(adapter(SessionList).dump_python(found, mode="json"))
        return
    console = make_console()
    if not found.sessions:
        say(make_console(stderr=True), "There are no sessions: `sash chat` begins one.")
        return
    print_sessions(console, found.sessions)
    if found.next_cursor is not None:
        say(make_console(stderr=True), f"There are more than {limit}: --limit shows them.", "dim")


def print_sessions(console: "Console", found: "tuple[Session, ...]") -> None:
    """Print sessions as a table."""
    from sash.cli.console import one_line
    from sash.cli.tables import Column, cell, cost, print_table, when

    columns = (
        Column("id"),
        Column("name"),
        Column("status", 1),
        Column("turns", 3),
        Column("tokens", 5),
        Column("cost", 4),
        Column("last used", 2),
    )
    rows = [
        (
            cell(session.id),
            cell(one_line(session.name or "", LONGEST_NAME)),
            cell(session.status, "green" if session.status == "active" else "dim"),
            cell(session.stats.turns),
            cell(f"{session.stats.total_tokens:,}"),
            cell(cost(session.stats.cost_usd)),
            cell(when(console, session.updated_at)),
        )
        for session in found
    ]
    print_table(console, columns, rows)
