"""Measures the cost of the server, under load and compared with the direct call.

The server is the program `sash serve` (SQLite, the demo home, no model) on a folder in memory. Its CPU and
memory are read from outside. Clients and listeners run in their own processes.

Load. 50 clients have a session each. They send sentences that need no model, each as soon as the last one is
answered. A turn is a POST, and a GET that waits. A third of the sentences switch lights. First there are no
listeners. Then 1,000 listeners receive the events: 20 per session, then all of one session. Then the clients
pause for a second between turns, again with both kinds of listeners. Every listener must receive every event
of the store once, in order.

Overhead. The same questions are asked by the direct call, by REST and by MCP, from one client and from 50.
The direct call is `send_message` and `await_continuation`, or `ask`, in one process with the same store and
home. The figure is the CPU of the whole process. The surfaces take turns for several rounds. The results are
the median of the rounds and the median of their ratios.
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
# After this many turns the window of a session is full, and its memory stops growing.
WARM_TURNS = 64
PAUSE_S = 1.0
SAMPLE_S = 0.25
STOP_S = 60.0
TMPFS = Path("/dev/shm")

MAX_GROWTH = 1.02
MAX_OVERHEAD = 3.0

# Each surface, with the direct call that it is compared with.
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
class LoadResult:
    """The measurements of one load. `resident_mib` are samples; `lost` counts events that did not arrive."""

    turns: int
    times: dict[str, dict[str, float]]
    requests: int
    errors: list[str]
    seconds: float
    client_cores: float
    cpu_s: float
    resident_mib: list[float]
    received: dict[str, Any] | None = None
    lost: int = 0

    @property
    def growth(self) -> float:
        """Return the growth of memory in the second half: its last tenth divided by its first tenth."""
        half = self.resident_mib[len(self.resident_mib) // 2 :]
        tenth = max(1, len(half) // 10)
        return statistics.mean(half[-tenth:]) / statistics.mean(half[:tenth])


class Program:
    """A child process that prints lines and waits for lines."""

    def __init__(
        self, stack: ExitStack, module: str, *arguments: str, environment: dict[str, str] | None = None
    ) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )
        stack.callback(self._stop)
        self.pid = self._process.pid

    def read_line(self) -> str:
        """Return the next line that the process prints."""
        line: str = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit(f"{self._name} failed, see above")
        return line

    def send_line(self, line: str = "") -> None:
        print(line, file=self._process.stdin, flush=True)

    def cpu_s(self) -> float:
        """Return the CPU time of all threads of the process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """Return the resident memory of the process in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait(STOP_S)


@contextmanager
def memory_folder() -> Iterator[str]:
    """Yield a folder in memory, where an fsync is free."""
    with tempfile.TemporaryDirectory(dir=TMPFS if TMPFS.is_dir() else None) as path:
        yield path


@contextmanager
def serving(path: str, max_listeners: int = LISTENERS) -> Iterator[tuple[Program, str]]:
    """Start a server; yield it and its address. An owner may have `max_listeners` listeners."""
    with ExitStack() as stack:
        # All listeners of these benchmarks belong to one owner.
        environment = {"SASH_MAX_SUBSCRIBERS_PER_OWNER": str(max_listeners)}
        server = Program(stack, "sash", "serve", "--port", "0", "--data", path, environment=environment)
        found = re.search(r"http://\S+", server.read_line())
        assert found is not None
        yield server, found[0]


@contextmanager
def sample_memory(server: Program) -> Iterator[list[float]]:
    """Yield a list that collects samples of a server's memory in MiB."""
    samples, stop = [server.resident_mib()], threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_S):
            samples.append(server.resident_mib())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def run_load(seconds: float, warm_turns: int, sessions_with_listeners: int, pause_s: float) -> LoadResult:
    """Load a server with clients, while the listeners listen to the first sessions."""
    with ExitStack() as stack:
        path = stack.enter_context(memory_folder())
        sessions = asyncio.run(start_sessions(path))
        with serving(path) as (server, address):
            plan = Plan(
                "REST", address, CLIENTS, warm_turns, seconds=seconds, pause_s=pause_s, sessions=sessions
            )
            clients = Program(stack, "benchmarks._load", json.dumps(asdict(plan)))
            clients.read_line()
            if sessions_with_listeners:
                arguments = (address, str(LISTENERS), *sessions[:sessions_with_listeners])
                listeners = Program(stack, "benchmarks._listeners", *arguments)
                listeners.read_line()
            clients.send_line()
            clients.read_line()
            before, started_at = server.cpu_s(), time.time()
            with sample_memory(server) as resident_mib:
                clients.send_line()
                clients.read_line()
            cpu_s = server.cpu_s() - before
            clients.send_line()
            measured = json.loads(clients.read_line())
            received = None
            if sessions_with_listeners:
                listeners.send_line(str(started_at))
                received = json.loads(listeners.read_line())
        lost = 0
        if received:
            lost = received["skipped"] + asyncio.run(count_missing_events(path, received["last_cursors"]))
        return LoadResult(**measured, cpu_s=cpu_s, resident_mib=resident_mib, received=received, lost=lost)


