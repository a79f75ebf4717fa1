"""What is written to: a terminal with colours, or a pipe that gets plain text in whole lines."""

import json
import os
import sys
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

# In a pipe nothing is cut off or wrapped, unless somebody says how wide it is.
WIDE = 500

# What would move the cursor, colour the terminal or name its window: texts come from models and houses.
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def make_console(*, stderr: bool = False) -> Console:
    """Return the console of standard output, or of standard error; what it cannot encode is replaced."""
    stream = sys.stderr if stderr else sys.stdout
    if not _is_unicode(stream.encoding):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def plain(text: str) -> str:
    """Return a text without what would do something to a terminal."""
    return text.translate(_CONTROLS)


def one_line(text: str, most: int) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def sign(console: Console, mark: str, ascii_mark: str) -> str:
    """Return a mark, or another where it cannot be shown."""
    return mark if _is_unicode(console.encoding) else ascii_mark


def print_json(value: Any) -> None:
    """Print JSON values, in letters that the stream can write."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=not _is_unicode(sys.stdout.encoding)))


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence that no width wraps and no markup changes."""
    console.print(Text(plain(text), style=style), soft_wrap=True)


def _is_unicode(encoding: str | None) -> bool:
    return (encoding or "").lower().startswith("utf")
