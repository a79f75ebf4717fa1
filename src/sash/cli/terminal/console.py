"""Consoles for a terminal or a pipe, and text that is safe to print."""

import json
import os
import sys
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

# The width of a pipe, unless COLUMNS says otherwise. Lines are neither cut nor wrapped.
PIPE_WIDTH = 500

# Control characters. Models and homes write text that could move the cursor or rename the window.
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def make_console(*, stderr: bool = False) -> Console:
    """Return a console for standard output or error. Characters that it cannot encode are replaced."""
    stream = sys.stderr if stderr else sys.stdout
    if not _is_unicode(stream.encoding):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def strip_controls(text: str) -> str:
    """Return the text without control characters, except newline and tab."""
    return text.translate(_CONTROLS)


def one_line(text: str, max_chars: int) -> str:
    """Return the first `max_chars` characters of a text on one line, without control characters."""
    line = " ".join(strip_controls(text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def pick_symbol(console: Console, symbol: str, ascii_symbol: str) -> str:
    """Return the symbol, or the ASCII one if the console has no Unicode."""
    return symbol if _is_unicode(console.encoding) else ascii_symbol


def print_json(value: Any) -> None:
    """Print JSON to standard output. Escape characters that the stream cannot encode."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=not _is_unicode(sys.stdout.encoding)))


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a text without wrapping it and without interpreting markup."""
    console.print(Text(strip_controls(text), style=style), soft_wrap=True)


def _is_unicode(encoding: str | None) -> bool:
    return (encoding or "").lower().startswith("utf")
