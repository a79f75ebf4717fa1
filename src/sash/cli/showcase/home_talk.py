"""A talk with the demo house: no Home Assistant, no model, no network."""

import asyncio
from datetime import UTC, datetime
from time import perf_counter

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from sash.demo.demo_home import demo_home
from sash.engine.runtime import Runtime
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock
from sash.values.sessions import SessionPolicy

TALK = (
    "Is the front door locked?",
    "Turn on the kitchen light",
    "Undo that",
    "Which lights are on?",
    "Unlock the front door",
    "What is wrong with the bedroom ceiling light?",
    "Remember that the cat sleeps in the garage",
)
# A winter's evening, whenever it is played.
EVENING = datetime(2026, 1, 15, 21, 30, tzinfo=UTC)
POLICY = SessionPolicy(allow_actuation=True, allowlisted_services=("light", "lock"))


async def play(console: Console, pause_s: float) -> None:
    """Say a few sentences to the house, and show what it answers and does."""
    console.print(Rule("[bold]Sash[/] · a talk with the demo house, without a language model"))
    clock = FakeClock(EVENING)
    async with Runtime(MemoryStore(), home=demo_home(clock), clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=POLICY)
        for sentence in TALK:
            started = perf_counter()
            sent = await runtime.send_message(session.id, sentence)
            result, asked = await runtime.await_continuation(sent.id), ""
            milliseconds = (perf_counter() - started) * 1000
            if result.status == "awaiting_approval":
                asked = "(a lock waits for a yes, and gets it) "
                await runtime.approve(sent.id, result.steps[-1].detail["call_id"])
                result = await runtime.await_continuation(sent.id)
            answer = result.response.final_message if result.response else str(result.status)
            actions = result.response.actions if result.response else ()
            console.print(_spoken(sentence, asked + answer, milliseconds, [a.verified for a in actions]))
            await asyncio.sleep(pause_s)
        spent = await runtime.statistics()
        took = f"{spent['local_count']} of {spent['total_requests']} turns needed no model at all."
        bill = f"The bill: ${spent['estimated_cost_usd']:.2f}."
        console.print(Panel(f"{took} {bill}", title="What it took", title_align="left"))


def _spoken(sentence: str, answer: str, milliseconds: float, verified: list[bool | None]) -> Table:
    line = Table.grid(padding=(0, 1), pad_edge=True)
    line.add_row(Text("user", style="cyan"), Text(sentence))
    shown = Text(answer)
    if verified:
        shown.append(
            "  ✓ read back" if all(verified) else "  ? not seen", style="green" if all(verified) else "red"
        )
    shown.append(f"  {milliseconds:.0f} ms", style="dim")
    line.add_row(Text("house", style="magenta"), shown)
    return line
