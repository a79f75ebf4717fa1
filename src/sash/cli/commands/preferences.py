"""`sash preferences`: the preferences with which new sessions start."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, Json, with_common_options
from sash.cli.typer_classes import Command, ListingGroup

app = typer.Typer(
    name="preferences",
    cls=ListingGroup,
    help="List the preferences with which new sessions start (the default), or change them.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a preference, such as language.")]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="Its value, such as de.")]


@app.command("list", cls=Command)
@with_common_options
def list_preferences(options: CommonOptions, as_json: Json = False) -> None:
    """List the preferences."""
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_json, print_text

    notes = run_with_service(options, lambda service, caller: service.owner_notes(caller))
    if as_json:
        print_json({"preferences": notes.preferences})
    elif notes.preferences:
        for name, value in sorted(notes.preferences.items()):
            print_text(make_console(), f"{name}: {value}")
    else:
        advice = "`sash preferences set NAME VALUE` adds one."
        print_text(make_console(stderr=True), f"There are no preferences: {advice}")


@app.command("set", cls=Command)
@with_common_options
def set_preference(options: CommonOptions, name: Name, value: Value) -> None:
    """Set a preference."""
    _change(options, name, value)


@app.command(cls=Command)
@with_common_options
def remove(options: CommonOptions, name: Name) -> None:
    """Remove a preference."""
    _change(options, name, None)


def _change(options: CommonOptions, name: str, value: str | None) -> None:
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text

    run_with_service(options, lambda service, caller: service.set_owner_preferences(caller, {name: value}))
    print_text(make_console(), "Removed." if value is None else "Changed.")
