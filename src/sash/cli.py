"""The command line: it parses, calls, and prints."""

import sys
from typing import Annotated

try:
    import typer
    from rich.console import Console
except ModuleNotFoundError as missing:
    sys.exit(f"The command line needs {missing.name}: install it with  pip install 'sash[server,home]'")

from sash import __version__
from sash.demo import play

app = typer.Typer(name="sash", no_args_is_help=True)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Conversations with an agent that remember exactly."""
    if version:
        typer.echo(f"sash {__version__}")
        raise typer.Exit


@app.command()
def demo(
    pause: Annotated[
        float | None, typer.Option(min=0, max=60, help="Seconds after each turn; none if not a terminal.")
    ] = None,
) -> None:
    """Watch a session slide through a window of five turns, and a talk with the demo house."""
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console()
    play(console, pause_s=(0.6 if console.is_terminal else 0.0) if pause is None else pause)
