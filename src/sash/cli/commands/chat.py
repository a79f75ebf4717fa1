"""`sash chat`: a conversation in a terminal or through a pipe."""

import re
from collections.abc import Iterable
from typing import Annotated

import typer

from sash.cli.options import CommonOptions, OptionalSession, with_common_options

# A domain or a service, either of them with wildcards.
_SERVICE = re.compile(r"[\w*]+(\.[\w*]+)?", re.ASCII)


@with_common_options
def chat(
    options: CommonOptions,
    session: OptionalSession = None,
    name: Annotated[
        str | None, typer.Option(help="Continue the session of this name, or start it. The default is chat.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new session; --session continues it later.")
    ] = False,
    area: Annotated[str | None, typer.Option(help="The area of the house where you are.")] = None,
    language: Annotated[str | None, typer.Option(help="The language you speak: en, de, …")] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Services that the agent may use in the house: light,switch.turn_off"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve every action that needs approval.")] = False,
) -> None:
    """Talk to the agent. The next chat continues this session, unless this chat was started with --new."""
    services = _parse_services(allow or ())
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
    choice = SessionChoice(session, name, new, area, language, services)
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
        ChatLoop(portal, service, caller, settings, choice, chosen, approve_all=yes).run()


def _parse_services(allow: Iterable[str]) -> tuple[str, ...]:
    """Return the services of all --allow options. An option may list several with commas.

    Raise `BadParameter` for other texts.
    """
    services = tuple(part.strip() for given in allow for part in given.split(",") if part.strip())
    for service in services:
        if not _SERVICE.fullmatch(service):
            raise typer.BadParameter(
                f"{service!r} is neither a domain (light) nor a service (switch.turn_off)"
            )
    return services
