"""A conversation with the demo home, without Home Assistant, model or network."""

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
from sash.values.steps import ApprovalRequested

SENTENCES = (
    "Is the front door locked?",
    "Turn on the kitchen light",
    "Undo that",
    "Which lights are on?",
    "Unlock the front door",
    "What is wrong with the bedroom ceiling light?",
    "Remember that the cat sleeps in the garage",
)
# A fixed time, so that the demo shows the same states on every run.
EVENING = datetime(2026, 1, 15, 21, 30, tzinfo=UTC)
POLICY = SessionPolicy(allow_actuation=True, allowlisted_services=("light", "lock"))


async def play(console: Console, pause_s: float) -> None:
    """Say some sentences to the home, and print its answers and actions."""
    console.print(Rule("[bold]Sash[/] · a talk with the demo house, without a language model"))
    clock = FakeClock(EVENING)
    async with Runtime(MemoryStore(), home=demo_home(clock), clock=clock, time_zone=UTC) as runtime:
        await runtime.home_ready()
        session = await runtime.start_session(policy=POLICY)
        for sentence in SENTENCES:
            start_s = perf_counter()
            sent = await runtime.send_message(session.id, sentence)
            result, note = await runtime.await_continuation(sent.id), ""
            duration_ms = (perf_counter() - start_s) * 1000
            if isinstance(request := result.steps[-1].body, ApprovalRequested):
                note = "(a lock needs approval, and gets it) "
                await runtime.approve(sent.id, request.call_id)
                result = await runtime.await_continuation(sent.id)
            answer = result.response.final_message if result.response else str(result.status)
            actions = result.response.actions if result.response else ()
            verified = [action.verified for action in actions]
            console.print(_format_turn(sentence, note + answer, duration_ms, verified))
            await asyncio.sleep(pause_s)
        statistics = await runtime.statistics()
        turns = f"{statistics['local_count']} of {statistics['total_requests']} turns needed no model at all."
        cost = f"The bill: ${statistics['estimated_cost_usd']:.2f}."
        console.print(Panel(f"{turns} {cost}", title="Cost", title_align="left"))


def _format_turn(sentence: str, answer: str, duration_ms: float, verified: list[bool | None]) -> Table:
    line = Table.grid(padding=(0, 1), pad_edge=True)
    line.add_row(Text("user", style="cyan"), Text(sentence))
    shown = Text(answer)
    if verified:
        shown.append(
            "  ✓ read back" if all(verified) else "  ? not seen", style="green" if all(verified) else "red"
        )
    shown.append(f"  {duration_ms:.0f} ms", style="dim")
    line.add_row(Text("house", style="magenta"), shown)
    return line
