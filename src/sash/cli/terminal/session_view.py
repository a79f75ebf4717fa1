"""Prints sessions, messages, turns and the context of the next model call."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sash.app.schemas import ContextShown, ContinuationShown, MessageShown
from sash.cli.terminal.citation_lines import list_notes
from sash.cli.terminal.console import one_line, print_text, strip_controls
from sash.cli.terminal.tables import Column, cell, format_cost, format_time, print_table, print_trimmed
from sash.cli.terminal.turn_view import MAX_LINE_CHARS, TurnView, describe_recall_reason
from sash.cli.transcript import message_text
from sash.engine.recall_report import RecalledExcerpt, RecallReport
from sash.values.continuations import Continuation
from sash.values.sessions import Session, SessionPolicy
from sash.values.stats import Stats
from sash.values.steps import Recalled
from sash.values.window_stats import WindowStats

MAX_NAME_CHARS = 24
MAX_MESSAGE_CHARS = 400
MAX_EXCERPT_CHARS = 120
ROLE_STYLES = {"user": "cyan", "assistant": "magenta"}


def print_sessions(console: Console, sessions: tuple[Session, ...]) -> None:
    """Print sessions as a table."""
    columns = (
        Column("id"),
        Column("name"),
        Column("status", 1),
        Column("turns", 3),
        Column("tokens", 5),
        Column("cost", 4),
        Column("last used", 2),
    )
    rows = [
        (
            cell(session.id),
            cell(one_line(session.name or "", MAX_NAME_CHARS)),
            cell(session.status, "green" if session.status == "active" else "dim"),
            cell(session.stats.turns),
            cell(_count_tokens(session.stats)),
            cell(format_cost(session.stats.cost_usd)),
            cell(format_time(console, session.updated_at)),
        )
        for session in sessions
    ]
    print_table(console, columns, rows)


def print_session(
    console: Console, session: Session, window: WindowStats, unfinished: Iterable[Continuation]
) -> None:
    """Print the properties of a session, the counts of its window, and its unfinished turns."""
    _print_properties(console, (*_describe_session(session), *_describe_window(window)))
    _print_properties(console, [("unfinished", _describe_unfinished(turn)) for turn in unfinished])


def print_turn(console: Console, turn: ContinuationShown, recall: RecallReport | None = None) -> None:
    """Print a turn with its steps, actions, and the first words of the messages that were recalled for it."""
    properties: list[tuple[str, Any]] = [
        ("continuation", turn.continuation_id),
        ("session", turn.session_id),
        ("status", turn.status),
        ("started", f"{turn.created_at.astimezone():%Y-%m-%d %H:%M:%S}"),
        ("message", one_line(turn.request.message, MAX_MESSAGE_CHARS)),
    ]
    if turn.response is not None:
        properties.append(("answer", strip_controls(turn.response.final_message)))
        properties += list_notes(turn.response)
    if turn.error is not None:
        properties.append(("error", f"{turn.error.code}: {turn.error.message}"))
    _print_properties(console, properties)
    view = TurnView(console, is_verbose=True)
    for step in turn.steps:
        view.show_step(step.body)
        if isinstance(step.body, Recalled) and recall is not None:
            for message in recall.messages:
                console.print(Text(f"    {_describe_excerpt(message)}", style="dim"), soft_wrap=True)
    view.show_actions(turn)


def print_message(console: Console, message: MessageShown) -> None:
    """Print a message of a transcript on one line."""
    text = message_text(message) or ", ".join(str(call["function"]["name"]) for call in message.tool_calls)
    line = Text(f"{message.timestamp.astimezone():%m-%d %H:%M} ", style="dim")
    line.append(f"{message.role:>9} ", style=ROLE_STYLES.get(message.role, "dim"))
    line.append(one_line(text, MAX_MESSAGE_CHARS), style="dim" if message.role == "tool" else "default")
    if not message.in_window:
        line.append("  (evicted)", style="dim")
    console.print(line, soft_wrap=not console.is_terminal)


def print_context(console: Console, context: ContextShown) -> None:
    """Print the parts of the next model call with their tokens, and which parts stay the same."""
    columns = (Column("part"), Column("tokens"), Column("", 2), Column("from turn to turn", 1))
    total, rows = max(1, context.total_tokens), []
    for part in context.parts:
        bar = ProgressBar(total, part.tokens, width=20, complete_style="green" if part.stable else "yellow")
        changes = "stays the same" if part.stable else "changes"
        rows.append((cell(part.name), cell(f"{part.tokens:,}"), bar, cell(changes, "dim")))
    print_table(console, columns, rows)
    reused = "" if context.prefix_share is None else f", {context.prefix_share:.0%} same as in the last call"
    evicted = f", {context.evicted_count} messages evicted" if context.evicted_count else ""
    print_text(console, f"{context.total_tokens:,} tokens{reused}{evicted}.")
    if context.digest:
        print_text(console, context.digest, "dim")
    if context.recalled is not None:
        print_text(console, "Recalled for the last turn:")
        print_recall(console, context.recalled)


def print_recall(console: Console, recall: RecallReport) -> None:
    """Print the old messages that were recalled for a turn, best first, and why."""
    columns = (
        Column("time"),
        Column("speaker"),
        Column("score", 2),
        Column("tokens", 1),
        Column("text", wraps=True),
    )
    rows = [
        (
            cell(format_time(console, each.at)),
            cell(each.speaker),
            cell(None if each.score is None else f"{each.score:.2f}"),
            cell(each.tokens),
            cell(one_line(each.text, MAX_EXCERPT_CHARS)),
        )
        for each in recall.messages
    ]
    print_table(console, columns, rows)
    reason = describe_recall_reason(recall.reason, recall.found_words)
    print_text(console, f"{recall.tokens:,} tokens, {reason}.")


def describe_allowed_services(policy: SessionPolicy) -> str:
    """Return the services that the agent may call, or "" if it may call none."""
    if not policy.allow_actuation:
        return ""
    return "all services" if "*" in policy.allowlisted_services else ", ".join(policy.allowlisted_services)


def _describe_session(session: Session) -> Iterator[tuple[str, Any]]:
    stats = session.stats
    yield "session", session.id
    yield "name", session.name
    yield "status", session.status
    yield "started", f"{session.created_at.astimezone():%Y-%m-%d %H:%M}"
    yield "last used", f"{session.updated_at.astimezone():%Y-%m-%d %H:%M}"
    yield "area", session.area
    yield "instructions", session.instructions and one_line(session.instructions, MAX_MESSAGE_CHARS)
    yield "model", session.model.name
    yield "may use", describe_allowed_services(session.policy) or "nothing"
    yield "turns", f"{stats.turns}, {stats.local_turns} of them without a model"
    if tokens := _count_tokens(stats):
        yield "cost", ", ".join(filter(None, (f"{tokens} tokens", format_cost(stats.cost_usd))))
    for fact in session.memory.facts:
        yield "fact", fact.text
    for pin in session.memory.pins:
        yield "pin", pin.text


def _describe_excerpt(message: RecalledExcerpt) -> str:
    return one_line(
        f"{message.at.astimezone():%Y-%m-%d %H:%M} {message.speaker}: {message.text}", MAX_LINE_CHARS
    )


def _count_tokens(stats: Stats) -> str:
    """Return the tokens of model calls as text, or "" if there were none."""
    return f"{stats.total_tokens:,}" if stats.total_tokens else ""


def _describe_window(window: WindowStats) -> Iterator[tuple[str, Any]]:
    size = f"{window.message_count} messages, {window.current_tokens:,} tokens"
    if window.max_tokens is not None:
        size += f" of {window.max_tokens:,} ({window.utilization:.0f} %)"
    notes = {"ok": "", "nearly_full": ", nearly full", "over_budget": ", over its limit"}
    yield "window", f"{size}{notes[window.health]}, {window.evicted_count} evicted"
    if window.tag_distribution:
        counted = sorted(window.tag_distribution.items(), key=lambda item: (-item[1], item[0]))
        yield "tags", one_line(", ".join(f"{tag} {count}" for tag, count in counted), MAX_MESSAGE_CHARS)


def _describe_unfinished(turn: Continuation) -> str:
    """Return the state of an unfinished turn and the command that continues or ends it."""
    if turn.status == "awaiting_approval":
        return f"{turn.id} waits for your approval: `sash resume {turn.id}` asks for it"
    if turn.status == "interrupted":
        return f"{turn.id} was interrupted: `sash resume {turn.id}` continues it"
    return f"{turn.id} is {turn.status}: `sash cancel {turn.id}` ends it"


def _print_properties(console: Console, properties: Iterable[tuple[str, Any]]) -> None:
    table = Table.grid(padding=(0, 2))
    for name, value in properties:
        if value is not None:
            table.add_row(cell(name, "bold"), cell(value))
    print_trimmed(console, table)
