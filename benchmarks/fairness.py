"""Measures the requests of one owner while another owner overloads the server.

The server is the program `sash serve` (SQLite, the demo home, the offline model) on a folder in memory. Two
owners have tokens. The attacker has a session of 100,000 messages. The victim sends a message and awaits its
answer, or reads a session, 20 times a second in turn. A request starts on time even if earlier ones have no
response yet, so that a frozen server shows in every request that it delays. First the victim is alone. Then
the attacker runs one attack. Each attack has a new server and a new copy of the data.
"""

import asyncio
import json
import shutil
import sys
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._attacks import ATTACKS, QUERY_WORDS, AttackPlan
from benchmarks._load import Connection
from benchmarks._report import Row, arguments, machine, write_json
from benchmarks.server import Program, memory_folder, sample_memory, serving
from sash.app.access import Tokens
from sash.app.assembly import TOKENS_FILE
from sash.app.settings import Settings
from sash.ports.store import Bundle, StoredMessage
from sash.stores.sqlite.store import SqliteStore
from sash.values.codec import adapter
from sash.values.ids import new_id
from sash.values.messages import MessageEntry
from sash.values.sessions import Session

MESSAGES = 100_000
ATTACK_S, ALONE_S = 10.0, 5.0
INTERVAL_S = 0.05
SETTLE_S = 0.5
MAX_P99_MS = 250.0
EXPORT_FILE = "export.json"


@dataclass
class VictimTimes:
    """The times of the victim's requests in seconds, and their errors."""

    turns: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def percentile_ms(self, share: float) -> float:
        ordered = sorted((*self.turns, *self.reads))
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


@dataclass(frozen=True)
class Result:
    """The victim's times alone and during an attack, the attacker's statuses, and the server's memory."""

    alone: VictimTimes
    attacked: VictimTimes
    statuses: dict[str, int]
    memory_mib: float
    seconds: float


