"""A progress bar on standard error, in a terminal only and for slow work only."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from sash.cli.terminal.console import make_console

DELAY_S = 0.5

Advance = Callable[[int], None]


@contextmanager
def show_progress(label: str, total: int | None = None, *, delay_s: float = DELAY_S) -> Iterator[Advance]:
    """Show a progress bar after `delay_s`. Without a total it only shows that the work continues."""
    console = make_console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(label, total=total)
    timer = threading.Timer(delay_s, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: bar.advance(task, amount)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
