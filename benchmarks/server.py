"""What the server costs, under load and over the direct call.

The server is the program itself (`sash serve`: SQLite, the demo house, no model) on a folder in memory; its
CPU and its memory are read from outside. Those who load it run in processes of their own.

Load. 50 clients with a session each say sentences that are understood without a model, one after the other,
as fast as they are answered: a POST, and a GET that waits. A third of the sentences switch lights. First they
are alone; then 1,000 listen to the events meanwhile, 20 to each session, then all to one; then the same with
clients that pause for a second. Every listener must be sent every event that the store has, once, in order.

Overhead. The same questions by the direct call (`send_message` and `await_continuation`, or `ask`, in one
process with the same store and house), by REST and by MCP, from one client and from 50. What counts is the
CPU of the whole process: the median of the rounds, in which the surfaces take turns, and of their ratios.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._load import Plan
from benchmarks._report import Row, arguments, machine, write_json
from sash.app.assembly import make_runtime
from sash.app.settings import Settings
from sash.stores.sqlite.store import SqliteStore
from sash.values.sessions import DEFAULT_OWNER, SessionPolicy

CLIENTS = 50
LISTENERS = 1_000
# So many fill the window of a session: from then on its memory does not grow any more.
WARM_TURNS = 64
PAUSE_S = 1.0
SAMPLE_S = 0.25
STOP_S = 60.0
TMPFS = Path("/dev/shm")

MAX_GROWTH = 1.02
MAX_OVERHEAD = 3.0

OVERHEAD = {
    "direct": "direct",
    "REST": "direct",
    "REST, conversation": "direct",
    "MCP": "direct",
    "direct, ask": "direct, ask",
    "REST, ask": "direct, ask",
    "MCP, ask": "direct, ask",
}


@dataclass(frozen=True)
class Loaded:
    """What one load has measured: memory in MiB, now and then, and how many events were not sent."""

    turns: int
    times: dict[str, dict[str, float]]
    requests: int
    errors: list[str]
    seconds: float
    client_cores: float
    cpu_s: float
    resident: list[float]
    heard: dict[str, Any] | None = None
    lost: int = 0

    @property
    def growth(self) -> float:
        """How much memory has grown in the second half: its last tenth against its first."""
        half = self.resident[len(self.resident) // 2 :]
        tenth = max(1, len(half) // 10)
        return statistics.mean(half[-tenth:]) / statistics.mean(half[:tenth])


class Program:
    """A program that stops at points and goes on when it is told to."""

    def __init__(self, stack: ExitStack, module: str, *words: str) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(self._stop)
        self.pid = self._process.pid

    def line(self) -> str:
        """Return the next line that it prints."""
        line: str = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit(f"{self._name} has failed, see above")
        return line

    def go_on(self, line: str = "") -> None:
        print(line, file=self._process.stdin, flush=True)

    def cpu_s(self) -> float:
        """Return the CPU time of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Return its memory in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait(STOP_S)


@contextmanager
def folder() -> Iterator[str]:
    """Give a folder in memory, where an fsync is free."""
    with tempfile.TemporaryDirectory(dir=TMPFS if TMPFS.is_dir() else None) as path:
        yield path


@contextmanager
def serving(path: str) -> Iterator[tuple[Program, str]]:
    """Give a server with its address."""
    with ExitStack() as stack:
        server = Program(stack, "sash", "serve", "--port", "0", "--data", path)
        found = re.search(r"http://\S+", server.line())
        assert found is not None
        yield server, found[0]


@contextmanager
def sampled(server: Program) -> Iterator[list[float]]:
    """Give the samples of a server's memory, which come in meanwhile."""
    samples, enough = [server.resident()], threading.Event()

    def sample() -> None:
        while not enough.wait(SAMPLE_S):
            samples.append(server.resident())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        enough.set()
        thread.join()


def load(seconds: float, warm_turns: int, listened: int, pause_s: float) -> Loaded:
    """Load a server with clients, while all listeners listen to the first sessions."""
    with ExitStack() as stack:
        path = stack.enter_context(folder())
        sessions = asyncio.run(begin_sessions(path))
        with serving(path) as (server, address):
            plan = Plan(
                "REST", address, CLIENTS, warm_turns, seconds=seconds, pause_s=pause_s, sessions=sessions
            )
            clients = Program(stack, "benchmarks._load", json.dumps(asdict(plan)))
            clients.line()
            if listened:
                words = (address, str(LISTENERS), *sessions[:listened])
                listeners = Program(stack, "benchmarks._listeners", *words)
                listeners.line()
            clients.go_on()
            clients.line()
            before, begun_at = server.cpu_s(), time.time()
            with sampled(server) as resident:
                clients.go_on()
                clients.line()
            cpu_s = server.cpu_s() - before
            clients.go_on()
            measured = json.loads(clients.line())
            heard = None
            if listened:
                listeners.go_on(str(begun_at))
                heard = json.loads(listeners.line())
        lost = heard["skipped"] + asyncio.run(count_lost(path, heard["last"])) if heard else 0
        return Loaded(**measured, cpu_s=cpu_s, resident=resident, heard=heard, lost=lost)


