"""`sash delete`: deletes one session with its transcript and its artifacts."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, SessionId, with_common_options


@with_common_options
def delete(
    options: CommonOptions,
    session: SessionId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a session permanently, with its transcript and its artifacts."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.confirmation import confirm_deletion
    from sash.cli.terminal.console import make_console, print_text

    async def find_session(service: AgentService, caller: Caller) -> str:
        found = await service.get_session(caller, session)
        return f"{found.status} session {found.name or found.id}"

    async def delete_session(service: AgentService, caller: Caller) -> None:
        await service.delete_session(caller, session)

    if not yes:
        confirm_deletion(f"Delete the {run_with_service(options, find_session)} permanently?")
    run_with_service(options, delete_session)
    print_text(make_console(), "Deleted.")
