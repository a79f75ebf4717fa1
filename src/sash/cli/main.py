"""The program `sash`: its commands, its common options, and its error handling."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ModuleNotFoundError as missing:
    sys.exit(f"The command line needs {missing.name}: install it with  pip install 'sash[server,home]'")

from sash import __version__
from sash.cli.commands import facts, pins, preferences, token, waiting
from sash.cli.exit_codes import EPILOG, EXIT_FAILED, exit_code
from sash.cli.typer_classes import Command, Group
from sash.errors import SashError

# In the order of the help text. Each is the function of the same name in its module in `sash.cli.commands`.
# A trailing "_" keeps the name of a module from being a Python keyword.
COMMANDS = (
    "serve",
    "chat",
    "ask",
    "sessions",
    "show",
    "resume",
    "cancel",
    "end",
    "fork",
    "delete",
    "cleanup",
    "export",
    "import_",
    "search",
    "erase",
    "mcp",
    "doctor",
    "demo",
)
# Signals that end the program. A closing terminal sends SIGHUP.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)


class Program(Group):
    """The group of all commands. It prints a SashError as one line and exits with the code of the error."""

    def invoke(self, ctx: Any) -> Any:
        if sys.stdin is None:  # The parent process closed standard input.
            sys.stdin = Path(os.devnull).open()  # noqa: SIM115
        os.umask(0o077)  # Transcripts are private: only the user may read new files.
        try:
            with _exit_on_stop_signals():
                result = super().invoke(ctx)
            sys.stdout.flush()  # A closed pipe raises here, where Typer still handles it silently.
            return result
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            _discard_output()
            _print_error(f"{error.strerror or error}: {error.filename or 'the output'}")
            raise typer.Exit(EXIT_FAILED) from error
        except SashError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            _print_error(error.message)
            raise typer.Exit(exit_code(error.code)) from error


app = typer.Typer(
    name="sash", cls=Program, no_args_is_help=True, pretty_exceptions_enable=False, epilog=EPILOG
)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback for errors.")] = False,
) -> None:
    """Talk to an agent that remembers your conversations word for word."""
    if version:
        typer.echo(f"sash {__version__}")
        raise typer.Exit


@contextmanager
def _exit_on_stop_signals() -> Iterator[None]:
    """Raise `SystemExit` at a stop signal, so that clean-up code runs and interrupts a running turn."""
    received: list[SystemExit] = []

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        received.append(SystemExit(128 + number))
        raise received[0]

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    try:
        yield
    except Exception as error:
        if received:  # The interrupted code replaced SystemExit with an error of its own.
            raise received[0] from error
        raise


def _discard_output() -> None:
    """Send the rest of standard output to /dev/null, so that Python does not fail again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(message: str) -> None:
    from rich.text import Text

    from sash.cli.terminal.console import make_console, strip_controls

    console = make_console(stderr=True)
    text = Text("error: ", style="red").append(strip_controls(message), style="default")
    console.print(text, soft_wrap=True)


for _name in COMMANDS:
    _module = import_module(f"sash.cli.commands.{_name}")
    app.command(_name.rstrip("_"), cls=Command)(getattr(_module, _name))
for _group in (facts, pins, preferences, waiting, token):
    app.add_typer(_group.app)
