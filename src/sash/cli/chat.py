"""`sash chat`: a conversation in the terminal, or with what comes out of a pipe."""

import re
from collections.abc import Iterable
from typing import Annotated

import typer

from sash.cli.options import LOCAL, Config, Data, Owner, Place, SomeSession, Store

# A domain or a service, and either with wildcards.
_SERVICE = re.compile(r"[\w*]+(\.[\w*]+)?", re.ASCII)


def chat(
    session: SomeSession = None,
    name: Annotated[str | None, typer.Option(help="Go on with the session of this name.  [chat]")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin a session of its own; --session goes on with it.")
    ] = False,
    area: Annotated[str | None, typer.Option(help="Where in the house you are.")] = None,
    language: Annotated[str | None, typer.Option(help="The language you speak: en, de, …")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="What may be used in the house: light,switch.turn_off")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Say yes to whatever needs one.")] = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Talk. The session is kept, and the next chat goes on with it, unless it was begun with --new."""
    services = _services(allow or ())
    loaded = Place(data, store, config, owner).load()

    from sash.app.access import Caller
    from sash.cli.beside import Beside
    from sash.cli.conversation import Conversation
    from sash.cli.house import check_area, check_language, wait_for_house
    from sash.cli.logs import quiet
    from sash.cli.opening import talking
    from sash.cli.wanted import Wanted

    wanted = Wanted(session, name, new, area, language, services)
    with Beside() as beside, beside.within(talking(quiet(loaded))) as desk:
        beside.call(wait_for_house(desk))
        if area is not None:
            beside.call(check_area(desk, Caller(owner), area))
        if language is not None:
            check_language(language)
        Conversation(beside, desk, Caller(owner), loaded.settings, yes=yes).run(wanted)


def _services(allow: Iterable[str]) -> tuple[str, ...]:
    """Return the services that were named, with commas or one by one."""
    services = tuple(part.strip() for given in allow for part in given.split(",") if part.strip())
    for service in services:
        if not _SERVICE.fullmatch(service):
            raise typer.BadParameter(f"{service!r} is no domain (light) and no service (switch.turn_off)")
    return services
