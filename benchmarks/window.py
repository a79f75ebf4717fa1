"""Append one message and get the context within 4,000 tokens, at 100 to 100,000 messages.

Each system holds N messages of a conversation with a home. Then the same step is timed many times: append one
new message, and get the messages that fit into 4,000 tokens. The result is the CPU time of this process in
the best of several rounds, because noise can only add time. The systems take turns within a round, so that
other load on the machine affects all of them. A system that needs seconds for one step is timed once; the
output says so.
"""

import asyncio
import gc
import itertools
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from agents import SQLiteSession
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from rich.console import Console
from rich.table import Table

from benchmarks._report import Row, arguments, machine, write_json
from sash import ConversationMemoryManager
from sash.memory.encodings import DEFAULT_ENCODING, load_encoding
from sash.memory.tiktoken_encoding import TiktokenEncoding

BUDGET = 4000
SIZES = (100, 1_000, 10_000, 100_000)
ROUNDS = 7
TOO_SLOW_S = 2.0

# The architecture document assumes messages of 200 to 500 characters. Short messages are measured, too.
CHARACTERS = (200, 500)
SHORT_CHARACTERS = (100, 250)

ROOMS = ("kitchen", "hallway", "living room", "bedroom", "office", "cellar", "garden", "bathroom")
SENTENCES = (
    "Is the {room} light still on, and how warm is it there?",
    "The display said {t}.{d} °C an hour ago, and the sensor at 192.168.1.{k} has been silent since {clock}.",
    "Set climate.{room} to {t}.5 degrees from {clock} on, but only if nobody has opened the window.",
    "If not, tell me why, with the error code that sensor.{room}_window_{k} reports.",
    "The automation switched light.{room}_ceiling off at {clock}, after {k} minutes without motion.",
    "According to the last report the battery is at {d}0 percent, so the reading can be trusted.",
    "I checked the log: event {n} came from /config/automations.yaml line {k}, unchanged since.",
    "Shall I leave it like that, or do you want it back the way it was this morning?",
)


class System(Protocol):
    """A memory to measure: `step` appends one message and returns the number of messages in the context."""

    name: str

    def __init__(self, folder: Path) -> None: ...

    async def fill(self, messages: list[tuple[str, str]]) -> None: ...

    async def step(self, role: str, content: str) -> int: ...


def conversation(characters: tuple[int, int] = CHARACTERS) -> Iterator[tuple[str, str]]:
    """Yield messages about a home; no message occurs twice."""
    rng = random.Random(7)
    for n in itertools.count():
        length, text = rng.uniform(*characters), f"Note {n}."
        while len(text) < length:
            sentence = rng.choice(SENTENCES)
            clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
            values = {"room": rng.choice(ROOMS), "k": rng.randrange(250), "t": rng.randrange(15, 25)}
            text += " " + sentence.format(n=n, d=rng.randrange(10), clock=clock, **values)
        yield "assistant" if n % 2 else "user", text[: int(length)]


class Sash:
    name = "Sash"

    def __init__(self, folder: Path) -> None:
        self.memory = ConversationMemoryManager(max_tokens=BUDGET)

    async def fill(self, messages: list[tuple[str, str]]) -> None:
        for role, content in messages:
            await self.memory.add_message("c", role, content)

    async def step(self, role: str, content: str) -> int:
        await self.memory.add_message("c", role, content)
        return len(await self.memory.get_messages("c"))


class LangChain:
    """`trim_messages` as its documentation uses it: the newest messages that fit, from a human message on."""

    name = "LangChain trim_messages, approximate"

    def __init__(self, folder: Path) -> None:
        self.messages: list[BaseMessage] = []
        self.counter: Callable[[list[BaseMessage]], int] = count_tokens_approximately

    async def fill(self, messages: list[tuple[str, str]]) -> None:
        self.messages += [self._message(*message) for message in messages]

    async def step(self, role: str, content: str) -> int:
        self.messages.append(self._message(role, content))
        kept = trim_messages(
            self.messages,
            max_tokens=BUDGET,
            token_counter=self.counter,
            strategy="last",
            start_on="human",
            include_system=True,
        )
        return len(kept)

    @staticmethod
    def _message(role: str, content: str) -> BaseMessage:
        return HumanMessage(content) if role == "user" else AIMessage(content)


