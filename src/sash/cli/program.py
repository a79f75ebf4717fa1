"""The program `sash`: its commands, its common options, and what becomes of an error."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

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
from sash.cli.command import Command, Group
from sash.cli.exits import EPILOG, FAILED, exit_code
from sash.errors import SashError

# What a program is told to stop by, and a terminal that is closed tells it.
STOPS = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)


class Commands(Group):
    """Runs a command; an error that Sash raises on purpose is a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        if sys.stdin is None:  # it was closed
            sys.stdin = Path(os.devnull).open()  # noqa: SIM115
        os.umask(0o077)  # what is said in a house is nobody else's business
        try:
            with _stopping():
                result = super().invoke(ctx)
            sys.stdout.flush()  # who has closed the pipe is found out while it can still be kept quiet
            return result
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            _drop_output()
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


@contextmanager
def _stopping() -> Iterator[None]:
    """Leave when told to, by way of all that has to be put in order: a turn that runs has to be marked."""
    told: list[SystemExit] = []

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        told.append(SystemExit(128 + number))
        raise told[0]

    for number in STOPS:
        signal.signal(number, stop)
    try:
        yield
    except Exception as error:
        if told:  # What was interrupted has made an error of its own of it.
            raise told[0] from error
        raise


def _drop_output() -> None:
    """Let nobody try once more to write what could not be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    app.command(_name, cls=Command)(_command)
app.add_typer(token.app)
