"""`sash waiting`: what the agent does later, in all sessions or in one."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, Json, OptionalSession, with_common_options
from sash.cli.typer_classes import Command, ListingGroup

app = typer.Typer(
    name="waiting", cls=ListingGroup, help="List what the agent does later (the default), or cancel it."
)

WaitingId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of what waits: `sash waiting` shows it.")
]


@app.command("list", cls=Command)
@with_common_options
def list_waiting(options: CommonOptions, session: OptionalSession = None, as_json: Json = False) -> None:
    """List what waits in all sessions. With --session, list what waits in one session."""
    from sash.app.schemas import WaitingList
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.waiting_table import print_waiting
    from sash.values.codec import adapter

    found = run_with_service(options, lambda service, caller: service.list_waiting(caller, session))
    if as_json:
        print_json(adapter(WaitingList).dump_python(found, mode="json"))
        return
    if not found.waiting:
        advice = "ask for something later in a conversation, such as “turn off the light in ten minutes”."
        print_text(make_console(stderr=True), f"Nothing waits: {advice}")
        return
    print_waiting(make_console(), found.waiting)


@app.command(cls=Command)
@with_common_options
def cancel(options: CommonOptions, waiting: WaitingId) -> None:
    """Cancel something that waits."""
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text

    gone = run_with_service(options, lambda service, caller: service.cancel_waiting(caller, waiting))
    print_text(make_console(), f"Cancelled: {gone.summary}")
