"""`sash end`: ends a session and keeps its transcript."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, SessionId, with_common_options


@with_common_options
def end(
    options: CommonOptions,
    session: SessionId,
    reason: Annotated[str | None, typer.Option(help="The reason, which is stored with its turns.")] = None,
) -> None:
    """End a session: it takes no more messages. Its transcript is kept."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text

    async def end_session(service: AgentService, caller: Caller) -> None:
        await service.end_session(caller, session, reason)

    run_with_service(options, end_session)
    print_text(make_console(), "Ended.")
