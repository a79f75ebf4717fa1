"""Measures the share of a prompt that a provider can serve from its cache, and the time to build a context.

Five conversations of 300 turns with a home run at windows of 4,000 and 16,000 tokens. A third of the turns
use tools. The cached part of a prompt is its longest common beginning with one of the last eight prompts.
Tool schemas come first. It counts from 1,024 tokens on, in steps of 128. The steady state is every call after
the first eviction of a system.

* Sash: a runtime on SQLite with the default settings of a session (low-water mark 0.75, digest, recall). A
  scripted model records its prompts. The clock advances by some minutes per turn.
* Sash, time and state at the start: the same prompts with the time and a line about the home in the first
  system message. Many agents do so. The questions then contain no time.
* exact FIFO: `ConversationMemoryManager` with its default settings, as the seeds describe it.
* LangChain `trim_messages`, strategy "last", from a human message on, with the exact counts of Sash. Its
  limit is higher by the tokens of the system prompt.

FIFO and LangChain run in two variants. "At every call" cuts at each call, with the running turn inside the
limit, as is usual. "Once per turn" cuts before the turn, as Sash does, which is better for the cache. All
systems have the same system prompt and tools. They have the time after the history and before the turn's own
messages.

The time to build a context is measured with `TurnContext`, in sessions of 100 to 100,000 messages that end
with the same window. It is the median wall time of many builds. The sizes run in random order.
"""

import asyncio
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks._context_building import WINDOW_TOKENS, measure_building
from benchmarks._context_cache import CAUSES, CacheResult, add_up, measure_cache
from benchmarks._context_contestants import (
    CONTESTANTS,
    SASH,
    TIME_AT_START,
    list_tool_schemas,
    move_time_to_start,
    play_sash,
)
from benchmarks._conversations import generate_turns
from benchmarks._prompt_cache import CACHED_PRICES, TokenCosts
from benchmarks._report import Row, arguments, machine, write_json
from sash.memory.tokens import TokenCounter

TURNS = 300
SEEDS = (1, 2, 3, 4, 5)
BUDGETS = (4_000, 16_000)
# For each budget, the minimum share of cached tokens and of the filled window.
TARGETS = {4_000: (0.90, 0.83), 16_000: (0.96, 0.86)}

SIZES = (100, 1_000, 10_000, 100_000)
COMPARED_SIZE = 1_000
MAX_BUILDING_RATIO = 1.5


async def compare(seed: int, budget: int) -> dict[str, CacheResult]:
    """Run one conversation with all systems."""
    conversation = list(itertools.islice(generate_turns(seed), TURNS))
    costs = TokenCosts(list_tool_schemas(conversation))
    sash = await play_sash(conversation, budget, costs)
    prompts = {SASH: sash, TIME_AT_START: move_time_to_start(sash)}
    for name, play in CONTESTANTS.items():
        prompts[name] = await play(conversation, budget, costs)
    return {name: measure_cache(of_system, budget, costs) for name, of_system in prompts.items()}


async def measure_without_tools(seed: int, budget: int) -> CacheResult:
    """Run a conversation without its tool calls with Sash."""
    conversation = [replace(turn, plans=()) for turn in itertools.islice(generate_turns(seed), TURNS)]
    costs = TokenCosts(list_tool_schemas(conversation))
    return measure_cache(await play_sash(conversation, budget, costs), budget, costs)


def make_rows(name: str, budget: int, result: CacheResult) -> list[Row]:
    """Return the results of a system as rows."""
    params = {"max_tokens": budget, "turns": TURNS, "calls": result.calls}
    values = {
        "cached share": (result.share, ""),
        **{f"price, cached at {price}": (result.price(price), "") for price in CACHED_PRICES},
        "prompt tokens per call": (result.tokens / result.calls, "tokens"),
        "window filled": (result.filled, ""),
        "cuts": (result.cuts, ""),
        "broken prompts": (result.broken, ""),
        **{f"uncached, {cause}": (count / result.tokens, "") for cause, count in result.causes.items()},
    }
    return [Row("context", name, metric, value, unit, params) for metric, (value, unit) in values.items()]


