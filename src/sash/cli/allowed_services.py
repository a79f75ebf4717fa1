"""The option --allow: the services of the house that the agent may use."""

import re
from collections.abc import Iterable
from typing import Annotated

import typer

ALLOW = "--allow"
ALL = "all"
# A domain or a service, either of them with wildcards.
_SERVICE = re.compile(r"[\w*]+(\.[\w*]+)?", re.ASCII)

Allow = Annotated[
    list[str] | None,
    typer.Option(
        ALLOW,
        metavar="SERVICES",
        help="Let the agent control devices: all, or some of them such as light,switch.turn_off. What the "
        "settings deny stays denied.",
    ),
]


def parse_services(allow: Iterable[str]) -> tuple[str, ...]:
    """Return the services of all --allow options. An option may list several with commas.

    Raise `BadParameter` for other texts.
    """
    services = tuple(part.strip() for given in allow for part in given.split(",") if part.strip())
    for service in services:
        if not _SERVICE.fullmatch(service):
            raise typer.BadParameter(
                f"{service!r} is neither a domain (light) nor a service (switch.turn_off)"
            )
    return ("*",) if ALL in services else services


def complete_allow(args: list[str]) -> list[str]:
    """Return the arguments of a command, in which `--allow` without services allows all of them.

    Services contain no blanks: a text with blanks after `--allow` is the next argument.
    """
    completed: list[str] = []
    for index, argument in enumerate(args):
        if argument == "--":
            return [*completed, *args[index:]]
        following = args[index + 1] if index + 1 < len(args) else "-"
        has_services = not following.startswith("-") and " " not in following.replace(", ", ",").strip()
        completed.append(f"{ALLOW}={ALL}" if argument == ALLOW and not has_services else argument)
    return completed
