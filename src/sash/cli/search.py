"""`sash search`: find what was said."""

from typing import Annotated

import typer

from sash.cli.options import LOCAL, MOST, Config, Data, Json, Owner, Place, SomeSession, Store

LONGEST = 200


def search(
    query: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words that the message has.")],
    session: SomeSession = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="At most so many.")] = 10,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Find messages in all that was ever said, the best first."""
    from sash.app.access import Caller
    from sash.app.schemas import MessageList
    from sash.app.service import AgentService
    from sash.cli.console import make_console, one_line, print_json, say
    from sash.cli.opening import read
    from sash.cli.progress import progress
    from sash.cli.tables import Column, cell, print_table, when
    from sash.cli.transcript import words
    from sash.values.codec import adapter

    async def find(desk: AgentService, caller: Caller) -> MessageList:
        return await desk.search(caller, " ".join(query), session_id=session, limit=limit)

    with progress("Searching"):
        found = read(Place(data, store, config, owner), find)
    if as_json:
        print_json(adapter(MessageList).dump_python(found, mode="json"))
        return
    if not found.messages:
        say(make_console(stderr=True), "Nothing was found.")
        return
    console = make_console()
    rows = [
        (
            cell(message.session_id),
            cell(when(console, message.timestamp)),
            cell(message.role),
            cell(one_line(words(message), LONGEST)),
        )
        for message in found.messages
    ]
    columns = (Column("id"), Column("when", 1), Column("who", 2), Column("said", wraps=True))
    print_table(console, columns, rows)
