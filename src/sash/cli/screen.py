"""A turn as it happens, on a console: text as it is written, each step in a dim line, what was done."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from sash.app.schemas import ContinuationShown
from sash.cli.console import one_line, plain, sign
from sash.cli.tables import cost
from sash.values.continuations import Action

LONGEST = 120

_OUTCOMES = {
    "failed": "failed",
    "denied": "not done",
    "unknown": "outcome unknown",
    "dry_run": "dry run, nothing was done",
}


class Screen:
    """Shows turns on a console, one after the other; without `texts` only their steps."""

    def __init__(self, console: Console, *, texts: bool = True) -> None:
        self.console = console
        self._texts = texts
        self._written = ""
        self._status: Status | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show on a terminal that something goes on, until there is something to see."""
        self.wait("")
        try:
            yield
        finally:
            self._calm()

    def wait(self, doing: str) -> None:
        """Show what is being done."""
        if not self.console.is_terminal or self._written:
            return
        text = Text(one_line(doing, LONGEST), style="dim")
        if self._status is None:
            self._status = self.console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def partial(self, text: str) -> None:
        """Write on, as the model does."""
        new = plain(text) if self._texts else ""
        if new:
            self._calm()
        self._written += new
        self.console.out(new, end="", highlight=False)

    def answer(self, text: str) -> None:
        """Write what is not there yet of a text; one that turned out otherwise is written anew."""
        self._calm()
        text = plain(text)
        if text.startswith(self._written):
            self.console.out(text[len(self._written) :], highlight=False)
        else:
            self.end_line()
            self.console.out(text, highlight=False)
        self._written = ""

    def end_line(self) -> None:
        """End a line that was begun."""
        self._calm()
        if self._written:
            self.console.out("")
        self._written = ""

    def step(self, kind: str, detail: dict[str, Any]) -> None:
        """Show a step in a line, if it tells something."""
        match kind, detail.get("event"):
            case "plan", _:
                if detail.get("content") and self._texts:
                    self.answer(detail["content"])
            case "tool_call", _:
                self._dim(sign(self.console, "→", ">"), f"{detail['name']} {_arguments(detail)}")
            case "tool_result", _ if self._texts and _not_done(detail):
                pass  # It is told at the end, with what was done.
            case "tool_result", _:
                self._dim(sign(self.console, "←", "<"), f"{detail['name']} {detail['content']}")
            case "retrieval", _:
                self._dim(sign(self.console, "←", "<"), f"recalled: {', '.join(detail.get('query', ()))}")
            case _, "sent_back":
                self._dim("!", "that claims what no tool has done: it is asked again")
            case _, "approval":
                self._dim("!", "a yes" if detail.get("approved") else "a no")
            case _, "interrupted":
                self._dim("!", f"interrupted {detail.get('message') or ''}")

    def actions(self, turn: ContinuationShown) -> None:
        """Show what a turn has done, and whether the house was seen to have changed.

        Of what was not done it tells why, but for a no: who said that, or that nobody could, was told before.
        """
        refused = {step.detail["call_id"] for step in turn.steps if step.detail.get("approved") is False}
        for detail in acts(turn):
            action = Action(**detail["action"])
            mark, style, words = self._judged(action)
            if _not_done(detail) and detail["call_id"] not in refused:
                words = one_line(detail["content"], LONGEST)
            line = Text(f"  {mark} ", style=style).append(_called(action)).append(f"  {words}", style=style)
            self.console.print(line, soft_wrap=True)

    def end(self, turn: ContinuationShown) -> None:
        """Show how a turn came out."""
        if turn.response is not None:
            self.answer(turn.response.final_message)
        else:
            self.end_line()
            self._no_answer(turn)
        self.actions(turn)
        if turn.stats is not None:
            self.console.print(Text(f"  {_took(turn)}", style="dim"), soft_wrap=True)

    def _calm(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _no_answer(self, turn: ContinuationShown) -> None:
        words = turn.error.message if turn.error is not None else f"This turn is {turn.status}."
        style = "red" if turn.status == "failed" else "yellow"
        self.console.print(Text(plain(words), style=style), soft_wrap=True)

    def _dim(self, mark: str, text: str) -> None:
        self.end_line()
        self.console.print(Text(f"  {mark} {one_line(text, LONGEST)}", style="dim"), soft_wrap=True)

    def _judged(self, action: Action) -> tuple[str, str, str]:
        if action.outcome != "done":
            mark = "?" if action.outcome == "unknown" else sign(self.console, "✗", "x")
            style = "yellow" if action.outcome in ("unknown", "dry_run") else "red"
            return mark, style, _OUTCOMES[action.outcome]
        if action.verified:
            return sign(self.console, "✓", "+"), "green", "verified"
        return "?", "yellow", "not seen" if action.verified is False else "nobody can see whether it worked"


def acts(turn: ContinuationShown) -> list[dict[str, Any]]:
    """Return the results of what a turn has done so far."""
    return [step.detail for step in turn.steps if "action" in step.detail]


def _not_done(detail: dict[str, Any]) -> bool:
    """Whether a result says why something did not come about."""
    return detail.get("action", {}).get("outcome") in ("failed", "denied", "unknown")


def _arguments(detail: dict[str, Any]) -> str:
    arguments = detail.get("arguments", "")
    return "" if arguments == "{}" else str(arguments)


def _called(action: Action) -> str:
    """Say what was called, and what it has changed."""
    arguments = action.arguments
    named = arguments.get("service") or action.name
    changed = [f"{entity}: {_state(value)}" for entity, value in action.after.items()]
    given = {key: value for key, value in arguments.items() if key != "service" and value}
    target = ", ".join(changed) or (json.dumps(given, ensure_ascii=False) if given else "")
    return one_line(f"{named} {target}", LONGEST)


def _state(value: Any) -> str:
    return str(value.get("state", "?")) if isinstance(value, dict) else str(value)


def _took(turn: ContinuationShown) -> str:
    assert turn.stats is not None
    seconds = f"{turn.stats.duration_ms / 1000:.1f} s"
    if turn.stats.local_turns:
        return f"no model · {seconds}"
    spent = (f"{turn.stats.total_tokens:,} tokens", cost(turn.stats.cost_usd), seconds)
    return " · ".join(filter(None, spent))