def show(budget: int, results: dict[str, list[CacheResult]], console: Console) -> None:
    """Print the results of all systems at one budget."""
    table = Table(title=f"{TURNS} turns with a home, window of {budget:,} tokens, steady state · {machine()}")
    table.add_column("", no_wrap=True)
    columns = "cached", "from – to", "price at 0.1", "at 0.5", "tokens per call", "paid at 0.1"
    for column in (*columns, "window filled", "cuts", "broken"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, of_system in results.items():
        total, shares = add_up(of_system), [result.share for result in of_system]
        mean = total.tokens / total.calls
        table.add_row(
            name,
            f"{total.share:.1%}",
            f"{min(shares):.1%} – {max(shares):.1%}",
            *(f"{total.price(price):.2f}" for price in CACHED_PRICES),
            f"{mean:,.0f}",
            f"{mean * total.price(CACHED_PRICES[0]):,.0f}",
            f"{total.filled:.1%}",
            f"{total.cuts / len(of_system):.0f}",
            f"{total.broken}",
            style="bold green" if name == SASH else "",
        )
    console.print(table)
    sash = add_up(results[SASH])
    console.print(f"  not cached in the prompts of Sash, {1 - sash.share:.1%}:")
    for cause, text in CAUSES.items():
        console.print(f"    {sash.causes[cause] / sash.tokens:5.1%}  {text}")


def show_building(rows: Sequence[Row], sizes: Sequence[int], console: Console) -> None:
    """Print the times to build a context."""
    of = {(row.system, row.params["messages"]): row.value for row in rows}
    table = Table(title=f"building a context at a window of {WINDOW_TOKENS:,} tokens, µs · {machine()}")
    table.add_column("messages in the transcript")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for case in dict.fromkeys(row.system for row in rows):
        table.add_row(case, *(f"{of[case, size]:,.0f}" for size in sizes))
    console.print(table)


def list_targets(
    results: dict[int, dict[str, list[CacheResult]]], building: Sequence[Row], sizes: Sequence[int]
) -> Iterator[tuple[str, str, bool]]:
    """Yield each target: its text, the measured value, and if it is reached."""
    for budget, (share, filled) in TARGETS.items():
        sash = add_up(results[budget][SASH])
        text = f"cached share at {budget:,} tokens: at least {share:.0%}"
        yield text, f"{sash.share:.1%}", sash.share >= share
        text = f"window filled at {budget:,} tokens: at least {filled:.0%}"
        yield text, f"{sash.filled:.1%}", sash.filled >= filled
    broken = sum(result.broken for at_budget in results.values() for result in at_budget[SASH])
    yield "prompts of Sash with a broken tool pair: none", str(broken), not broken
    of = {(row.system, row.params["messages"]): row.value for row in building}
    largest = max(sizes)
    for case in dict.fromkeys(row.system for row in building):
        ratio = of[case, largest] / of[case, COMPARED_SIZE]
        limit = f"at most {MAX_BUILDING_RATIO} ×"
        text = f"building, {case}, {largest:,} messages against {COMPARED_SIZE:,}: {limit}"
        yield text, f"{ratio:.2f} ×", ratio <= MAX_BUILDING_RATIO


def show_conversations(seeds: Sequence[int], console: Console) -> None:
    """Print the sizes of the conversations."""
    turns = [turn for seed in seeds for turn in itertools.islice(generate_turns(seed), TURNS)]
    costs, with_tools = TokenCosts([]), [turn for turn in turns if turn.plans]
    tokens = statistics.mean(costs.count_all([*itertools.chain(*turn.steps())]) for turn in turns)
    without_calls = statistics.mean(
        costs.count_all([*itertools.chain(*replace(turn, plans=()).steps())]) for turn in turns
    )
    counter = TokenCounter()
    results = [counter.count_text(c.result) for turn in with_tools for plan in turn.plans for c in plan]
    console.print(
        f"  {len(seeds)} conversations of {TURNS} turns: {tokens:.0f} tokens per turn "
        f"({without_calls:.0f} without tool calls), {len(with_tools) / len(turns):.0%} of the turns with "
        f"tools, results of {min(results)} to {max(results)} tokens, "
        f"{statistics.mean(results):.0f} on average"
    )


def main() -> None:
    options, console = arguments(__doc__ or ""), Console(width=150)
    seeds, sizes, repeats = (SEEDS[:1], SIZES[:3], 50) if options.quick else (SEEDS, SIZES, 300)
    rows: list[Row] = []
    results: dict[int, dict[str, list[CacheResult]]] = {}
    for budget in BUDGETS:
        at_budget: dict[str, list[CacheResult]] = {}
        for seed in seeds:
            with console.status(f"{budget:,} tokens, conversation {seed} …"):
                for name, result in asyncio.run(compare(seed, budget)).items():
                    at_budget.setdefault(name, []).append(result)
        results[budget] = at_budget
        show(budget, at_budget, console)
        with console.status("without tool calls …"):
            plain = add_up([asyncio.run(measure_without_tools(seed, budget)) for seed in seeds])
        console.print(
            f"  the same questions and answers without tool calls: {plain.share:.1%} cached, "
            f"{plain.filled:.1%} filled, {plain.cuts / len(seeds):.0f} cuts"
        )
        for name, of_system in at_budget.items():
            rows += make_rows(name, budget, add_up(of_system))
        rows += make_rows(f"{SASH}, without tool calls", budget, plain)
    with console.status("building contexts …"):
        building = asyncio.run(measure_building(sizes, repeats, console))
    show_building(building, sizes, console)
    show_conversations(seeds, console)
    for text, value, reached in list_targets(results, building, sizes):
        console.print(f"{'[green]✓[/]' if reached else '[red]✗[/]'} {text}: [bold]{value}[/]")
    write_json(rows + building, options.json)


if __name__ == "__main__":
    main()
