"""Print the help texts and the exit codes of the program `sash` as JSON.

This runs in a process of its own, because the program changes the umask and the signal handlers.
"""

import json
import sys

import typer
from typer.testing import CliRunner

from sash.cli.main import app
from tests.golden.error_classes import sash_errors


def collect_help() -> dict[str, str]:
    """Return the help text of the program, and of every command and subcommand by its name."""
    found: dict[str, str] = {}

    def collect(command: object, path: tuple[str, ...]) -> None:
        shown = CliRunner().invoke(app, [*path, "--help"], prog_name="sash")
        assert shown.exit_code == 0, shown.output
        found["-".join(("sash", *path))] = shown.stdout
        for name, child in sorted(getattr(command, "commands", {}).items()):
            collect(child, (*path, name))

    collect(typer.main.get_command(app), ())
    return found


def collect_exit_codes() -> dict[str, int]:
    """Return the exit code of a command that raises, for every error class by its name."""
    errors = {kind.__name__: kind for kind in sash_errors()}

    @app.command("raise-error")
    def raise_error(name: str) -> None:
        raise errors[name]("the message")

    return {name: CliRunner().invoke(app, ["raise-error", name]).exit_code for name in errors}


if __name__ == "__main__":
    json.dump({"help": collect_help(), "exit_codes": collect_exit_codes()}, sys.stdout)
