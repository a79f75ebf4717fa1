"""The question for the approval of a tool call."""

from rich.console import Console

from sash.app.schemas import WaitingCall
from sash.cli.terminal.console import print_text
from sash.cli.terminal.line_input import LineInput


def ask_for_approval(lines: LineInput, console: Console, call: WaitingCall) -> bool | None:
    """Show a call and the reason for the approval, and ask. None means that the user gave no answer."""
    print_text(console, describe_waiting_call(call), "yellow")
    print_text(console, f"  {call.reason}", "dim")
    return lines.confirm("Allow it?")


def describe_waiting_call(call: WaitingCall) -> str:
    """Return a sentence about the effect of a call: "The agent wants to unlock Front door lock …"."""
    return f"The agent wants to {call.in_words}"
