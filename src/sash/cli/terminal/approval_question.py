"""The question for the approval of a tool call."""

from typing import Any

from rich.console import Console

from sash.app.schemas import WaitingCall
from sash.cli.terminal.console import print_text
from sash.cli.terminal.line_input import LineInput


def ask_for_approval(lines: LineInput, console: Console, call: WaitingCall) -> bool | None:
    """Show a call and the reason for the approval, and ask. None means that the user gave no answer."""
    print_text(console, describe_call(call), "yellow")
    print_text(console, f"  {call.reason}", "dim")
    return lines.confirm("Allow it?")


def describe_call(call: WaitingCall) -> str:
    """Return a sentence about the effect of a call: "The agent wants to unlock Front door lock …"."""
    would = call.would
    if not isinstance(would, dict) or "service" not in would:
        return f"The agent wants to use {call.in_words}"
    domain, _, service = str(would["service"]).partition(".")
    verb = service.removesuffix(f"_{domain}").replace("_", " ")
    words = [verb, ", ".join(map(_describe_entity, would.get("entities") or ()))]
    if would.get("data"):
        words.append(f"with {', '.join(f'{name} {value}' for name, value in would['data'].items())}")
    effects = (*would.get("acts_on", ()), *would.get("calls", ()))
    if effects:
        words.append(f"which acts on {', '.join(effects)}")
    return f"The agent wants to {' '.join(filter(None, words))}"


def _describe_entity(entity: Any) -> str:
    if not isinstance(entity, dict):
        return str(entity)
    state = f", now {entity['now']}" if "now" in entity else ""
    return f"{entity.get('name') or entity.get('entity_id')} ({entity.get('entity_id')}{state})"
