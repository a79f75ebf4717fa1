"""The program `sash`: its commands, its common options, and what becomes of an error."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sash import __version__
from sash.cli import (
    ask,
    cancel,
    chat,
    demo,
    doctor,
    erase,
    export,
    importing,
    mcp,
    resume,
    search,
    serve,
    sessions,
    show,
    token,
)
from sash.cli.exits import EPILOG, FAILED, exit_code
from sash.errors import SashError


class Commands(TyperGroup):
    """Runs a command; an error that Sash raises on purpose is a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        if sys.stdin is None:  # it was closed
            sys.stdin = Path(os.devnull).open()  # noqa: SIM115
        os.umask(0o077)  # what is said in a house is nobody else's business
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # who has closed the pipe is found out while it can still be kept quiet
            return result
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            _tell(f"{error.strerror or error}: {error.filename or 'the output'}")
            raise typer.Exit(FAILED) from error
        except SashError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            _tell(error.message)
            raise typer.Exit(exit_code(error.code)) from error


app = typer.Typer(
    name="sash", cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, epilog=EPILOG
)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Conversations with an agent that remember exactly."""
    if version:
        typer.echo(f"sash {__version__}")
        raise typer.Exit


def _tell(message: str) -> None:
    from rich.text import Text

    from sash.cli.console import make_console, plain

    console = make_console(stderr=True)
    console.print(Text("error: ", style="red").append(plain(message), style="default"), soft_wrap=True)


_COMMANDS: dict[str, Callable[..., None]] = {
    "serve": serve.serve,
    "chat": chat.chat,
    "ask": ask.ask,
    "sessions": sessions.sessions,
    "show": show.show,
    "resume": resume.resume,
    "cancel": cancel.cancel,
    "export": export.export,
    "import": importing.import_session,
    "search": search.search,
    "erase": erase.erase,
    "mcp": mcp.mcp,
    "doctor": doctor.doctor,
    "demo": demo.demo,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(token.app)
