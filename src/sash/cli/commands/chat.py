"""`sash chat`: a conversation in a terminal or through a pipe."""

from typing import Annotated

import typer

from sash.cli.allowed_services import Allow, parse_services
from sash.cli.options import CommonOptions, Language, NamedSession, OptionalArea, with_common_options


@with_common_options
def chat(
    options: CommonOptions,
    session: NamedSession = None,
    name: Annotated[
        str | None, typer.Option(help="Continue the session of this name, or start it. The default is chat.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new session; --session continues it later.")
    ] = False,
    area: OptionalArea = None,
    language: Language = None,
    allow: Allow = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve every action that needs approval.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the exact calls and results of tools.")
    ] = False,
) -> None:
    """Talk to the agent. The next chat continues this session, unless this chat was started with --new."""
    services = parse_services(allow or ())
    loaded = options.load_settings()

    from anyio.from_thread import start_blocking_portal

    from sash.app.access import Caller
    from sash.cli.home_checks import check_area, check_language, wait_for_home
    from sash.cli.local_service import open_for_turns
    from sash.cli.log_setup import log_if_configured
    from sash.cli.session_choice import SessionChoice
    from sash.cli.terminal.chat_loop import ChatLoop
    from sash.cli.terminal.portal import call

    settings, caller = log_if_configured(loaded), Caller(options.owner)
    choice = SessionChoice.of(session, name=name, new=new, area=area, language=language, services=services)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_for_turns(settings, is_operator=True)) as service,
    ):
        call(portal, wait_for_home(service))
        if area is not None:
            call(portal, check_area(service, caller, area))
        if language is not None:
            check_language(language)
        chosen = call(portal, choice.resolve(service, caller))
        ChatLoop(portal, service, caller, settings, choice, chosen, approve_all=yes, is_verbose=verbose).run()
