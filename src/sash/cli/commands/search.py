"""`sash search`: finds messages in the transcripts."""

from typing import Annotated

import typer

from sash.cli.options import MAX_LIMIT, CommonOptions, Json, OptionalSession, with_common_options

MAX_TEXT_CHARS = 200


@with_common_options
def search(
    options: CommonOptions,
    query: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words to look for, or a question.")],
    session: OptionalSession = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="The maximum number of messages.")] = 10,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The maximum number of tokens of all messages together. The result then also contains "
            "messages around the matches, ranked by score.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find messages in all sessions, or in one, best match first.

    A message needs only one of the words. A question also finds the messages around its words,
    and may name a time or a speaker. A query has at most 256 characters and 32 words. The first
    12 words that are not stop words are searched.
    """
    from sash.app.access import Caller
    from sash.app.schemas import MessageList
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, one_line, print_json, print_text
    from sash.cli.terminal.progress_bar import show_progress
    from sash.cli.terminal.tables import Column, cell, format_time, print_table
    from sash.cli.transcript import message_text
    from sash.values.codec import adapter

    async def find(service: AgentService, caller: Caller) -> MessageList:
        found = await service.search(
            caller, " ".join(query), session_id=session, limit=limit, max_tokens=max_tokens
        )
        return MessageList.of(found)

    with show_progress("Searching"):
        found = run_with_service(options, find)
    if as_json:
        print_json(adapter(MessageList).dump_python(found, mode="json"))
        return
    if not found.messages:
        print_text(make_console(stderr=True), "Nothing was found.")
        return
    console = make_console()
    rows = [
        (
            cell(message.session_id),
            cell(format_time(console, message.timestamp)),
            cell(message.role),
            cell(one_line(message_text(message), MAX_TEXT_CHARS)),
        )
        for message in found.messages
    ]
    columns = (Column("session"), Column("time", 1), Column("role", 2), Column("text", wraps=True))
    print_table(console, columns, rows)
