"""`sash sessions`: lists sessions."""

from typing import Annotated, Literal

import typer

from sash.cli.options import MAX_LIMIT, CommonOptions, Json, with_common_options


@with_common_options
def sessions(
    options: CommonOptions,
    status: Annotated[
        Literal["active", "ended", "expired"] | None, typer.Option(help="Only sessions with this status.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="The maximum number of sessions.")] = 20,
    as_json: Json = False,
) -> None:
    """List sessions, newest first."""
    from sash.app.access import Caller
    from sash.app.schemas import SessionList
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.session_view import print_sessions
    from sash.values.codec import adapter

    async def find(service: AgentService, caller: Caller) -> SessionList:
        return SessionList.of(await service.list_sessions(caller, status=status, limit=limit))

    found = run_with_service(options, find)
    if as_json:
        print_json(adapter(SessionList).dump_python(found, mode="json"))
        return
    if not found.sessions:
        print_text(make_console(stderr=True), "There are no sessions: `sash chat` starts one.")
        return
    print_sessions(make_console(), found.sessions)
    if found.next_cursor is not None:
        print_text(
            make_console(stderr=True), f"There are more than {limit} sessions: --limit shows more.", "dim"
        )
