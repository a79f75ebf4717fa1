"""`sash show`: a session with its last messages and its context, or a turn with its steps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.completion import complete_session
from sash.cli.options import LOCAL, Config, Data, Json, Owner, Place, Store

if TYPE_CHECKING:
    from rich.console import Console

    from sash.access import Caller
    from sash.desk import Desk
    from sash.sessions import Session
    from sash.shapes import ContextShown, ContinuationShown, MessageShown, SessionShown

ROLES = {"user": "cyan", "assistant": "magenta"}
LONGEST = 400


def show(
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="A session or a continuation.", autocompletion=complete_session),
    ],
    messages: Annotated[int, typer.Option(min=0, help="So many of the last messages.")] = 10,
    context: Annotated[bool, typer.Option("--context", help="What the next model call is made of.")] = False,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Show a session or a continuation."""
    from sash.cli.console import make_console, print_json
    from sash.cli.opening import read
    from sash.codec import adapter
    from sash.errors import ContinuationNotFound, SessionNotFound
    from sash.shapes import ContextShown, ContinuationShown, MessageShown, SessionShown

    async def find(desk: "Desk", caller: "Caller") -> "_Found | ContinuationShown":
        try:
            return await _find_session(desk, caller, id_, messages, context)
        except SessionNotFound:
            pass
        try:
            return await desk.await_continuation(caller, id_)
        except ContinuationNotFound as error:
            raise ContinuationNotFound(f"there is no session and no continuation {id_!r:.80}") from error

    found = read(Place(data, store, config, owner), find, with_house=context)
    console = make_console()
    if isinstance(found, ContinuationShown):
        if as_json:
            print_json(adapter(ContinuationShown).dump_python(found, mode="json"))
            return
        _print_turn(console, found)
        return
    shown, said, made_of = found
    if as_json:
        whole = adapter(SessionShown).dump_python(shown, mode="json")
        whole["messages"] = adapter(tuple[MessageShown, ...]).dump_python(said, mode="json")
        if made_of is not None:
            whole["context"] = adapter(ContextShown).dump_python(made_of, mode="json")
        print_json(whole)
        return
    _print_session(console, shown)
    for message in said:
        _print_message(console, message)
    if made_of is not None:
        print_context(console, made_of)


_Found = tuple["SessionShown", tuple["MessageShown", ...], "ContextShown | None"]


async def _find_session(
    desk: "Desk", caller: "Caller", session_id: str, most: int, context: bool
) -> "_Found":
    from sash.cli.transcript import last_messages

    shown = await desk.get_session(caller, session_id)
    said = await last_messages(desk, caller, session_id, most)
    return shown, said, await desk.context(caller, session_id) if context else None


def _print_session(console: "Console", shown: "SessionShown") -> None:
    _print_facts(console, _session_facts(shown.session))
    if shown.open_continuations:
        _print_facts(console, [("not over", ", ".join(shown.open_continuations))])


def _session_facts(session: "Session") -> Iterator[tuple[str, Any]]:
    policy, stats = session.policy, session.stats
    yield "session", session.id
    yield "name", session.name
    yield "status", session.status
    yield "begun", f"{session.created_at.astimezone():%Y-%m-%d %H:%M}"
    yield "last used", f"{session.updated_at.astimezone():%Y-%m-%d %H:%M}"
    yield "area", session.context.get("area")
    yield "model", session.model.name
    yield (
        "may use",
        ", ".join(policy.allowlisted_services) or "nothing" if policy.allow_actuation else "nothing",
    )
    yield "turns", f"{stats.turns}, {stats.local_turns} of them without a model"
    yield "cost", f"{stats.total_tokens:,} tokens, ${stats.cost_usd:.4f}"
    for fact in session.memory.facts:
        yield "fact", fact.text
    for pin in session.memory.pins:
        yield "pin", pin.text


def _print_turn(console: "Console", turn: "ContinuationShown") -> None:
    from sash.cli.console import one_line, plain
    from sash.cli.screen import Screen

    facts: list[tuple[str, Any]] = [
        ("continuation", turn.continuation_id),
        ("session", turn.session_id),
        ("status", turn.status),
        ("begun", f"{turn.created_at.astimezone():%Y-%m-%d %H:%M:%S}"),
        ("asked", one_line(turn.request.message, LONGEST)),
    ]
    if turn.response is not None:
        facts.append(("answer", plain(turn.response.final_message)))
    if turn.error is not None:
        facts.append(("error", f"{turn.error.code}: {turn.error.message}"))
    _print_facts(console, facts)
    screen = Screen(console)
    for step in turn.steps:
        screen.step(step.type, step.detail)
    if turn.response is not None:
        screen.actions(turn.response.actions)


def _print_facts(console: "Console", facts: Any) -> None:
    from rich.table import Table

    from sash.cli.console import cell

    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        if value is not None:
            table.add_row(cell(name, "bold"), cell(value))
    console.print(table)


def _print_message(console: "Console", message: "MessageShown") -> None:
    from rich.text import Text

    from sash.cli.console import one_line
    from sash.cli.transcript import words

    said = words(message) or ", ".join(str(call["function"]["name"]) for call in message.tool_calls)
    line = Text(f"{message.timestamp.astimezone():%m-%d %H:%M} ", style="dim")
    line.append(f"{message.role:>9} ", style=ROLES.get(message.role, "dim"))
    line.append(one_line(said, LONGEST), style="dim" if message.role == "tool" else "default")
    if not message.in_window:
        line.append("  (evicted)", style="dim")
    console.print(line, soft_wrap=not console.is_terminal)


def print_context(console: "Console", context: "ContextShown") -> None:
    """Print what the next model call is made of: its parts, their tokens, and which stay the same."""
    from rich.progress_bar import ProgressBar

    from sash.cli.console import cell, make_table, say

    table = make_table(console, "part", "tokens", "", "from turn to turn")
    total = max(1, context.total_tokens)
    for part in context.parts:
        bar = ProgressBar(total, part.tokens, width=20, complete_style="green" if part.stable else "yellow")
        changes = "stays the same" if part.stable else "changes"
        table.add_row(cell(part.name), cell(f"{part.tokens:,}"), bar, cell(changes, "dim"))
    console.print(table)
    cached = "" if context.prefix_share is None else f", {context.prefix_share:.0%} as in the last call"
    gone = f", {context.evicted_count} messages evicted" if context.evicted_count else ""
    say(console, f"{context.total_tokens:,} tokens{cached}{gone}.")
    if context.digest:
        say(console, context.digest, "dim")
