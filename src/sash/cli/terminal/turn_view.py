"""Shows a turn on a console while it runs: partial text, steps, actions and the answer."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from sash.app.schemas import ContinuationShown
from sash.cli.terminal.citation_lines import list_notes
from sash.cli.terminal.console import one_line, pick_symbol, strip_controls
from sash.cli.terminal.folded_lines import fold_action, fold_result
from sash.cli.terminal.tables import format_cost
from sash.values.continuations import Action
from sash.values.steps import (
    AnswerSentBack,
    ApprovalGiven,
    Interrupted,
    Plan,
    Recalled,
    RecallReason,
    StepBody,
    ToolCall,
    ToolResult,
)

MAX_LINE_CHARS = 120

_OUTCOMES = {
    "failed": "failed",
    "denied": "not done",
    "unknown": "outcome unknown",
    "dry_run": "dry run, nothing was done",
}


class TurnView:
    """Shows turns one after the other. With `shows_text=False` it shows steps and no text of the model.

    With `is_verbose` it shows the exact calls and results of tools, else one short line for each call.
    """

    def __init__(self, console: Console, *, shows_text: bool = True, is_verbose: bool = False) -> None:
        self.is_verbose = is_verbose
        self._console = console
        self._shows_text = shows_text
        self._partial_text = ""
        self._status: Status | None = None

    @contextmanager
    def show_activity(self) -> Iterator[None]:
        """Show a spinner in a terminal until there is output."""
        self.update_activity("")
        try:
            yield
        finally:
            self._stop_spinner()

    def update_activity(self, activity: str) -> None:
        """Show the current activity beside the spinner."""
        if not self._console.is_terminal or self._partial_text:
            return
        text = Text(one_line(activity, MAX_LINE_CHARS), style="dim")
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def show_partial(self, text: str) -> None:
        """Print the next part of a text that the model is writing."""
        new = strip_controls(text) if self._shows_text else ""
        if new:
            self._stop_spinner()
        self._partial_text += new
        self._console.out(new, end="", highlight=False)

    def show_answer(self, text: str) -> None:
        """Print a whole text. If its start is on the console already, print the rest only."""
        self._stop_spinner()
        text = strip_controls(text)
        if text.startswith(self._partial_text):
            self._console.out(text[len(self._partial_text) :], highlight=False)
        else:
            self.end_line()
            self._console.out(text, highlight=False)
        self._partial_text = ""

    def end_line(self) -> None:
        """End the line if partial text was printed on it."""
        self._stop_spinner()
        if self._partial_text:
            self._console.out("")
        self._partial_text = ""

    def show_step(self, body: StepBody) -> None:
        """Print a step on one dim line. Print nothing for a step that does not matter to the user."""
        match body:
            case Plan(content=content):
                if content and self._shows_text:
                    self.show_answer(content)
            case ToolCall():
                if self.is_verbose:
                    arrow = pick_symbol(self._console, "→", ">")
                    self._print_dim(arrow, f"{body.name} {_in_words(body.arguments)}")
            case ToolResult():
                self._show_result(body)
            case Recalled():
                self._show_recalled(body)
            case AnswerSentBack():
                self._print_dim(
                    "!", "the answer claims an action that no tool performed: the model is asked again"
                )
            case ApprovalGiven(approved=approved):
                self._print_dim("!", "approved" if approved else "refused")
            case Interrupted(message=message):
                self._print_dim("!", f"interrupted {message or ''}")

    def _show_result(self, result: ToolResult) -> None:
        """Print the result of a tool call. `show_actions` prints at the end what was not done, and why."""
        action = result.action
        if self.is_verbose:
            if not (self._shows_text and _is_undone(result)):
                shown = _describe_action(action) if action else f"{result.name} {_in_words(result.content)}"
                self._print_dim(pick_symbol(self._console, "←", "<"), shown)
        elif action is None or _is_verified(action):
            self._print_folded(fold_result(result))
        elif not self._shows_text:
            self._print_folded(f"{fold_result(result)}: {self._judge(action)[2]}")

    def _show_recalled(self, recalled: Recalled) -> None:
        if self.is_verbose:
            count = len(recalled.message_ids)
            counted = "1 old message" if count == 1 else f"{count} old messages"
            reason = describe_recall_reason(recalled.reason, recalled.found_words)
            self._print_dim(pick_symbol(self._console, "←", "<"), f"recalled {counted}, {reason}")
        else:
            self._print_folded("recalled earlier messages")

    def show_actions(self, turn: ContinuationShown, *, with_done: bool = False) -> None:
        """Print the actions of a turn, and whether their effect was verified.

        Without `is_verbose` this leaves out the actions that have a line of their own already, because they
        are done and verified. `with_done` prints them again. With `is_verbose` an action that was not done
        has its reason, unless the user refused the action or the answer is the reason.
        """
        refused = {
            step.body.call_id
            for step in turn.steps
            if isinstance(step.body, ApprovalGiven) and not step.body.approved
        }
        answer = turn.response.final_message if turn.response is not None else ""
        for result, action in find_actions(turn):
            if _is_verified(action) and not (self.is_verbose or with_done):
                continue
            mark, style, words = self._judge(action)
            if (
                self.is_verbose
                and _is_undone(result)
                and result.call_id not in refused
                and result.content != answer
            ):
                words = one_line(result.content, MAX_LINE_CHARS)
            line = Text(f"  {mark} ", style=style)
            described = _describe_action(action) if self.is_verbose else fold_action(action, result.content)
            line.append(described).append(f"  {words}", style=style)
            self._console.print(line, soft_wrap=True)

    def show_end(self, turn: ContinuationShown) -> None:
        """Print the answer or the error of a turn, its actions, and its cost."""
        if turn.response is not None:
            self.show_answer(turn.response.final_message)
        else:
            self.end_line()
            words = turn.error.message if turn.error is not None else f"This turn is {turn.status}."
            style = "red" if turn.status == "failed" else "yellow"
            self._console.print(Text(strip_controls(words), style=style), soft_wrap=True)
        self.show_actions(turn)
        if turn.response is not None:
            for label, note in list_notes(turn.response, with_ids=self.is_verbose):
                self._console.print(Text(f"  {label}: {note}", style="dim"), soft_wrap=True)
        if turn.stats is not None:
            self._console.print(Text(f"  {_describe_cost(turn)}", style="dim"), soft_wrap=True)

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _print_dim(self, mark: str, text: str) -> None:
        self.end_line()
        line = Text(f"  {mark} {one_line(text, MAX_LINE_CHARS)}", style="dim")
        self._console.print(line, soft_wrap=True)

    def _print_folded(self, text: str) -> None:
        self._print_dim(pick_symbol(self._console, "·", "-"), text)

    def _judge(self, action: Action) -> tuple[str, str, str]:
        """Return the symbol, the style and the words for the outcome of an action."""
        if action.outcome != "done":
            mark = "?" if action.outcome == "unknown" else pick_symbol(self._console, "✗", "x")
            style = "yellow" if action.outcome in ("unknown", "dry_run") else "red"
            return mark, style, _OUTCOMES[action.outcome]
        if action.verified:
            return pick_symbol(self._console, "✓", "+"), "green", "verified"
        words = "the effect was not seen" if action.verified is False else "the effect cannot be verified"
        return "?", "yellow", words


def describe_recall_reason(reason: RecallReason, found_words: Sequence[str]) -> str:
    """Return in words why old messages were recalled. An old journal does not know the words."""
    match reason:
        case "meaning":
            return "found by their meaning"
        case "time":
            return "found by their time"
    return f"found by these words: {', '.join(found_words)}" if found_words else "found by their words"


def find_actions(turn: ContinuationShown) -> list[tuple[ToolResult, Action]]:
    """Return each tool result of a turn that reports an action, together with the action."""
    return [
        (step.body, step.body.action)
        for step in turn.steps
        if isinstance(step.body, ToolResult) and step.body.action is not None
    ]


def _is_undone(result: ToolResult) -> bool:
    """Return True if the result reports an action that failed, was denied or is uncertain."""
    return result.action is not None and result.action.outcome in ("failed", "denied", "unknown")


def _is_verified(action: Action) -> bool:
    return action.outcome == "done" and action.verified is True


def _describe_action(action: Action) -> str:
    """Return the service of an action, with the new states. If no state is known, show the arguments."""
    arguments = action.arguments
    name = arguments.get("service") or action.name
    changed = [f"{entity}: {_state(value)}" for entity, value in action.after.items()]
    given = {key: value for key, value in arguments.items() if key != "service"}
    return one_line(f"{name} {', '.join(changed) or _list_values(given)}", MAX_LINE_CHARS)


def _in_words(text: str) -> str:
    """Return a JSON object as "name: value, …", and any other text unchanged."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _list_values(values) if isinstance(values, dict) else text


def _list_values(values: dict[str, Any]) -> str:
    """List the names and values of an object, without the empty ones."""
    return ", ".join(
        f"{name}: {_show(value)}" for name, value in values.items() if value not in ({}, [], None)
    )


def _show(value: Any) -> str:
    """Return a value as text: a list of texts or numbers with commas, of other lists only the length."""
    if isinstance(value, list):
        is_plain = not any(isinstance(item, list | dict) for item in value)
        return ", ".join(map(str, value)) if is_plain else str(len(value))
    if isinstance(value, dict):
        return " ".join(f"{name} {'…' if isinstance(v, list | dict) else v}" for name, v in value.items())
    return str(value)


def _state(value: Any) -> str:
    return str(value.get("state", "?")) if isinstance(value, dict) else str(value)


def _describe_cost(turn: ContinuationShown) -> str:
    assert turn.stats is not None
    seconds = f"{turn.stats.duration_ms / 1000:.1f} s"
    if not turn.stats.total_tokens:
        return f"no model · {seconds}"
    parts = (f"{turn.stats.total_tokens:,} tokens", format_cost(turn.stats.cost_usd), seconds)
    return " · ".join(filter(None, parts))