async def begin_sessions(path: str) -> list[str]:
    """Begin a session for each client that may switch lights as often as it likes."""
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("light",), max_actions_per_minute=None)
    async with make_runtime(Settings(data=Path(path), home="none")) as runtime:
        return [(await runtime.start_session(policy=policy)).id for _ in range(CLIENTS)]


async def count_lost(path: str, last: dict[str, dict[str, int]]) -> int:
    """Count the events that the store has, and listeners have not seen at the end."""
    store, lost = SqliteStore(Path(path) / "sash.db"), 0
    await store.open()
    for session_id, seen in last.items():
        stored = await store.events(DEFAULT_OWNER, session_id, after=0, limit=sys.maxsize)
        cursors = [item.step.cursor for item in stored]
        assert cursors == list(range(1, len(cursors) + 1)), f"session {session_id}: {cursors}"
        lost += sum((len(cursors) - int(cursor)) * count for cursor, count in seen.items())
    await store.close()
    return lost


def cpu_a_turn(surface: str, address: str, server: Program | None, clients: int, turns: int) -> float:
    """Return how many milliseconds of CPU a turn takes: of the server, or of the direct call's process."""
    with ExitStack() as stack:
        at = address if server else stack.enter_context(folder())
        plan = Plan(surface, at, clients, 1 + WARM_TURNS // clients, turns)
        program = Program(stack, "benchmarks._load", json.dumps(asdict(plan)))
        program.line()
        program.go_on()
        program.line()
        measured = server or program
        before = measured.cpu_s()
        program.go_on()
        program.line()
        cpu_s = measured.cpu_s() - before
        program.go_on()
        errors = json.loads(program.line())["errors"]
        if errors:
            raise SystemExit(f"{surface}: {errors[0]}")
        return cpu_s * 1e3 / (clients * turns)


def measure_overhead(rounds: int, turns: int, console: Console) -> dict[tuple[str, int], list[float]]:
    """Measure what a turn costs by each surface, from one client and from many."""
    costs: dict[tuple[str, int], list[float]] = {}
    for n in range(rounds):
        with folder() as path, serving(path) as (server, address):
            for surface in OVERHEAD:
                for clients in (1, CLIENTS):
                    with console.status(f"overhead, round {n + 1} of {rounds}: {surface}, {clients} …"):
                        served = None if surface.startswith("direct") else server
                        each = turns if clients == 1 else turns * 2 // clients
                        cost = cpu_a_turn(surface, address, served, clients, each)
                        costs.setdefault((surface, clients), []).append(cost)
    return costs


def ratio(costs: dict[tuple[str, int], list[float]], surface: str, clients: int) -> float:
    """Return what a turn costs by a surface against the direct call, in the median of the rounds."""
    direct = costs[OVERHEAD[surface], clients]
    return statistics.median(a / b for a, b in zip(costs[surface, clients], direct, strict=True))


def facts(loaded: Loaded) -> Iterator[tuple[str, dict[str, float], str]]:
    """Say what a load has measured: what it is, its parts, and their unit."""
    yield "turns", {"": loaded.turns / loaded.seconds}, "1/s"
    for what, times in loaded.times.items():
        yield what, in_ms(times), "ms"
    yield "server CPU a turn", {"": loaded.cpu_s * 1e3 / loaded.turns}, "ms"
    yield "server CPU a request", {"": loaded.cpu_s * 1e3 / loaded.requests}, "ms"
    yield "server", {"": loaded.cpu_s / loaded.seconds}, "cores"
    yield "clients", {"": loaded.client_cores}, "cores"
    middle = len(loaded.resident) // 2
    resident = {"start": loaded.resident[0], "middle": loaded.resident[middle], "end": loaded.resident[-1]}
    yield "resident", resident, "MiB"
    yield "errors", {"": len(loaded.errors)}, ""
    if loaded.heard is not None:
        yield from facts_heard(loaded.heard, loaded.lost)


def facts_heard(heard: dict[str, Any], lost: int) -> Iterator[tuple[str, dict[str, float], str]]:
    """Say what the listeners have heard."""
    yield "events heard", {"": heard["events"]}, ""
    yield "events heard a second", {"": heard["events"] / heard["seconds"]}, "1/s"
    yield "an event is late", in_ms(heard["late_s"]), "ms"
    yield "events lost", {"": lost}, ""
    yield "events doubled", {"": heard["doubled"]}, ""
    yield "streams that did not end", {"": heard["open_still"]}, ""
    yield "listeners", {"": heard["cpu_s"] / heard["seconds"]}, "cores"


def in_ms(seconds: dict[str, float]) -> dict[str, float]:
    return {what: value * 1e3 for what, value in seconds.items()}


def show_loads(loads: dict[str, Loaded], console: Console) -> None:
    """Print what the loads have measured, side by side."""
    table = Table(title=f"{CLIENTS} clients over REST · {machine()}")
    table.add_column("", no_wrap=True)
    cells: dict[str, dict[str, str]] = {}
    for name, loaded in loads.items():
        table.add_column(name, justify="right")
        for what, parts, unit in facts(loaded):
            label = " ".join(filter(None, (what, " / ".join(filter(None, parts)), unit)))
            cells.setdefault(label, {})[name] = " / ".join(map(as_text, parts.values()))
    for label, values in cells.items():
        table.add_row(label, *(values.get(name, "–") for name in loads))
    console.print(table)


def as_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2f}"


