"""A progress bar on standard error: only on a terminal, and only for what takes a while."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from sash.cli.console import make_console

AFTER_S = 0.5

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """Show how far something is; without a total only that it goes on."""
    console = make_console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: bar.advance(task, amount)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
