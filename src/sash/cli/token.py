"""`sash token`: tokens for those who call the server."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.command import Command, Group
from sash.cli.options import LOCAL, Config, Data, Json, Owner, Place

if TYPE_CHECKING:
    from sash.app.access import Token, Tokens

MAX_DAYS = 36_500

app = typer.Typer(name="token", cls=Group, no_args_is_help=True, help="Make, list and revoke tokens.")


@app.command(cls=Command)
def create(
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, converse, act or admin; more than one.  [read,converse]"),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=MAX_DAYS, help="Days until it is no good.")
    ] = None,
    data: Data = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Make a token; its text is printed once, alone on standard output."""
    from sash.cli.console import make_console, say

    scopes: Any = tuple(part.strip() for given in scope or ("read,converse",) for part in given.split(","))
    expires_in = None if expires_days is None else timedelta(days=expires_days)
    made, text = _tokens(data, config).create(owner, scopes, name=name, expires_in=expires_in)
    typer.echo(text)
    say(
        make_console(stderr=True),
        f"Token {made.id} of {made.owner} may {', '.join(made.scopes)}. It is shown only this once; send it "
        "as `Authorization: Bearer …`.",
    )


@app.command("list", cls=Command)
def list_tokens(as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """List the tokens, without their secrets."""
    from sash.cli.console import make_console, print_json, say
    from sash.cli.tables import Column, cell, print_table, when

    found = _tokens(data, config).list()
    if as_json:
        print_json({"tokens": [_shown(token) for token in found]})
        return
    if not found:
        say(make_console(stderr=True), "There are no tokens: on this machine everybody is let in.")
        return
    console = make_console()
    columns = (
        Column("id"),
        Column("name"),
        Column("owner", 2),
        Column("scopes", 1),
        Column("made", 4),
        Column("good until", 3),
    )
    rows = []
    for token in found:
        until = "for ever" if token.expires_at is None else when(console, token.expires_at)
        made, scopes = when(console, token.created_at), ", ".join(token.scopes)
        rows.append([cell(value) for value in (token.id, token.name, token.owner, scopes, made, until)])
    print_table(console, columns, rows)


@app.command(cls=Command)
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID")], data: Data = None, config: Config = None
) -> None:
    """Take a token back: from now on it is no good."""
    from sash.cli.console import make_console, say

    revoked = _tokens(data, config).revoke(token_id)
    say(make_console(), f"Token {revoked.id} of {revoked.owner} is no good any more.")


def _tokens(data: Any, config: Any) -> "Tokens":
    from sash.app.access import Tokens
    from sash.app.assembly import TOKENS_FILE

    return Tokens(Place(data, None, config).load().settings.folder / TOKENS_FILE)


def _shown(token: "Token") -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "owner": token.owner,
        "scopes": list(token.scopes),
        "created_at": token.created_at.isoformat(),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
    }
