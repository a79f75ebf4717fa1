"""`sash erase`: deletes all data of an owner."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, with_common_options

PAGE_SIZE = 500


@with_common_options
def erase(
    options: CommonOptions,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all data of an owner: sessions, transcripts, facts, artifacts."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.confirmation import confirm_deletion
    from sash.cli.terminal.console import make_console, print_text

    async def count_sessions(service: AgentService, caller: Caller) -> int:
        count, cursor = 0, None
        while True:
            page = await service.list_sessions(caller, limit=PAGE_SIZE, cursor=cursor, with_questions=True)
            count, cursor = count + len(page.items), page.next_cursor
            if cursor is None:
                return count

    async def delete_all(service: AgentService, caller: Caller) -> int:
        return await service.erase(caller)

    console, owner = make_console(), options.owner
    if not yes:
        count = run_with_service(options, count_sessions)
        question = f"Erase all {count} sessions of {owner} permanently?"
        confirm_deletion(question, "Nothing was erased.")
    print_text(console, f"Erased {run_with_service(options, delete_all)} sessions of {owner}.")
