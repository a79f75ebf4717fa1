"""The house at the beginning: it is waited for, but nobody is kept from talking because it is away."""

from contextlib import suppress

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.cli.console import make_console, say
from sash.errors import EntityNotFound, HomeError, SashError

HOUSE_S = 5.0


async def wait_for_house(desk: AgentService, within_s: float = HOUSE_S) -> None:
    """Wait for the house, and say so if it cannot be reached."""
    try:
        await desk.runtime.home_ready(timeout_s=within_s)
    except HomeError as error:
        _warn(error.message)


async def check_area(desk: AgentService, caller: Caller, area: str) -> None:
    """Warn of an area that the house does not have, if it can be asked."""
    with suppress(SashError):
        try:
            await desk.call_tool(caller, "search_index", {"area": area, "limit": 1})
        except EntityNotFound as error:
            _warn(error.message)


def check_language(called: str) -> None:
    """Warn of a language in which no sentence is understood without a model."""
    with suppress(ImportError):
        from sash.intents.grammar import find_language

        if find_language(called) is None:
            _warn(f"without a model nothing is understood in {called!r:.80}: say a language as en, de, …")


def _warn(message: str) -> None:
    say(make_console(stderr=True), f"warning: {message}", "yellow")
