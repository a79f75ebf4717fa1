"""Prints the answer of a turn. If there is none, it prints the reason to standard error."""

import sys

import typer

from sash.app.schemas import ContinuationShown
from sash.cli.exit_codes import turn_exit_code
from sash.cli.terminal.approval_question import print_question
from sash.cli.terminal.citation_lines import list_notes
from sash.cli.terminal.console import make_console, print_json, print_text, strip_controls
from sash.values.codec import adapter
from sash.values.steps import Interrupted


def report_turn(turn: ContinuationShown, *, as_json: bool) -> int:
    """Print the answer of a turn. If the turn has no answer, print the reason. Return the exit code.

    A person at a terminal also gets the sources and the next steps. A script gets them with `as_json`.
    """
    if as_json:
        print_json(adapter(ContinuationShown).dump_python(turn, mode="json"))
    elif turn.response is not None:
        typer.echo(strip_controls(turn.response.final_message))
        console = make_console()
        for label, note in list_notes(turn.response) if sys.stdout.isatty() else ():
            print_text(console, f"{label}: {note}", "dim")
    interruption = _last_interruption(turn)
    _explain(turn, interruption)
    error_code = turn.error.code if turn.error is not None else interruption.code
    return turn_exit_code(turn.status, error_code)


def _explain(turn: ContinuationShown, interruption: Interrupted) -> None:
    """Print to standard error why the turn has no answer, and how to continue."""
    err = make_console(stderr=True)
    resume = f"`sash resume {turn.continuation_id}`"
    if turn.error is not None:
        print_text(err, f"error: {turn.error.message}", "red")
    elif turn.status == "awaiting_approval":
        print_question(err, turn)
        print_text(err, f"The turn waits for your approval: {resume} asks for it in a terminal.")
    elif turn.status == "interrupted":
        cause = f" ({interruption.message})" if interruption.message else ""
        print_text(err, f"The turn was interrupted{cause}: {resume} continues it.")
    elif turn.response is None:
        print_text(err, f"There is no answer: the turn is {turn.status}.")


def _last_interruption(turn: ContinuationShown) -> Interrupted:
    """Return the last `Interrupted` step of an interrupted turn, or one without fields."""
    bodies = [step.body for step in turn.steps] if turn.status == "interrupted" else []
    return next((body for body in reversed(bodies) if isinstance(body, Interrupted)), Interrupted())
