"""`sash facts`: what the agent remembers, in all sessions or in one."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, Json, OptionalSession, with_common_options
from sash.cli.typer_classes import Command, ListingGroup

app = typer.Typer(
    name="facts", cls=ListingGroup, help="List what the agent remembers (the default), or change it."
)

FactId = Annotated[str, typer.Argument(metavar="FACT", help="The id of a fact: `sash facts` shows it.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="The fact, in one sentence.")]


@app.command("list", cls=Command)
@with_common_options
def list_facts(options: CommonOptions, session: OptionalSession = None, as_json: Json = False) -> None:
    """List the facts that all sessions know. With --session, list those of one session."""
    from sash.app.schemas import FactList
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.note_tables import print_facts
    from sash.values.codec import adapter

    found = run_with_service(options, lambda service, caller: service.list_facts(caller, session))
    if as_json:
        print_json(adapter(FactList).dump_python(FactList(found), mode="json"))
        return
    if not found:
        advice = "`sash facts add TEXT` adds one, and so does “remember that …” in a conversation."
        print_text(make_console(stderr=True), f"There are no facts: {advice}")
        return
    print_facts(make_console(), found)


@app.command(cls=Command)
@with_common_options
def add(options: CommonOptions, text: Text, session: OptionalSession = None) -> None:
    """Add a fact for all sessions. With --session, add it to one session."""
    from sash.cli.local_service import run_with_service
    from sash.values.requests import Note

    note = Note(text=text)
    fact = run_with_service(options, lambda service, caller: service.remember(caller, note, session))
    typer.echo(fact.id)


@app.command(cls=Command)
@with_common_options
def edit(options: CommonOptions, fact: FactId, text: Text, session: OptionalSession = None) -> None:
    """Replace the text of a fact."""
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text
    from sash.values.requests import Note

    note = Note(text=text)
    run_with_service(options, lambda service, caller: service.edit_fact(caller, fact, note, session))
    print_text(make_console(), "Changed.")


@app.command(cls=Command)
@with_common_options
def forget(options: CommonOptions, fact: FactId, session: OptionalSession = None) -> None:
    """Delete a fact."""
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text

    gone = run_with_service(options, lambda service, caller: service.forget(caller, fact, session))
    print_text(make_console(), f"Forgotten: {gone.text}")
