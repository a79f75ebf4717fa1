"""`sash token`: access tokens for clients of the server."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.options import LOCAL_OWNER, CommonOptions, Config, Data, Json, Owner
from sash.cli.typer_classes import Command, Group

if TYPE_CHECKING:
    from sash.app.access import Token, Tokens

MAX_DAYS = 36_500

app = typer.Typer(name="token", cls=Group, no_args_is_help=True, help="Create, list and revoke tokens.")


@app.command(cls=Command)
def create(
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, converse, act or admin; several with commas. The default is read,converse."),
    ] = None,
    name: Annotated[str, typer.Option(help="A name for the token.")] = "",
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=MAX_DAYS, help="Days until the token expires.")
    ] = None,
    data: Data = None,
    config: Config = None,
    owner: Owner = LOCAL_OWNER,
) -> None:
    """Create a token and print it to standard output. It is shown only once."""
    from sash.cli.terminal.console import make_console, print_text

    scopes: Any = tuple(part.strip() for given in scope or ("read,converse",) for part in given.split(","))
    expires_in = None if expires_days is None else timedelta(days=expires_days)
    created, text = _open_tokens(data, config).create(owner, scopes, name=name, expires_in=expires_in)
    typer.echo(text)
    print_text(
        make_console(stderr=True),
        f"Token {created.id} of {created.owner} may {', '.join(created.scopes)}. It is shown only once; send "
        "it as `Authorization: Bearer …`.",
    )


@app.command("list", cls=Command)
def list_tokens(as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """List the tokens, without their secrets."""
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.tables import Column, cell, format_time, print_table

    tokens = _open_tokens(data, config)
    found = tokens.list()
    if as_json:
        print_json({"tokens": [_as_json(token) for token in found]})
        return
    if not found:
        print_text(make_console(stderr=True), _describe_access(tokens))
        return
    console = make_console()
    columns = (
        Column("id"),
        Column("name"),
        Column("owner", 2),
        Column("scopes", 1),
        Column("created", 4),
        Column("expires", 3),
    )
    rows = []
    for token in found:
        expires = "never" if token.expires_at is None else format_time(console, token.expires_at)
        created, scopes = format_time(console, token.created_at), ", ".join(token.scopes)
        rows.append([cell(value) for value in (token.id, token.name, token.owner, scopes, created, expires)])
    print_table(console, columns, rows)


@app.command(cls=Command)
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID")], data: Data = None, config: Config = None
) -> None:
    """Revoke a token. The server refuses it from now on."""
    from sash.cli.terminal.console import make_console, print_text

    tokens = _open_tokens(data, config)
    revoked = tokens.revoke(token_id)
    print_text(make_console(), f"Revoked token {revoked.id} of {revoked.owner}.")
    if not tokens.list():
        print_text(make_console(stderr=True), _describe_access(tokens))


def _open_tokens(data: Any, config: Any) -> "Tokens":
    from sash.app.access import Tokens
    from sash.app.assembly import TOKENS_FILE

    return Tokens(CommonOptions(data, config=config).load_settings().settings.folder / TOKENS_FILE)


def _describe_access(tokens: "Tokens") -> str:
    """Say which clients may use the server, given that there is no token."""
    if tokens.needed:
        return "There are no tokens: no client can use the server. `sash token create` creates one."
    return "There are no tokens: every local user may use the server."


def _as_json(token: "Token") -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "owner": token.owner,
        "scopes": list(token.scopes),
        "created_at": token.created_at.isoformat(),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
    }
