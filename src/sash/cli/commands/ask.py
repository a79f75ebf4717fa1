"""`sash ask`: one question, for scripts. Only the answer goes to standard output."""

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sash.cli.options import CommonOptions, Json, OptionalSession, with_common_options

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.app.settings import Settings
    from sash.engine.turn.continuation_result import ContinuationResult
    from sash.values.continuations import Continuation

MAX_TIMEOUT_S = 86_400.0
EXIT_TERMINATED = 128 + signal.SIGTERM


@with_common_options
def ask(
    options: CommonOptions,
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="The question; - reads it from standard input.")
    ],
    as_json: Json = False,
    session: OptionalSession = None,
    timeout: Annotated[
        float, typer.Option(min=0, max=MAX_TIMEOUT_S, help="Seconds to wait for the answer.")
    ] = MAX_TIMEOUT_S,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Answer without tools.")] = False,
) -> None:
    """Ask one question and print the answer."""
    loaded = options.load_settings(model=model)

    from sash.app.access import Caller
    from sash.app.schemas import ContinuationShown
    from sash.cli.log_setup import log_if_configured
    from sash.cli.terminal.turn_report import report_turn

    text = sys.stdin.read().strip() if question == ["-"] else " ".join(question)
    asked = _Question(text, session, model if session else None, not no_tools, timeout)
    try:
        turn = asyncio.run(_ask(log_if_configured(loaded), Caller(options.owner), asked))
    except asyncio.CancelledError as stopped:
        raise typer.Exit(EXIT_TERMINATED) from stopped
    raise typer.Exit(report_turn(ContinuationShown.of(turn), as_json=as_json))


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    session: str | None
    model: str | None
    allow_tools: bool
    timeout_s: float


async def _ask(settings: "Settings", caller: "Caller", question: _Question) -> "ContinuationResult":
    """Run the turn and return its state. A signal cancels the turn.

    After the timeout the turn is interrupted and can be resumed.
    """
    from sash.cli.home_checks import wait_for_home
    from sash.cli.local_service import open_for_turns
    from sash.errors import ContinuationFinal
    from sash.values.continuations import UNDER_WAY

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_for_turns(settings) as service:
        await wait_for_home(service)
        turn_id = (await _send(service, caller, question)).id
        try:
            turn = await service.await_continuation(caller, turn_id, timeout_s=question.timeout_s)
        except asyncio.CancelledError:
            with suppress(ContinuationFinal):
                await service.cancel(caller, turn_id)
            raise
        if turn.status in UNDER_WAY:
            await service.runtime.drain()
            turn = await service.await_continuation(caller, turn_id)
        return turn


async def _send(service: "AgentService", caller: "Caller", question: _Question) -> "Continuation":
    """Send the question to its session, or to a new session that ends with the answer. Return the turn."""
    from sash.values.requests import Ask, SendMessage
    from sash.values.sessions import ModelConfig

    if question.session is None:
        return await service.put_question(
            caller, Ask(message=question.text, allow_tools=question.allow_tools)
        )
    model = None if question.model is None else ModelConfig(name=question.model)
    message = SendMessage(message=question.text, allow_tools=question.allow_tools, model=model)
    return await service.send_message(caller, question.session, message)
