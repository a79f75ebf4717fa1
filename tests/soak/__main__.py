"""Kills the server again and again while clients use it: python3 dev.py soak --minutes 10.

The server is the program `sash serve`, first on SQLite, then on files. A simulated Home Assistant counts the
calls, and a simulated model does what the messages ask for. The clients send messages, wait for the answers,
cancel some turns, resume interrupted ones, and listen to the events. The server gets SIGKILL at random moments,
often again while it starts. At the end, everything that a client was told must be stored once.
"""

import argparse
import asyncio
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.soak.checks import Verdict
from tests.soak.storm import Plan, run_storm
from tests.soak.storm import Progress as StormProgress

STORES = ("sqlite", "files")
MAX_SHOWN = 20


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev.py soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all stores together (default: 10)")
    parser.add_argument("--kills", type=int, default=60, help="for each store (default: 60)")
    parser.add_argument("--sessions", type=int, default=8, help="sessions at a time (default: 8)")
    parser.add_argument("--store", choices=STORES, help="only this store")
    parser.add_argument("--seed", type=int, default=1, help="for the random moments (default: 1)")
    options = parser.parse_args()
    if options.minutes <= 0 or options.kills < 1 or options.sessions < 1:
        parser.error("--minutes, --kills and --sessions must be positive")
    return options


def main() -> int:
    options, console = read_arguments(), Console()
    stores = [options.store] if options.store else list(STORES)
    interval_s = options.minutes * 60 / len(stores) / options.kills
    results: dict[str, tuple[Verdict, StormProgress]] = {}
    with Progress(
        TextColumn("{task.description:7}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} kills"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[counts]}"),
        console=console,
    ) as bars:
        for store in stores:
            bar = bars.add_task(store, total=options.kills, counts="")

            def show(progress: StormProgress, bar=bar) -> None:
                counts = f"{progress.turns:,} turns, {progress.events:,} events"
                bars.update(bar, completed=progress.kills, counts=counts)

            plan = Plan(store, options.sessions, options.kills, interval_s, options.seed)
            results[store] = asyncio.run(run_storm(plan, show))
    console.print(make_table(results))
    failed = [verdict for verdict, _ in results.values() if verdict.lost or verdict.doubled or verdict.wrong]
    for verdict in failed:
        for line in (*verdict.lost[:MAX_SHOWN], *verdict.doubled[:MAX_SHOWN], *verdict.wrong[:MAX_SHOWN]):
            console.print(f"  {line}", markup=False)
    console.print(
        "[red]something was lost or doubled[/]" if failed else "[green]nothing lost, nothing doubled[/]"
    )
    return 1 if failed else 0


def make_table(results: dict[str, tuple[Verdict, StormProgress]]) -> Table:
    """Return a row for each store, in the form of the table in `benchmarks/soak.md`."""
    table = Table(title="turns and events that clients were told of, and calls that the home received")
    for name in ("store", "kills", "while starting", "turns", "events", "calls", "lost", "doubled", "wrong"):
        table.add_column(name, justify="left" if name == "store" else "right")
    for store, (verdict, progress) in results.items():
        found = [f"[{'red' if each else 'green'}]{len(each)}[/]" for each in (verdict.lost, verdict.doubled)]
        counts = (progress.kills, progress.early_kills, verdict.turns, verdict.events, verdict.calls)
        table.add_row(store, *(f"{count:,}" for count in counts), *found, str(len(verdict.wrong)))
    return table


if __name__ == "__main__":
    sys.exit(main())
