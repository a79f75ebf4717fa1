"""The question before something is deleted."""

import typer

from sash.cli.terminal.console import make_console, print_text
from sash.cli.terminal.line_input import LineInput
from sash.errors import InvalidInput


def confirm_deletion(question: str, refusal: str = "Nothing was deleted.") -> None:
    """Ask the user. Exit with code 1 after a no. Raise `InvalidInput` if there is no terminal."""
    console = make_console()
    confirmed = LineInput(console).confirm(question)
    if confirmed is None:
        raise InvalidInput(f"{question} There is no terminal to ask in: add --yes to confirm")
    if not confirmed:
        print_text(console, refusal)
        raise typer.Exit(1)
