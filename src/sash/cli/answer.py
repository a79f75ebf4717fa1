"""How a turn came out, for a script: the answer on standard output, all else on standard error."""

import typer

from sash.app.schemas import ContinuationShown
from sash.cli.console import make_console, plain, print_json, say
from sash.cli.exits import exit_of
from sash.values.codec import adapter


def report(turn: ContinuationShown, *, as_json: bool) -> int:
    """Print how a turn came out, and return the exit code for it."""
    if as_json:
        print_json(adapter(ContinuationShown).dump_python(turn, mode="json"))
    elif turn.response is not None:
        typer.echo(plain(turn.response.final_message))
    explain(turn)
    return exit_of(turn.status, _error_code(turn))


def explain(turn: ContinuationShown) -> None:
    """Say on standard error why there is no answer, and what can be done about it."""
    err = make_console(stderr=True)
    again = f"`sash resume {turn.continuation_id}`"
    if turn.error is not None:
        say(err, f"error: {turn.error.message}", "red")
    elif turn.status == "awaiting_approval":
        for call in turn.waiting_calls:
            say(err, f"It wants to use {call.in_words}")
        say(err, f"It waits for a yes: {again} asks you for it, in a terminal.")
    elif turn.status == "interrupted":
        why = _interruption(turn).get("message")
        say(err, f"It is not over{f', because {why}' if why else ''}: {again} goes on with it.")
    elif turn.response is None:
        say(err, f"There is no answer: the turn is {turn.status}.")


def _error_code(turn: ContinuationShown) -> str | None:
    if turn.error is not None:
        return turn.error.code
    return _interruption(turn).get("code") if turn.status == "interrupted" else None


def _interruption(turn: ContinuationShown) -> dict[str, str]:
    """Return what is known of the last interruption of a turn."""
    found = [step.detail for step in turn.steps if step.detail.get("event") == "interrupted"]
    return found[-1] if found else {}
