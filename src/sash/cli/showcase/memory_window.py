"""A debugging session slides through a memory window of five turns."""

import asyncio

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from sash.memory.identifiers import find_identifiers
from sash.memory.manager import ConversationMemoryManager
from sash.memory.window import Eviction
from sash.values.messages import MessageEntry, turns

WINDOW_TURNS = 5
SUMMARY_COST_USD = 0.01

SESSION = (
    (
        "I tried calling /api/users/123 and got error code 500. The exact error is: "
        "'Connection timeout to db.example.com:5432'. Check config.py line 45.",
        "The database does not answer. config.py line 45 sets the host.",
    ),
    ("I'm debugging a function", "Let me help you with that"),
    ("Here's my code: def process_data(items):", "I see the function signature"),
    ("    for item in items:", "You're iterating over items"),
    ("        result = item.value * 2", "You're doubling the value"),
    ("        print(result)", "You're printing the result"),
    (
        "Wait, I just realized the bug! Line 4 should be item.value * 3 not * 2",
        "Ah! So the multiplication factor is wrong. Change line 4 to multiply by 3.",
    ),
)
SUMMARY = "User encountered API error. System provided troubleshooting steps."


async def play(console: Console, pause_s: float) -> None:
    """Print the session turn by turn, and then what the window and the digest keep of it."""
    evicted: list[MessageEntry] = []

    def on_evict(_: str, eviction: Eviction) -> None:
        evicted.append(eviction.message)

    memory = ConversationMemoryManager(max_turns=WINDOW_TURNS, on_evict=on_evict)
    console.print(Rule("[bold]Sash[/] · a debugging session in a window of five turns"))
    for number, (question, answer) in enumerate(SESSION, 1):
        evicted_before = len(evicted)
        await memory.add_message("demo", "user", question)
        await memory.add_message("demo", "assistant", answer)
        console.print(
            _format_turn(number, question, answer, evicted[evicted_before:], memory.get_stats("demo"))
        )
        await asyncio.sleep(pause_s)

    digest = await memory.digest("demo")
    found = await memory.search("demo", "timeout")
    console.print(Rule("What the model sees now, word for word"))
    for message in await memory.get_messages("demo"):
        console.print(_format_message(message["role"], message["content"]))
    console.print(Rule("What became of the rest"))
    console.print(Panel(Text(digest), title="The digest of the evicted turns", title_align="left"))
    console.print(_compare_with_summary(evicted, digest))
    console.print(
        "And nothing is gone: a search for [cyan]timeout[/] in the transcript finds it word for word: "
        f"[cyan]{len(found)}[/] message, not in the window any more."
    )


def _format_turn(
    number: int, question: str, answer: str, evicted: list[MessageEntry], stats: dict[str, int]
) -> Group:
    turn_count, full = stats["turn_count"], stats["turn_count"] == WINDOW_TURNS
    gauge = Table.grid(padding=(0, 1))
    gauge.add_row(
        f"[bold]turn {number}[/]",
        ProgressBar(WINDOW_TURNS, turn_count, width=20, complete_style="yellow" if full else "green"),
        f"{turn_count}/{WINDOW_TURNS} turns · {stats['current_tokens']} tokens",
    )
    evicted_lines = [Text(f"  ← evicted: {turn[0].text}", style="red dim") for turn in turns(evicted)]
    return Group(
        gauge, _format_message("user", question), _format_message("assistant", answer), *evicted_lines
    )


def _format_message(role: str, content: str) -> Table:
    line = Table.grid(padding=(0, 1), pad_edge=True)
    line.add_row(Text(f"{role:>9}", style="cyan" if role == "user" else "magenta"), Text(content))
    return line


def _compare_with_summary(evicted: list[MessageEntry], digest: str) -> Table:
    """Return a table of the evicted identifiers: kept or lost in the digest, and in a summary."""
    table = Table(title="Of the evicted turns", title_justify="left", show_footer=True)
    table.add_column("identifier", footer="cost")
    table.add_column("Sash's digest", footer="$0.00, no model was called", style="green")
    table.add_column("a model's summary", footer=f"${SUMMARY_COST_USD:.2f} each time", style="red")
    names = dict.fromkeys(name for message in evicted for name in find_identifiers(message.text))
    for name in names:
        table.add_row(Text(name), _format_kept(name in digest), _format_kept(name in SUMMARY))
    return table


def _format_kept(is_kept: bool) -> str:
    return "[green]✓ verbatim[/]" if is_kept else "[red]✗ lost[/]"
