"""`sash cancel`: cancels a turn, in this process or in another one."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, TurnId, with_common_options


@with_common_options
def cancel(
    options: CommonOptions,
    continuation: TurnId,
    reason: Annotated[str | None, typer.Option(help="The reason, which is stored with the turn.")] = None,
) -> None:
    """Cancel a turn, even if a server runs it."""
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import make_console, print_text
    from sash.errors import ContinuationFinal

    async def cancel_turn(service: AgentService, caller: Caller) -> None:
        try:
            await service.cancel(caller, continuation, reason)
        except ContinuationFinal as error:
            raise ContinuationFinal(f"continuation {continuation} has already ended") from error

    run_with_service(options, cancel_turn)
    print_text(make_console(), "Cancelled.")
