"""Input lines from a terminal or a pipe."""

import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console

from sash.cli.terminal.console import pick_symbol
from sash.intents.approval_words import parse_approval

try:
    import readline
except ModuleNotFoundError:  # This system has no line editing.
    readline = None  # type: ignore[assignment]


class LineInput:
    """Reads lines. In a terminal the user can edit them and recall earlier ones.

    The history of lines is not stored in a file, because a line may hold a secret. The transcript has the
    messages without secrets.
    """

    def __init__(self, console: Console) -> None:
        self.is_terminal = sys.stdin.isatty()
        self._console = console
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]

    def add_history(self, lines: Iterable[str]) -> None:
        """Add lines to the history, as if the user had typed them."""
        if readline is not None and self.is_terminal:
            for line in lines:
                with suppress(UnicodeEncodeError):  # The terminal cannot show this line.
                    readline.add_history(line)

    def read_line(self) -> str | None:
        """Return the next line without white space around it, or None at the end of the input."""
        if not self.is_terminal:
            line = sys.stdin.readline()
            return line.strip() if line else None
        try:
            return input(self._prompt()).strip()
        except EOFError:
            self._console.out("")
            return None

    def leave_prompt(self) -> None:
        """Begin an empty line, to print something while the user may be typing."""
        if self.is_terminal:
            self._console.out("\r\x1b[K", end="", highlight=False)

    def repeat_prompt(self) -> None:
        """Show the prompt again, with what the user has typed so far."""
        if self.is_terminal:
            typed = "" if readline is None else readline.get_line_buffer()
            sys.stdout.write(f"{self._prompt()}{typed}".replace("\001", "").replace("\002", ""))
            sys.stdout.flush()

    def confirm(self, question: str, *, default: bool = False) -> bool | None:
        """Ask a yes-or-no question. Return None if the input has ended or is not a terminal."""
        if not self.is_terminal:
            return None
        while True:
            try:
                line = input(f"{question} [{'Y/n' if default else 'y/N'}] ").strip()
            except EOFError:
                self._console.out("")
                return None
            if readline is not None and line:
                readline.remove_history_item(readline.get_current_history_length() - 1)
            answer = parse_approval(line) if line else default
            if answer is not None:
                return answer
            self._console.out("Type y for yes or n for no.")

    def _prompt(self) -> str:
        mark = pick_symbol(self._console, "›", ">")
        if self._console.no_color or self._console.color_system is None or readline is None:
            return f"{mark} "
        # \\001 and \\002 enclose characters without width; readline needs that to place the cursor.
        return f"\001\033[1;36m\002{mark}\001\033[0m\002 "
