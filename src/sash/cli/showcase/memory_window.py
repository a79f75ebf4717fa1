"""The memory at work, to look at: a debugging session slides through a window of five turns."""

import asyncio

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from sash.memory.digest import find_identifiers
from sash.memory.manager import ConversationMemoryManager
from sash.memory.window import Eviction
from sash.values.messages import MessageEntry, turns

WINDOW_TURNS = 5
COST_OF_A_SUMMARY = 0.01

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
    """Let the session slide by, with a pause after each turn."""
    evicted: list[MessageEntry] = []

    def on_evict(_: str, eviction: Eviction) -> None:
        evicted.append(eviction.message)

    memory = ConversationMemoryManager(max_turns=WINDOW_TURNS, on_evict=on_evict)
    console.print(Rule("[bold]Sash[/] · a debugging session in a window of five turns"))
    for number, (question, answer) in enumerate(SESSION, 1):
        gone = len(evicted)
        await memory.add_message("demo", "user", question)
        await memory.add_message("demo", "assistant", answer)
        console.print(_turn(number, question, answer, evicted[gone:], memory.get_stats("demo")))
        await asyncio.sleep(pause_s)

    digest = await memory.digest("demo")
    found = await memory.search("demo", "timeout")
    console.print(Rule("What the model sees now, word for word"))
    for message in await memory.get_messages("demo"):
        console.print(_spoken(message["role"], message["content"]))
    console.print(Rule("What became of the rest"))
    console.print(Panel(Text(digest), title="The digest of the evicted turns", title_align="left"))
    console.print(_comparison(evicted, digest))
    console.print(
        "And nothing is gone: a search for [cyan]timeout[/] in the transcript finds it word for word: "
        f"[cyan]{len(found)}[/] message, not in the window any more."
    )


def _turn(
    number: int, question: str, answer: str, evicted: list[MessageEntry], stats: dict[str, int]
) -> Group:
    turn_count, full = stats["turn_count"], stats["turn_count"] == WINDOW_TURNS
    gauge = Table.grid(padding=(0, 1))
    gauge.add_row(
        f"[bold]turn {number}[/]",
        ProgressBar(WINDOW_TURNS, turn_count, width=20, complete_style="yellow" if full else "green"),
        f"{turn_count}/{WINDOW_TURNS} turns · {stats['current_tokens']} tokens",
    )
    pushed_out = [Text(f"  ← evicted: {turn[0].text}", style="red dim") for turn in turns(evicted)]
    return Group(gauge, _spoken("user", question), _spoken("assistant", answer), *pushed_out)


def _spoken(role: str, content: str) -> Table:
    line = Table.grid(padding=(0, 1), pad_edge=True)
    line.add_row(Text(f"{role:>9}", style="cyan" if role == "user" else "magenta"), Text(content))
    return line


def _comparison(evicted: list[MessageEntry], digest: str) -> Table:
    """Put each identifier of what was evicted beside what the digest and a summary made of it."""
    table = Table(title="Of the evicted turns", title_justify="left", show_footer=True)
    table.add_column("identifier", footer="cost")
    table.add_column("Sash's digest", footer="$0.00, no model was called", style="green")
    table.add_column("a model's summary", footer=f"${COST_OF_A_SUMMARY:.2f} each time", style="red")
    names = dict.fromkeys(name for message in evicted for name in find_identifiers(message.text))
    for name in names:
        table.add_row(Text(name), _kept(name in digest), _kept(name in SUMMARY))
    return table


def _kept(kept: bool) -> str:
    return "[green]✓ verbatim[/]" if kept else "[red]✗ lost[/]"
