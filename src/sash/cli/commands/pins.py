"""`sash pins`: texts and entities that the agent is told in every turn, of all sessions or of one."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, Json, OptionalSession, with_common_options
from sash.cli.typer_classes import Command, ListingGroup

app = typer.Typer(
    name="pins",
    cls=ListingGroup,
    help="List what the agent is told in every turn (the default), or change it.",
)

PinId = Annotated[str, typer.Argument(metavar="PIN", help="The id of a pin: `sash pins` shows it.")]
What = Annotated[str, typer.Argument(metavar="ENTITY|TEXT", help="The id of an entity, or a text.")]


@app.command("list", cls=Command)
@with_common_options
def list_pins(options: CommonOptions, session: OptionalSession = None, as_json: Json = False) -> None:
    """List the pins of all sessions. With --session, list those of one session."""
    from sash.app.schemas import PinList
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.note_tables import print_pins
    from sash.values.codec import adapter

    found = run_with_service(options, lambda service, caller: service.list_pins(caller, session))
    if as_json:
        print_json(adapter(PinList).dump_python(PinList(found), mode="json"))
    elif found:
        print_pins(make_console(), found)
    else:
        print_text(make_console(stderr=True), "There are no pins: `sash pins add ENTITY|TEXT` adds one.")


@app.command(cls=Command)
@with_common_options
def add(options: CommonOptions, what: What, session: OptionalSession = None) -> None:
    """Pin an entity or a text to all sessions. With --session, pin it to one session."""
    from sash.cli.local_service import run_with_service
    from sash.values.requests import make_pin_request

    request = make_pin_request(what)
    pin = run_with_service(options, lambda service, caller: service.pin(caller, request, session))
    typer.echo(pin.id)


@app.command(cls=Command)
@with_common_options
def remove(options: CommonOptions, pin: PinId, session: OptionalSession = None) -> None:
    """Remove a pin."""
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text

    run_with_service(options, lambda service, caller: service.unpin(caller, pin, session))
    print_text(make_console(), "Removed.")