class LangChainExact(LangChain):
    name = "LangChain trim_messages, tiktoken"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        encode = _encoder()

        def count(messages: list[BaseMessage]) -> int:
            return sum(4 + len(encode(str(m.content))) for m in messages)

        self.counter = count


class OpenAIAgents:
    """`SQLiteSession` on a file, limited by items, because it does not count tokens."""

    name = "OpenAI Agents SQLiteSession, 75 items"

    def __init__(self, folder: Path) -> None:
        self.session = SQLiteSession("c", folder / "agents.db")

    async def fill(self, messages: list[tuple[str, str]]) -> None:
        await self.session.add_items([{"role": role, "content": text} for role, text in messages])

    async def step(self, role: str, content: str) -> int:
        await self.session.add_items([{"role": role, "content": content}])
        return len(await self.session.get_items(limit=75))


class PlainList:
    """A simple first solution: a list of all messages, counted at each call and cut to the limit."""

    name = "plain list with recount"

    def __init__(self, folder: Path) -> None:
        self.messages: list[dict[str, str]] = []
        self.encode = _encoder()

    async def fill(self, messages: list[tuple[str, str]]) -> None:
        self.messages += [{"role": role, "content": text} for role, text in messages]

    async def step(self, role: str, content: str) -> int:
        self.messages.append({"role": role, "content": content})
        kept = list(self.messages)
        counts = [4 + len(self.encode(m["content"])) for m in kept]
        total, start = sum(counts), 0
        while total > BUDGET:
            total -= counts[start]
            start += 1
        return len(kept[start:])


class Counting:
    """Not a memory: only counts the tokens of the new message, which every exact memory must do."""

    name = "counting the message alone"

    def __init__(self, folder: Path) -> None:
        self.encode = _encoder()

    async def fill(self, messages: list[tuple[str, str]]) -> None:
        pass

    async def step(self, role: str, content: str) -> int:
        return len(self.encode(content))


SYSTEMS: tuple[type[System], ...] = (Counting, Sash, PlainList, OpenAIAgents, LangChain, LangChainExact)


def _encoder() -> Callable[[str], list[int]]:
    """Return tiktoken's function with the ranks of Sash, so that all systems count the same."""
    encoding = load_encoding(DEFAULT_ENCODING)
    assert isinstance(encoding, TiktokenEncoding)
    return encoding.encoding.encode_ordinary


