"""`sash cleanup`: deletes sessions that are over."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, with_common_options

MAX_DAYS = 36_500.0


@with_common_options
def cleanup(
    options: CommonOptions,
    older_than: Annotated[
        float, typer.Option(min=0, max=MAX_DAYS, metavar="DAYS", help="Days since the last change.")
    ] = 0.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the ids, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete ended and expired sessions permanently, with their transcripts and artifacts."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.confirmation import confirm_deletion
    from sash.cli.terminal.console import make_console, print_text

    async def find(service: AgentService, caller: Caller) -> list[str]:
        return await service.list_inactive(caller, older_than)

    async def delete(service: AgentService, caller: Caller) -> int:
        return await service.delete_inactive(caller, older_than)

    console = make_console()
    if dry_run or not yes:
        found = run_with_service(options, find)
        if dry_run:
            for session_id in found:
                print_text(console, session_id)
            return
        if not found:
            print_text(console, "There is nothing to delete.")
            return
        confirm_deletion(f"Delete {len(found)} ended and expired sessions of {options.owner} permanently?")
    print_text(console, f"Deleted {run_with_service(options, delete)} sessions of {options.owner}.")