def show_overhead(costs: dict[tuple[str, int], list[float]], console: Console) -> None:
    """Print what a turn costs by each surface."""
    table = Table(title="CPU of a turn, a question that is understood without a model")
    table.add_column("", no_wrap=True)
    for clients in (1, CLIENTS):
        for column in ("ms", "more", "× direct"):
            table.add_column(f"{clients} client{'s' * (clients > 1)}: {column}", justify="right")
    for surface, base in OVERHEAD.items():
        cells = []
        for clients in (1, CLIENTS):
            cost, direct = (statistics.median(costs[name, clients]) for name in (surface, base))
            cells += [f"{cost:.2f}", f"{cost - direct:+.2f}", f"{ratio(costs, surface, clients):.2f}"]
        table.add_row(surface, *cells, style="bold" if surface == base else "")
    console.print(table)


def verdicts(
    loads: dict[str, Loaded], costs: dict[tuple[str, int], list[float]]
) -> Iterator[tuple[str, str, str, bool]]:
    """Say which figures are reached."""
    errors = [error for loaded in loads.values() for error in loaded.errors]
    yield "errors", "none", str(len(errors)), not errors
    heard = [loaded.heard for loaded in loads.values() if loaded.heard]
    lost = sum(loaded.lost for loaded in loads.values())
    doubled, still = (sum(some[what] for some in heard) for what in ("doubled", "open_still"))
    yield "events lost", "none", f"{lost} of {sum(some['events'] for some in heard):,}", not lost
    yield "events doubled, or streams that did not end", "none", str(doubled + still), not doubled + still
    for name, loaded in loads.items():
        text = f"memory in the second half, {name}"
        yield text, f"< {MAX_GROWTH} ×", f"{loaded.growth:.3f} ×", loaded.growth < MAX_GROWTH
    for clients in (1, CLIENTS):
        cost, text = ratio(costs, "REST", clients), f"CPU of REST against the direct call, clients: {clients}"
        yield text, f"< {MAX_OVERHEAD:.0f} ×", f"{cost:.2f} ×", cost < MAX_OVERHEAD


def rows(loads: dict[str, Loaded], costs: dict[tuple[str, int], list[float]]) -> Iterator[Row]:
    """Return what was measured, as rows."""
    for name, loaded in loads.items():
        params = {"clients": CLIENTS, "listeners": LISTENERS if loaded.heard else 0, "s": loaded.seconds}
        for what, parts, unit in facts(loaded):
            for part, value in parts.items():
                yield Row("server", name, f"{what} {part}".strip(), value, unit, params)
        yield Row("server", name, "resident, growth", loaded.growth, "×", params)
    for (surface, clients), measured in costs.items():
        params = {"clients": clients, "rounds": len(measured)}
        yield Row("server", surface, "CPU a turn", statistics.median(measured), "ms", params)
        yield Row("server", surface, "× direct", ratio(costs, surface, clients), "×", params)


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    seconds, warm_turns, rounds, turns = (6.0, 6, 1, 100) if options.quick else (60.0, WARM_TURNS, 5, 300)
    loads: dict[str, Loaded] = {}
    for name, listened, pause_s in (
        ("alone", 0, 0.0),
        (f"{LISTENERS:,} listen to {CLIENTS}", CLIENTS, 0.0),
        (f"{LISTENERS:,} listen to 1", 1, 0.0),
        (f"with pauses, to {CLIENTS}", CLIENTS, PAUSE_S),
        ("with pauses, to 1", 1, PAUSE_S),
    ):
        with console.status(f"{CLIENTS} clients for {seconds:.0f} s: {name} …"):
            loads[name] = load(seconds, warm_turns, listened, pause_s)
    show_loads(loads, console)
    costs = measure_overhead(rounds, turns, console)
    show_overhead(costs, console)
    table = Table(title="figures")
    table.add_column("", no_wrap=True)
    for column in ("to reach", "measured", "reached"):
        table.add_column(column, justify="right")
    for text, wanted, value, reached in verdicts(loads, costs):
        table.add_row(text, wanted, f"[bold]{value}[/]", "[green]✓[/]" if reached else "[red]✗[/]")
    console.print(table)
    write_json([*rows(loads, costs)], options.json)


if __name__ == "__main__":
    main()
