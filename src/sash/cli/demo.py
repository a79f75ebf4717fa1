"""`sash demo`: something to look at."""

import sys
from typing import Annotated

import typer


def demo(
    pause: Annotated[
        float | None, typer.Option(min=0, max=60, help="Seconds after each turn; none if not a terminal.")
    ] = None,
) -> None:
    """Watch a session slide through a window of five turns, and a talk with the demo house."""
    from rich.console import Console

    from sash.cli.showcase import play

    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console()
    play(console, pause_s=(0.6 if console.is_terminal else 0.0) if pause is None else pause)
