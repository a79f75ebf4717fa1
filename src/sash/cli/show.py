"""`sash show`: a session with its last messages and its context, or a turn with its steps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sash.cli.completion import complete_session
from sash.cli.options import LOCAL, MOST, Config, Data, Json, Owner, Place, Store

if TYPE_CHECKING:
    from rich.console import Console

    from sash.app.access import Caller
    from sash.app.schemas import ContextShown, ContinuationShown, MessageShown, SessionShown
    from sash.app.service import AgentService
    from sash.values.sessions import Session, SessionPolicy

ROLES = {"user": "cyan", "assistant": "magenta"}
LONGEST = 400


def show(
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="A session or a continuation.", autocompletion=complete_session),
    ],
    messages: Annotated[int, typer.Option(min=0, max=MOST, help="So many of the last messages.")] = 10,
    context: Annotated[bool, typer.Option("--context", help="What the next model call is made of.")] = False,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Show a session or a continuation."""
    from sash.app.schemas import ContextShown, ContinuationShown, MessageShown, SessionShown
    from sash.cli.console import make_console, print_json
    from sash.cli.opening import read
    from sash.errors import ContinuationNotFound, SessionNotFound
    from sash.values.codec import adapter

    async def find(desk: "AgentService", caller: "Caller") -> "_Found | ContinuationShown":
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
    shown, unfinished, said, made_of = found
    if as_json:
        whole = adapter(SessionShown).dump_python(shown, mode="json")
        whole["messages"] = adapter(tuple[MessageShown, ...]).dump_python(said, mode="json")
        if made_of is not None:
            whole["context"] = adapter(ContextShown).dump_python(made_of, mode="json")
        print_json(whole)
        return
    _print_facts(console, _session_facts(shown.session))
    _print_facts(console, [("not over", _left(turn)) for turn in unfinished])
    for message in said:
        _print_message(console, message)
    if made_of is not None:
        print_context(console, made_of)


_Found = tuple["SessionShown", list["ContinuationShown"], tuple["MessageShown", ...], "ContextShown | None"]


async def _find_session(
    desk: "AgentService", caller: "Caller", session_id: str, most: int, context: bool
) -> "_Found":
    from sash.cli.transcript import last_messages

    shown = await desk.get_session(caller, session_id)
    said = await last_messages(desk, caller, session_id, most)
    unfinished = [await desk.await_continuation(caller, turn) for turn in shown.open_continuations]
    return shown, unfinished, said, await desk.context(caller, session_id) if context else None


def _left(turn: "ContinuationShown") -> str:
    """Say how a turn stands that is not over, and what can be done about it."""
    of, again = turn.continuation_id, f"`sash resume {turn.continuation_id}`"
    if turn.status == "awaiting_approval":
        return f"{of} waits for a yes: {again} asks you for it"
    if turn.status == "interrupted":
        return f"{of} was interrupted: {again} goes on with it"
    return f"{of} is {turn.status}: `sash cancel {of}` ends it"


def may_use(policy: "SessionPolicy") -> str:
    """Say what the agent may use in the house; it may be nothing."""
    return ", ".join(policy.allowlisted_services) if policy.allow_actuation else ""


def _session_facts(session: "Session") -> Iterator[tuple[str, Any]]:
    from sash.cli.tables import cost

    stats = session.stats
    yield "session", session.id
    yield "name", session.name
    yield "status", session.status
    yield "begun", f"{session.created_at.astimezone():%Y-%m-%d %H:%M}"
    yield "last used", f"{session.updated_at.astimezone():%Y-%m-%d %H:%M}"
    yield "area", session.area
    yield "model", session.model.name
    yield "may use", may_use(session.policy) or "nothing"
    yield "turns", f"{stats.turns}, {stats.local_turns} of them without a model"
    yield "cost", ", ".join(filter(None, (f"{stats.total_tokens:,} tokens", cost(stats.cost_usd))))
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
    screen.actions(turn)


def _print_facts(console: "Console", facts: Any) -> None:
    from rich.table import Table

    from sash.cli.tables import cell, put

    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        if value is not None:
            table.add_row(cell(name, "bold"), cell(value))
    put(console, table)


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

    from sash.cli.console import say
    from sash.cli.tables import Column, cell, print_table

    columns = (Column("part"), Column("tokens"), Column("", 2), Column("from turn to turn", 1))
    total, rows = max(1, context.total_tokens), []
    for part in context.parts:
        bar = ProgressBar(total, part.tokens, width=20, complete_style="green" if part.stable else "yellow")
        changes = "stays the same" if part.stable else "changes"
        rows.append((cell(part.name), cell(f"{part.tokens:,}"), bar, cell(changes, "dim")))
    print_table(console, columns, rows)
    cached = "" if context.prefix_share is None else f", {context.prefix_share:.0%} as in the last call"
    gone = f", {context.evicted_count} messages evicted" if context.evicted_count else ""
    say(console, f"{context.total_tokens:,} tokens{cached}{gone}.")
    if context.digest:
        say(console, context.digest, "dim")
