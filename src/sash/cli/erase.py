"""`sash erase`: delete all of an owner, for good."""

from typing import Annotated

import typer

from sash.cli.options import LOCAL, Config, Data, Owner, Place, Store

PAGE = 500


def erase(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Delete everything of an owner: sessions, transcripts, facts, artifacts."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.console import make_console, say
    from sash.cli.lines import Lines
    from sash.cli.opening import read
    from sash.errors import InvalidInput

    async def count(desk: AgentService, caller: Caller) -> int:
        found, cursor = 0, None
        while True:
            page = await desk.list_sessions(caller, limit=PAGE, cursor=cursor)
            found, cursor = found + len(page.sessions), page.next_cursor
            if cursor is None:
                return found

    async def delete(desk: AgentService, caller: Caller) -> int:
        return (await desk.erase(caller)).sessions

    place, console = Place(data, store, config, owner), make_console()
    if not yes:
        number = read(place, count)
        question = f"Erase all {number} sessions of {owner}, for good?"
        said = Lines(console).confirm(question)
        if said is None:
            raise InvalidInput(f"{question} Nobody is there to ask: say --yes")
        if not said:
            say(console, "Nothing was erased.")
            raise typer.Exit(1)
    say(console, f"Erased {read(place, delete)} sessions of {owner}.")
