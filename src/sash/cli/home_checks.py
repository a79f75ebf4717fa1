"""Checks of the home when a conversation starts. They print warnings and never stop the command."""

from contextlib import suppress

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.cli.terminal.console import make_console, print_text
from sash.errors import EntityNotFound, HomeError, SashError

HOME_TIMEOUT_S = 5.0


async def wait_for_home(service: AgentService, timeout_s: float = HOME_TIMEOUT_S) -> HomeError | None:
    """Wait until the home is connected. If it cannot be reached, print a warning and return the error."""
    try:
        await service.runtime.home_ready(timeout_s=timeout_s)
    except HomeError as error:
        _warn(error.message)
        return error
    return None


async def check_area(service: AgentService, caller: Caller, area: str) -> None:
    """Print a warning if the home does not have this area."""
    with suppress(SashError):
        try:
            await service.call_tool(caller, "search_index", {"area": area, "limit": 1})
        except EntityNotFound as error:
            _warn(error.message)


def check_language(language: str) -> None:
    """Print a warning if sentences in this language need a model."""
    with suppress(ImportError):
        from sash.intents.grammar import find_language

        if find_language(language) is None:
            _warn(
                f"Sash understands {language!r:.80} only with a model: give a language code such as en or de"
            )


def _warn(message: str) -> None:
    print_text(make_console(stderr=True), f"warning: {message}", "yellow")
