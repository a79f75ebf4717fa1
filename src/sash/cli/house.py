"""The house at the beginning: it is waited for, but nobody is kept from talking because it is away."""

from sash.cli.console import make_console, say
from sash.desk import Desk
from sash.errors import HomeError

HOUSE_S = 5.0


async def wait_for_house(desk: Desk, within_s: float = HOUSE_S) -> None:
    """Wait for the house, and say so if it cannot be reached."""
    try:
        await desk.runtime.home_ready(timeout_s=within_s)
    except HomeError as error:
        say(make_console(stderr=True), f"warning: {error.message}", "yellow")