async def start_sessions(path: str) -> list[str]:
    """Start a session for each client, with a policy that allows lights without a limit per minute."""
    policy = SessionPolicy(allow_actuation=True, allowlisted_services=("light",), max_actions_per_minute=None)
    async with make_runtime(Settings(data=Path(path), home="none")) as runtime:
        return [(await runtime.start_session(policy=policy)).id for _ in range(CLIENTS)]


async def count_missing_events(path: str, last_cursors: dict[str, dict[str, int]]) -> int:
    """Count the stored events after the last event of each listener."""
    store, lost = SqliteStore(Path(path) / "sash.db"), 0
    await store.open()
    for session_id, listeners_by_cursor in last_cursors.items():
        stored = await store.events(DEFAULT_OWNER, session_id, after=0, limit=sys.maxsize)
        cursors = [item.step.cursor for item in stored]
        assert cursors == list(range(1, len(cursors) + 1)), f"session {session_id}: {cursors}"
        lost += sum((len(cursors) - int(cursor)) * count for cursor, count in listeners_by_cursor.items())
    await store.close()
    return lost


def measure_cpu_per_turn(
    surface: str, address: str, server: Program | None, clients: int, turns: int
) -> float:
    """Return the CPU time per turn in ms, of the server or of the process of the direct call."""
    with ExitStack() as stack:
        target = address if server else stack.enter_context(memory_folder())
        plan = Plan(surface, target, clients, 1 + WARM_TURNS // clients, turns)
        program = Program(stack, "benchmarks._load", json.dumps(asdict(plan)))
        program.read_line()
        program.send_line()
        program.read_line()
        measured_process = server or program
        before = measured_process.cpu_s()
        program.send_line()
        program.read_line()
        cpu_s = measured_process.cpu_s() - before
        program.send_line()
        errors = json.loads(program.read_line())["errors"]
        if errors:
            raise SystemExit(f"{surface}: {errors[0]}")
        return cpu_s * 1e3 / (clients * turns)


def measure_overhead(rounds: int, turns: int, console: Console) -> dict[tuple[str, int], list[float]]:
    """Measure the CPU per turn of each surface, from one client and from many."""
    costs: dict[tuple[str, int], list[float]] = {}
    for n in range(rounds):
        with memory_folder() as path, serving(path) as (server, address):
            for surface in OVERHEAD:
                for clients in (1, CLIENTS):
                    with console.status(f"overhead, round {n + 1} of {rounds}: {surface}, {clients} …"):
                        served = None if surface.startswith("direct") else server
                        turns_each = turns if clients == 1 else turns * 2 // clients
                        cost = measure_cpu_per_turn(surface, address, served, clients, turns_each)
                        costs.setdefault((surface, clients), []).append(cost)
    return costs


def compute_ratio(costs: dict[tuple[str, int], list[float]], surface: str, clients: int) -> float:
    """Return the cost of a surface divided by that of the direct call, as the median of the rounds."""
    direct = costs[OVERHEAD[surface], clients]
    return statistics.median(a / b for a, b in zip(costs[surface, clients], direct, strict=True))


def list_figures(result: LoadResult) -> Iterator[tuple[str, dict[str, float], str]]:
    """Yield each figure of a load: its name, its parts, and their unit."""
    yield "turns per second", {"": result.turns / result.seconds}, ""
    for name, times in result.times.items():
        yield name, in_ms(times), "ms"
    yield "server CPU per turn", {"": result.cpu_s * 1e3 / result.turns}, "ms"
    yield "server CPU per request", {"": result.cpu_s * 1e3 / result.requests}, "ms"
    yield "CPU of the server", {"": result.cpu_s / result.seconds}, "cores"
    yield "CPU of the clients", {"": result.client_cores}, "cores"
    middle = len(result.resident_mib) // 2
    resident_mib = result.resident_mib
    memory = {"start": resident_mib[0], "middle": resident_mib[middle], "end": resident_mib[-1]}
    yield "memory", memory, "MiB"
    yield "errors", {"": len(result.errors)}, ""
    if result.received is not None:
        yield from list_event_figures(result.received, result.lost)


def list_event_figures(received: dict[str, Any], lost: int) -> Iterator[tuple[str, dict[str, float], str]]:
    """Yield the figures of the listeners."""
    yield "events received", {"": received["events"]}, ""
    yield "events received per second", {"": received["events"] / received["seconds"]}, ""
    yield "event delay", in_ms(received["delays_s"]), "ms"
    yield "events lost", {"": lost}, ""
    yield "duplicate events", {"": received["duplicates"]}, ""
    yield "streams that did not end", {"": received["still_open"]}, ""
    yield "CPU of the listeners", {"": received["cpu_s"] / received["seconds"]}, "cores"


def in_ms(seconds: dict[str, float]) -> dict[str, float]:
    return {name: value * 1e3 for name, value in seconds.items()}


def show_loads(loads: dict[str, LoadResult], console: Console) -> None:
    """Print the figures of all loads side by side."""
    table = Table(title=f"{CLIENTS} clients over REST · {machine()}")
    table.add_column("", no_wrap=True)
    cells: dict[str, dict[str, str]] = {}
    for name, result in loads.items():
        table.add_column(name, justify="right")
        for figure, parts, unit in list_figures(result):
            label = ", ".join(filter(None, (figure, " / ".join(parts)))) + (f" ({unit})" if unit else "")
            cells.setdefault(label, {})[name] = " / ".join(map(as_text, parts.values()))
    for label, values in cells.items():
        table.add_row(label, *(values.get(name, "–") for name in loads))
    console.print(table)


def as_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2f}"


