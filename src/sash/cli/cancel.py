"""`sash cancel`: end a turn, wherever it runs."""

from typing import Annotated

import typer

from sash.cli.options import LOCAL, Config, Data, Owner, Place, Store, TurnId


def cancel(
    continuation: TurnId,
    reason: Annotated[str | None, typer.Option(help="Why, for who looks at it later.")] = None,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """End a turn at once and for good, also one that a server runs."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.console import make_console, say
    from sash.cli.opening import read
    from sash.errors import ContinuationFinal

    async def end(desk: AgentService, caller: Caller) -> str:
        return (await desk.cancel(caller, continuation, reason)).status

    status = read(Place(data, store, config, owner), end)
    if status == "already_final":
        raise ContinuationFinal(f"continuation {continuation} is over already")
    say(make_console(), "Cancelled.")
