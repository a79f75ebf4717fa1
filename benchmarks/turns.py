"""Runs the same durable turn of three steps with Sash and its peers, each in its own process.

The software cost is measured on tmpfs, where an fsync is free. strace counts the fsyncs in separate runs.
"Bytes" is the mean of the bytes that the process wrote in the 19 turns around turn 10 and around turn 200.
"Turns per second" is measured with 50 sessions at once. The systems take turns for several rounds, because
the machine's speed changes. The result is the median of the rounds.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._durable import NEIGHBOURS, SYSTEMS
from benchmarks._report import Row, arguments, machine, write_json

SESSIONS = 50
ROUNDS = 5
TMPFS = Path("/dev/shm")
UNITS = {
    "median": "ms",
    "p95": "ms",
    "turns per second": "",
    "import": "ms",
    "rss": "MiB",
    "fsyncs per turn": "",
}


def run(name: str, turns: int, sessions: int, *, traced: bool = False) -> dict[str, float]:
    """Run one system and return its measurements; with `traced`, return only the number of fsyncs."""
    with tempfile.TemporaryDirectory(dir=TMPFS if TMPFS.is_dir() else None) as folder:
        trace = Path(folder) / "trace"
        strace = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace)] if traced else []
        command = [
            *strace,
            sys.executable,
            "-m",
            "benchmarks._durable",
            name,
            folder,
            str(turns),
            str(sessions),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
        if traced:
            return {"syncs": trace.read_text().count("sync(")}
        results: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return results


def count_fsyncs(name: str) -> float | None:
    """Return the fsyncs per turn, from the difference of a long and a short run; None without strace."""
    if shutil.which("strace") is None:
        return None
    more, fewer = (run(name, turns, 1, traced=True)["syncs"] for turns in (40, 20))
    return (more - fewer) / 20


def run_endurance(mode: str, count: int) -> dict[str, float]:
    """Run one of the long measurements of Sash on SQLite."""
    with tempfile.TemporaryDirectory(dir=TMPFS if TMPFS.is_dir() else None) as folder:
        command = [sys.executable, "-m", "benchmarks._endurance", mode, folder, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True)
        results: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return results


def show(rows: list[Row], turns: int, console: Console) -> None:
    """Print the table, and for each target if it was reached."""
    of = {(row.system, row.metric): row.value for row in rows}
    metrics = list(dict.fromkeys(row.metric for row in rows))
    table = Table(title=f"a durable turn of three steps, {turns} turns in one session · {machine()}")
    table.add_column("")
    for metric in metrics:
        table.add_column(f"{metric} {UNITS.get(metric, 'B')}".strip(), justify="right")
    for name in SYSTEMS:
        cells = [f"{of[name, m]:,.1f}" if (name, m) in of else "–" for m in metrics]
        table.add_row(name, *cells, style="bold green" if name.startswith("Sash") else "")
    console.print(table)
    sash, peers = "Sash, sqlite FULL", [name for name in SYSTEMS if not name.startswith("Sash")]
    cost = min(of[peer, "median"] for peer in peers) / of[sash, "median"]
    speed = of[sash, "turns per second"] / max(of[peer, "turns per second"] for peer in peers)
    growth = of[sash, "bytes at the end"] / of[sash, "bytes at turn 10"]
    syncs = max(
        (of[n, "fsyncs per turn"] for n in SYSTEMS if n.startswith("Sash") and (n, "fsyncs per turn") in of),
        default=0,
    )
    for text, value, reached in (
        ("fsyncs per turn, the maximum of Sash: at most 5", f"{syncs:.1f}", syncs <= 5),
        ("software cost against the nearest peer: at least 10 ×", f"{cost:.1f} ×", cost >= 10),
        ("turns per second against the nearest peer: at least 10 ×", f"{speed:.1f} ×", speed >= 10),
        ("bytes at the end against turn 10: at most 1.1 ×", f"{growth:.2f} ×", growth <= 1.1),
    ):
        console.print(f"{'[green]✓[/]' if reached else '[red]✗[/]'} {text}: [bold]{value}[/]")


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    turns, rounds = (60, 1) if options.quick else (200 + NEIGHBOURS, ROUNDS)
    rows: list[Row] = []
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SYSTEMS}
    for n in range(rounds):
        for name, measured in runs.items():
            with console.status(f"round {n + 1} of {rounds}: {name} …"):
                measured.append(run(name, turns, 1) | run(name, turns // 10, SESSIONS))
    for name, measured in runs.items():
        results = {metric: statistics.median(r[metric] for r in measured) for metric in measured[0]}
        with console.status(f"fsyncs of {name} …"):
            counted = count_fsyncs(name)
        if counted is not None:
            results["fsyncs per turn"] = counted
        params = {"turns": turns, "sessions": SESSIONS, "rounds": rounds, "tmpfs": TMPFS.is_dir()}
        rows += [
            Row("turns", name, metric, value, UNITS.get(metric, "B"), params)
            for metric, value in results.items()
        ]
    if shutil.which("strace") is None:
        console.print("fsyncs were not counted: strace is not installed")
    show(rows, turns, console)
    rows += show_endurance(*((500, 500) if options.quick else (10_000, 10_000)), console)
    write_json(rows, options.json)


def show_endurance(sessions: int, turns: int, console: Console) -> list[Row]:
    """Measure a large store and many turns in one session, and print both results."""
    with console.status("a large store, and many turns …"):
        opened, memory = run_endurance("open", sessions), run_endurance("memory", turns)
    name = "Sash, sqlite FULL"
    for text, value, reached in (
        (
            f"opening {sessions:,} sessions of 100 messages: under 1 s",
            f"{opened['open']:.0f} ms",
            opened["open"] < 1000,
        ),
        (
            f"memory over {turns:,} turns in one session: flat",
            f"{memory['growth']:.3f} ×",
            memory["growth"] < 1.05,
        ),
    ):
        console.print(f"{'[green]✓[/]' if reached else '[red]✗[/]'} {text}: [bold]{value}[/]")
    return [
        Row("turns", name, "open", opened["open"], "ms", {"sessions": sessions}),
        Row("turns", name, "memory growth", memory["growth"], "×", {"turns": turns}),
    ]


if __name__ == "__main__":
    main()
