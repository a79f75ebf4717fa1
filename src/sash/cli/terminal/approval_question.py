"""The question for the approval of a turn's calls, and why it is asked."""

from rich.console import Console

from sash.app.schemas import ContinuationShown
from sash.cli.terminal.console import print_text


def print_question(console: Console, turn: ContinuationShown) -> None:
    """Print the question of a turn that waits for an approval."""
    print_text(console, turn.question or "", "yellow")


def print_reasons(console: Console, turn: ContinuationShown) -> None:
    """Print why the calls of a turn need an approval."""
    for reason in dict.fromkeys(call.reason for call in turn.waiting_calls):
        print_text(console, f"  Why it is asked: {reason}", "dim")