def show_overhead(costs: dict[tuple[str, int], list[float]], console: Console) -> None:
    """Print the CPU per turn of each surface."""
    table = Table(title="CPU per turn, for a question that needs no model")
    table.add_column("", no_wrap=True)
    for clients in (1, CLIENTS):
        for column in ("ms", "more", "× direct"):
            table.add_column(f"{clients} client{'s' * (clients > 1)}: {column}", justify="right")
    for surface, base in OVERHEAD.items():
        cells = []
        for clients in (1, CLIENTS):
            cost, direct = (statistics.median(costs[name, clients]) for name in (surface, base))
            cells += [f"{cost:.2f}", f"{cost - direct:+.2f}", f"{compute_ratio(costs, surface, clients):.2f}"]
        table.add_row(surface, *cells, style="bold" if surface == base else "")
    console.print(table)


def list_targets(
    loads: dict[str, LoadResult], costs: dict[tuple[str, int], list[float]]
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each target: its text, the limit, the measured value, and if it is reached."""
    errors = [error for result in loads.values() for error in result.errors]
    yield "errors", "none", str(len(errors)), not errors
    received = [result.received for result in loads.values() if result.received]
    lost = sum(result.lost for result in loads.values())
    duplicates, still_open = (sum(one[key] for one in received) for key in ("duplicates", "still_open"))
    yield "events lost", "none", f"{lost} of {sum(one['events'] for one in received):,}", not lost
    wrong = duplicates + still_open
    yield "duplicate events, or streams that did not end", "none", str(wrong), not wrong
    for name, result in loads.items():
        text = f"memory growth in the second half, {name}"
        yield text, f"< {MAX_GROWTH} ×", f"{result.growth:.3f} ×", result.growth < MAX_GROWTH
    for clients in (1, CLIENTS):
        cost, text = (
            compute_ratio(costs, "REST", clients),
            f"CPU of REST against the direct call, clients: {clients}",
        )
        yield text, f"< {MAX_OVERHEAD:.0f} ×", f"{cost:.2f} ×", cost < MAX_OVERHEAD


def make_rows(loads: dict[str, LoadResult], costs: dict[tuple[str, int], list[float]]) -> Iterator[Row]:
    """Yield all results as rows."""
    for name, result in loads.items():
        params = {"clients": CLIENTS, "listeners": LISTENERS if result.received else 0, "s": result.seconds}
        for figure, parts, unit in list_figures(result):
            for part, value in parts.items():
                yield Row("server", name, f"{figure}, {part}" if part else figure, value, unit, params)
        yield Row("server", name, "memory, growth", result.growth, "×", params)
    for (surface, clients), measured in costs.items():
        params = {"clients": clients, "rounds": len(measured)}
        yield Row("server", surface, "CPU per turn", statistics.median(measured), "ms", params)
        yield Row("server", surface, "× direct", compute_ratio(costs, surface, clients), "×", params)


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    seconds, warm_turns, rounds, turns = (6.0, 6, 1, 100) if options.quick else (60.0, WARM_TURNS, 5, 300)
    loads: dict[str, LoadResult] = {}
    for name, sessions_with_listeners, pause_s in (
        ("no listeners", 0, 0.0),
        (f"{LISTENERS:,} listeners, {CLIENTS} sessions", CLIENTS, 0.0),
        (f"{LISTENERS:,} listeners, 1 session", 1, 0.0),
        (f"with pauses, {CLIENTS} sessions", CLIENTS, PAUSE_S),
        ("with pauses, 1 session", 1, PAUSE_S),
    ):
        with console.status(f"{CLIENTS} clients for {seconds:.0f} s: {name} …"):
            loads[name] = run_load(seconds, warm_turns, sessions_with_listeners, pause_s)
    show_loads(loads, console)
    costs = measure_overhead(rounds, turns, console)
    show_overhead(costs, console)
    table = Table(title="targets")
    table.add_column("", no_wrap=True)
    for column in ("target", "measured", "reached"):
        table.add_column(column, justify="right")
    for text, limit, value, reached in list_targets(loads, costs):
        table.add_row(text, limit, f"[bold]{value}[/]", "[green]✓[/]" if reached else "[red]✗[/]")
    console.print(table)
    write_json([*make_rows(loads, costs)], options.json)


if __name__ == "__main__":
    main()
