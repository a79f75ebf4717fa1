"""`sash demo`: plays two scenes without network, model or Home Assistant."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

TERMINAL_PAUSE_S = 0.6


def demo(
    pause: Annotated[
        float | None,
        typer.Option(min=0, max=60, help="Seconds between turns; the default in a pipe is 0."),
    ] = None,
) -> None:
    """Watch a session slide through a window of five turns, and a talk with the demo house."""
    from rich.console import Console

    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console()
    default = TERMINAL_PAUSE_S if console.is_terminal else 0.0
    asyncio.run(_play(console, default if pause is None else pause))


async def _play(console: "Console", pause_s: float) -> None:
    from sash.cli.showcase import home_talk, memory_window

    await memory_window.play(console, pause_s)
    await home_talk.play(console, pause_s)