class Victim:
    """Sends ordinary requests at a fixed rate. Each request has a connection and a session of its own."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._headers = f"Authorization: Bearer {token}\r\n"
        self._free: deque[tuple[Connection, str]] = deque()

    async def measure(self, seconds: float, until: asyncio.Event | None = None) -> VictimTimes:
        """Send requests for some seconds, and longer until the event is set. Wait for all responses."""
        times, requests = VictimTimes(), []
        started = due = time.perf_counter()
        while due < started + seconds or (until is not None and not until.is_set()):
            await asyncio.sleep(due - time.perf_counter())
            requests.append(asyncio.create_task(self._request(times, due, is_turn=len(requests) % 2 == 0)))
            due += INTERVAL_S
        await asyncio.gather(*requests)
        return times

    async def warm_up(self) -> None:
        """Open connections and sessions, so that the measured requests need no new ones."""
        clients = [await self._open() for _ in range(20)]
        for connection, session_id in clients:
            await self._turn(connection, session_id)
        self._free += clients

    async def _open(self) -> tuple[Connection, str]:
        connection = Connection(self._address)
        await connection.open()
        started = await connection.request("POST", "/v1/sessions", {}, self._headers)
        return connection, started["session_id"]

    async def _request(self, times: VictimTimes, due: float, *, is_turn: bool) -> None:
        try:
            connection, session_id = self._free.popleft() if self._free else await self._open()
            try:
                await self._send(connection, session_id, is_turn)
            except (ConnectionError, asyncio.IncompleteReadError):
                await connection.open()  # The server closes connections that were idle for five seconds.
                await self._send(connection, session_id, is_turn)
        except (RuntimeError, OSError, asyncio.IncompleteReadError) as error:
            times.errors.append(f"{type(error).__name__}: {error}")
            return
        (times.turns if is_turn else times.reads).append(time.perf_counter() - due)
        self._free.append((connection, session_id))

    async def _send(self, connection: Connection, session_id: str, is_turn: bool) -> None:
        if is_turn:
            await self._turn(connection, session_id)
        else:
            await connection.request("GET", f"/v1/sessions/{session_id}", None, self._headers)

    async def _turn(self, connection: Connection, session_id: str) -> None:
        path, body = f"/v1/sessions/{session_id}/messages", {"message": "Is the front door locked?"}
        turn = (await connection.request("POST", path, body, self._headers))["continuation_id"]
        shown = await connection.request(
            "GET", f"/v1/continuations/{turn}?wait_ms=60000", None, self._headers
        )
        if shown["status"] != "completed":
            raise RuntimeError(f"the turn is {shown['status']}")


async def make_data(folder: Path, message_count: int) -> str:
    """Write a store with the attacker's large session, and its export. Return the id of the session."""
    now = datetime.now(UTC)
    session = Session(new_id(), "attacker", now, now)
    text = " ".join(QUERY_WORDS)
    messages = tuple(
        StoredMessage(
            session.id,
            n,
            MessageEntry("user" if n % 2 else "assistant", text, now, token_count=200),
            in_window=n > message_count - 20,
        )
        for n in range(1, message_count + 1)
    )
    bundle = Bundle(session, messages=messages, evicted_count=message_count - 20)
    imported = replace(bundle, messages=messages[: message_count * 88 // 100], evicted_count=0)
    store = SqliteStore(folder / "sash.db")
    await store.open()
    await store.import_session(bundle)
    await store.close()
    exported = {"format": "sash.session", "version": 1, **adapter(Bundle).dump_python(imported, mode="json")}
    (folder / EXPORT_FILE).write_text(json.dumps(exported, ensure_ascii=False))
    return session.id


async def run_attack(name: str, folder: Path, session_id: str, seconds: float) -> Result:
    """Measure the victim alone and during one attack, on a copy of the data."""
    with ExitStack() as stack:
        data = Path(stack.enter_context(memory_folder()))
        shutil.copy(folder / "sash.db", data / "sash.db")
        tokens = Tokens(data / TOKENS_FILE)
        victim_token, attacker_token = (
            tokens.create(owner, ("read", "converse"))[1] for owner in ("victim", "attacker")
        )
        server, address = stack.enter_context(
            serving(str(data), max_listeners=Settings().max_subscribers_per_owner)
        )
        victim = Victim(address, victim_token)
        await victim.warm_up()
        alone = await victim.measure(min(seconds, ALONE_S))
        plan = AttackPlan(name, address, attacker_token, session_id, str(folder / EXPORT_FILE), seconds)
        attacker = Program(stack, "benchmarks._attacks", json.dumps(asdict(plan)))
        attacker.read_line()
        with sample_memory(server) as memory_mib:
            attacked_at, is_over = time.perf_counter(), asyncio.Event()
            attacker.send_line()
            ended = asyncio.create_task(asyncio.to_thread(attacker.read_line))
            ended.add_done_callback(lambda _: is_over.set())
            attacked = await victim.measure(seconds, is_over)
            await ended
            attack_s = time.perf_counter() - attacked_at
        attacker.send_line()
        statuses = json.loads(attacker.read_line())
        await asyncio.sleep(SETTLE_S)
        return Result(alone, attacked, statuses, max(memory_mib), attack_s)


def show_results(results: dict[str, Result], console: Console) -> None:
    """Print a row for each attack, in the form of the table in `fairness.md`."""
    table = Table(title=f"the victim's requests in ms · {machine()}")
    for column in ("attack", "alone p50 / p99 / max", "attacked p50 / p99 / max", "requests", "reached"):
        table.add_column(column, no_wrap=True)
    table.add_column("the attacker got")
    table.add_column("memory")
    for name, result in results.items():
        p99 = result.attacked.percentile_ms(0.99)
        reached = p99 < MAX_P99_MS and not result.attacked.errors
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(result.statuses.items()))
        count = len(result.attacked.turns) + len(result.attacked.reads)
        table.add_row(
            name,
            as_text(result.alone),
            as_text(result.attacked),
            f"{count}, {len(result.attacked.errors)} errors",
            "[green]✓[/]" if reached else "[red]✗[/]",
            f"{statuses} in {result.seconds:.0f} s",
            f"{result.memory_mib:,.0f} MiB",
        )
    console.print(table)


def as_text(times: VictimTimes) -> str:
    if not times.turns:
        return "no response"
    return " / ".join(f"{times.percentile_ms(share):,.0f}" for share in (0.5, 0.99, 1.0))


def make_rows(name: str, result: Result) -> list[Row]:
    """Return the results of one attack as rows."""
    params: dict[str, Any] = {"messages": MESSAGES, "s": result.seconds, "statuses": result.statuses}
    rows = [Row("fairness", name, "memory", result.memory_mib, "MiB", params)]
    for phase, times in (("alone", result.alone), ("attacked", result.attacked)):
        if times.turns:
            for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                metric = f"{phase}, {label}"
                rows.append(Row("fairness", name, metric, times.percentile_ms(share), "ms", params))
    return rows


def main() -> None:
    names = [argument for argument in sys.argv[1:] if argument in ATTACKS] or list(ATTACKS)
    sys.argv[1:] = [argument for argument in sys.argv[1:] if argument not in ATTACKS]
    options, console = arguments(__doc__ or ""), Console(width=170)
    count, seconds = (10_000, 4.0) if options.quick else (MESSAGES, ATTACK_S)
    results: dict[str, Result] = {}
    with memory_folder() as folder:
        with console.status(f"writing {count:,} messages …"):
            session_id = asyncio.run(make_data(Path(folder), count))
        for name in names:
            with console.status(f"attack: {name} …"):
                results[name] = asyncio.run(run_attack(name, Path(folder), session_id, seconds))
            for error in results[name].attacked.errors[:1]:
                console.print(f"{name}: {error}")
    show_results(results, console)
    write_json([row for name, result in results.items() for row in make_rows(name, result)], options.json)


if __name__ == "__main__":
    main()
