"""`sash sessions`: which there are."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sash.cli.options import LOCAL, Config, Data, Json, Owner, Place, Store

if TYPE_CHECKING:
    from sash.sessions import Session


def sessions(
    status: Annotated[
        Literal["active", "ended", "expired"] | None, typer.Option(help="Only those that are so.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """List sessions, the newest first."""
    from sash.access import Caller
    from sash.cli.console import make_console, print_json, say
    from sash.cli.opening import read
    from sash.codec import adapter
    from sash.desk import Desk
    from sash.shapes import SessionList

    async def find(desk: Desk, caller: Caller) -> SessionList:
        return await desk.list_sessions(caller, status=status, limit=limit)

    found = read(Place(data, store, config, owner), find)
    if as_json:
        print_json(adapter(SessionList).dump_python(found, mode="json"))
        return
    console = make_console()
    if not found.sessions:
        say(make_console(stderr=True), "There are no sessions: `sash chat` begins one.")
        return
    console.print(table(console, found.sessions))
    if found.next_cursor is not None:
        say(make_console(stderr=True), f"There are more than {limit}: --limit shows them.", "dim")


def table(console: Any, found: "tuple[Session, ...]") -> Any:
    """Return sessions as a table."""
    from sash.cli.console import cell, make_table

    shown = make_table(console, "id", "name", "status", "turns", "tokens", "cost", "last used")
    for session in found:
        stats, over = session.stats, session.status != "active"
        shown.add_row(
            cell(session.id),
            cell(session.name),
            cell(session.status, "dim" if over else "green"),
            cell(stats.turns),
            cell(f"{stats.total_tokens:,}"),
            cell(f"${stats.cost_usd:.4f}"),
            cell(f"{session.updated_at.astimezone():%Y-%m-%d %H:%M}"),
        )
    return shown
