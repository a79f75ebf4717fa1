"""Lines that somebody types, or that come out of a pipe."""

import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console

from sash.app.schemas import WaitingCall
from sash.cli.console import sign
from sash.intents.approval_words import parse_approval

try:
    import readline
except ModuleNotFoundError:  # no line editing on this system
    readline = None  # type: ignore[assignment]


class Lines:
    """Reads lines. What is typed can be edited, and is offered again for as long as the program runs.

    It is not kept in a file: what is typed may be a secret, and the transcript has it without.
    """

    def __init__(self, console: Console) -> None:
        self.typed = sys.stdin.isatty()
        self._console = console
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]

    def offer(self, lines: Iterable[str]) -> None:
        """Offer lines as if they had been typed before."""
        if readline is not None and self.typed:
            for line in lines:
                with suppress(UnicodeEncodeError):  # The terminal has no letters for it.
                    readline.add_history(line)

    def read(self) -> str | None:
        """Return the next line, or None if there are no more."""
        if not self.typed:
            line = sys.stdin.readline()
            return line.strip() if line else None
        try:
            return input(self._prompt()).strip()
        except EOFError:
            self._console.out("")
            return None

    def confirm(self, question: str, *, default: bool = False) -> bool | None:
        """Ask for a yes or no; None if nobody is there to say so."""
        if not self.typed:
            return None
        while True:
            try:
                said = input(f"{question} [{'Y/n' if default else 'y/N'}] ").strip()
            except EOFError:
                self._console.out("")
                return None
            if readline is not None and said:
                readline.remove_history_item(readline.get_current_history_length() - 1)
            answer = parse_approval(said) if said else default
            if answer is not None:
                return answer
            self._console.out("Type y for yes or n for no.")

    def _prompt(self) -> str:
        mark = sign(self._console, "›", ">")
        if self._console.no_color or self._console.color_system is None or readline is None:
            return f"{mark} "
        # Between \\001 and \\002 stands what has no width, for readline to know where the cursor is.
        return f"\001\033[1;36m\002{mark}\001\033[0m\002 "


def ask_for_yes(lines: Lines, console: Console, call: WaitingCall) -> bool | None:
    """Show what a call would do and why it needs a yes, and ask for it."""
    from sash.cli.console import say

    say(console, f"It wants to use {call.in_words}", "yellow")
    say(console, f"  {call.reason}", "dim")
    return lines.confirm("Shall it?")
