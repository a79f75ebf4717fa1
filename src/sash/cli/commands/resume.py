"""`sash resume`: continues a turn that was interrupted or waits for approval."""

import typer

from sash.cli.options import CommonOptions, Json, TurnId, with_common_options


@with_common_options
def resume(
    options: CommonOptions,
    continuation: TurnId,
    as_json: Json = False,
) -> None:
    """Continue an interrupted turn after its last step, or ask for the approval that it waits for."""
    loaded = options.load_settings()

    from anyio.from_thread import start_blocking_portal

    from sash.app.access import Caller
    from sash.app.schemas import ContinuationShown
    from sash.cli.home_checks import wait_for_home
    from sash.cli.local_service import open_for_turns
    from sash.cli.log_setup import log_if_configured
    from sash.cli.terminal.approval_question import print_reasons
    from sash.cli.terminal.console import make_console
    from sash.cli.terminal.line_input import LineInput
    from sash.cli.terminal.portal import call
    from sash.cli.terminal.turn_follower import TurnFollower
    from sash.cli.terminal.turn_report import report_turn
    from sash.cli.terminal.turn_view import TurnView

    # Steps and questions go to standard error, because standard output is for the answer.
    err, caller = make_console(stderr=True), Caller(options.owner)
    lines, view = LineInput(err), TurnView(err, shows_text=False)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_for_turns(log_if_configured(loaded), is_operator=True)
        ) as service,
    ):
        call(portal, wait_for_home(service))

        def confirm(waiting: ContinuationShown) -> bool | None:
            print_reasons(err, waiting)
            return lines.confirm(waiting.question or "Continue?")

        follower = TurnFollower(portal, service, caller, view, confirm)
        turn = follower.get_turn(continuation)
        follower.skip_events(turn.session_id, continuation)
        if turn.status == "awaiting_approval":
            turn = follower.ask_and_follow(turn)
        else:
            call(portal, service.resume(caller, continuation))
            turn = follower.follow(turn.session_id, continuation)
    raise typer.Exit(report_turn(turn, as_json=as_json))