async def measure(
    size: int,
    repeats: int,
    console: Console,
    systems: tuple[type[System], ...],
    characters: tuple[int, int] = CHARACTERS,
) -> list[Row]:
    """Time one step of each system while it holds `size` messages."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        source = conversation(characters)
        held = [next(source) for _ in range(size)]
        timed_systems = []
        for kind in systems:
            system = kind(Path(folder))
            await system.fill(held)
            started = time.process_time()
            await system.step(*next(source))
            took_s = time.process_time() - started
            if took_s > TOO_SLOW_S:
                console.print(f"  {system.name}: {took_s:.1f} s per step at {size:,} messages, timed once")
                rows.append(_row(system.name, took_s * 1e6, size, characters))
                continue
            timed_systems.append((system, max(3, min(repeats, int(0.4 / max(took_s, 1e-6))))))
        times: dict[str, list[float]] = {system.name: [] for system, _ in timed_systems}
        for _ in range(ROUNDS):
            for system, count in timed_systems:
                batch = [next(source) for _ in range(count)]
                gc.collect()
                gc.disable()
                started = time.process_time()
                for role, content in batch:
                    await system.step(role, content)
                times[system.name].append((time.process_time() - started) / count)
                gc.enable()
    return rows + [_row(name, min(t) * 1e6, size, characters) for name, t in times.items()]


async def memory_per_message(count: int) -> list[Row]:
    """Measure the memory per message, with and without the transcript of evicted messages."""
    rows = []
    for keep in (True, False):
        source = conversation()
        text = 0
        memory = ConversationMemoryManager(max_tokens=BUDGET, keep_transcript=keep)
        await memory.add_message("warm-up", "user", "load the ranks")
        gc.collect()
        tracemalloc.start()
        for role, content in itertools.islice(source, count):
            text += len(content)
            await memory.add_message("c", role, content)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        name = "Sash" if keep else "Sash, keep_transcript=False"
        params = {"messages": count, "characters": round(text / count)}
        rows.append(Row("window", name, "memory per message", used, "bytes", params))
    return rows


def _row(system: str, value: float, size: int, characters: tuple[int, int]) -> Row:
    params = {"messages": size, "max_tokens": BUDGET, "characters": list(characters)}
    return Row("window", system, "append + get", value, "µs", params)


def show(rows: list[Row], sizes: tuple[int, ...], console: Console) -> None:
    """Print the table and the ratios, and for each target if it was reached."""
    timed = [row for row in rows if row.metric == "append + get"]
    of = {(r.system, r.params["messages"]): r.value for r in timed if r.params["characters"] == [*CHARACTERS]}
    table = Table(title=f"append + get within {BUDGET:,} tokens, CPU µs (× Sash) · {machine()}")
    table.add_column("messages held")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for kind in SYSTEMS:
        cells = [f"{of[kind.name, n]:,.1f} ({of[kind.name, n] / of[Sash.name, n]:,.1f} ×)" for n in sizes]
        table.add_row(kind.name, *cells, style="bold green" if kind is Sash else "")
    console.print(table)

    sash = [of[Sash.name, n] for n in sizes]
    counted = max(of[Sash.name, n] / of[Counting.name, n] for n in sizes)
    peer = min(of[kind.name, 1_000] / of[Sash.name, 1_000] for kind in SYSTEMS[2:])
    for text, value, reached in (
        (
            "flat, slowest size against fastest: at most 1.5 ×",
            max(sash) / min(sash),
            max(sash) / min(sash) <= 1.5,
        ),
        ("against counting the message's tokens: at most 2 ×", counted, counted <= 2),
        ("nearest peer at 1,000 messages: at least 10 ×", peer, peer >= 10),
    ):
        console.print(f"{'[green]✓[/]' if reached else '[red]✗[/]'} {text}: [bold]{value:.2f} ×[/]")
    short = {r.system: r.value for r in timed if r.params["characters"] == [*SHORT_CHARACTERS]}
    console.print(
        f"  with short messages ({SHORT_CHARACTERS[0]} to {SHORT_CHARACTERS[1]} characters): "
        f"{short[Sash.name]:.1f} µs, [bold]{short[Sash.name] / short[Counting.name]:.2f} ×[/] the counting"
    )
    for row in rows:
        if row.metric == "memory per message":
            size = f"of {row.params['characters']} characters on average"
            console.print(f"  {row.metric} {size}, {row.system}: [bold]{row.value:,.0f}[/] {row.unit}")


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=140)
    sizes, repeats = (SIZES[:3], 100) if options.quick else (SIZES, 400)
    rows: list[Row] = []
    for size in sizes:
        with console.status(f"{size:,} messages …"):
            rows += asyncio.run(measure(size, repeats, console, SYSTEMS))
    with console.status("short messages, and memory per message …"):
        rows += asyncio.run(measure(1_000, repeats, console, SYSTEMS[:2], SHORT_CHARACTERS))
        rows += asyncio.run(memory_per_message(2_000 if options.quick else 20_000))
    show(rows, sizes, console)
    write_json(rows, options.json)


if __name__ == "__main__":
    main()
