"""`sash fork`: copies a session, whole or up to one of its turns."""

from typing import Annotated

import typer

from sash.cli.completion import complete_turn_of_session
from sash.cli.options import CommonOptions, SessionId, with_common_options


@with_common_options
def fork(
    options: CommonOptions,
    session: SessionId,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="CONTINUATION",
            help="The last turn of the copy.",
            autocompletion=complete_turn_of_session,
        ),
    ] = None,
) -> None:
    """Copy a session and print the id of the copy. Both continue independently."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text
    from sash.values.requests import Fork

    async def fork_session(service: AgentService, caller: Caller) -> str:
        return (await service.fork_session(caller, session, Fork(at=at))).id

    print_text(make_console(), run_with_service(options, fork_session))
