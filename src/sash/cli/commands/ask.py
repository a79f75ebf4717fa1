"""`sash ask`: one question. A script gets only the answer on standard output, or JSON."""

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sash.cli.allowed_services import Allow, parse_services
from sash.cli.options import (
    CommonOptions,
    Json,
    Language,
    NamedSession,
    OptionalArea,
    with_common_options,
)

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.app.settings import Settings
    from sash.engine.turn.continuation_result import ContinuationResult
    from sash.errors import HomeError
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
    session: NamedSession = None,
    area: OptionalArea = None,
    language: Language = None,
    allow: Allow = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, max=MAX_TIMEOUT_S, help="How long to wait for the answer."),
    ] = MAX_TIMEOUT_S,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model that answers.")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Answer without tools.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the session, and list it.")] = False,
) -> None:
    """Ask one question and print the answer.

    With --session, a yes or no answers the approval question that this session has asked.
    """
    services = parse_services(allow or ())
    loaded = options.load_settings(model=model)

    from sash.app.access import Caller
    from sash.cli.log_setup import log_if_configured

    text = sys.stdin.read().strip() if question == ["-"] else " ".join(question)
    asked = _Question(
        text, session, model if session else None, not no_tools, timeout, keep, area, language, services
    )
    try:
        code = asyncio.run(_ask(log_if_configured(loaded), Caller(options.owner), asked, as_json=as_json))
    except asyncio.CancelledError as stopped:
        raise typer.Exit(EXIT_TERMINATED) from stopped
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    session: str | None
    model: str | None
    allow_tools: bool
    timeout_s: float
    keep: bool
    area: str | None
    language: str | None
    services: tuple[str, ...]


async def _ask(settings: "Settings", caller: "Caller", question: _Question, *, as_json: bool) -> int:
    """Run the turn, print its answer, and return the exit code. A signal cancels the turn.

    After the timeout the turn is interrupted and can be resumed. The service closes after the answer is
    printed, because it may first have to store the facts of the message.
    """
    from sash.cli.home_checks import check_area, check_language, wait_for_home
    from sash.cli.local_service import open_for_turns
    from sash.errors import ContinuationFinal
    from sash.values.continuations import UNDER_WAY

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    # A session may allow more than the settings: the operator has chosen it with `sash chat --allow`.
    is_operator = bool(question.services or question.session)
    async with open_for_turns(settings, is_operator=is_operator) as service:
        home_error = await wait_for_home(service)
        if question.area is not None:
            await check_area(service, caller, question.area)
        if question.language is not None:
            check_language(question.language)
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
        return _report(turn, home_error, as_json=as_json)


def _report(turn: "ContinuationResult", home_error: "HomeError | None", *, as_json: bool) -> int:
    """Print the answer and return the exit code."""
    from sash.app.schemas import ContinuationShown
    from sash.cli.exit_codes import EXIT_OK, exit_code
    from sash.cli.terminal.turn_report import report_turn

    code = report_turn(ContinuationShown.of(turn), as_json=as_json)
    sys.stdout.flush()
    if code == EXIT_OK and home_error is not None and _needed_home(turn, home_error):
        code = exit_code(home_error.code)  # An answer without the configured house is no success.
    return code


def _needed_home(turn: "ContinuationResult", error: "HomeError") -> bool:
    """Return True if the home was needed: a tool failed with its error, or its token is wrong."""
    from sash.errors import HomeUnauthorized
    from sash.values.steps import ToolResult

    bodies = [step.body for step in turn.steps]
    failed = any(isinstance(body, ToolResult) and error.message in body.content for body in bodies)
    return failed or isinstance(error, HomeUnauthorized)


async def _send(service: "AgentService", caller: "Caller", question: _Question) -> "Continuation":
    """Send the question to its session, or to a new session that ends with the answer. Return the turn."""
    from sash.cli.session_choice import SessionChoice, allow_services
    from sash.values.requests import Ask, SendMessage
    from sash.values.sessions import ModelConfig

    if question.session is None:
        return await service.put_question(
            caller,
            Ask(message=question.text, allow_tools=question.allow_tools, keep=question.keep),
            policy=allow_services(service, question.services),
            preferences=None if question.language is None else {"language": question.language},
            area=question.area,
        )
    choice = SessionChoice.of(question.session, services=question.services)
    session = await choice.resolve(service, caller, is_fixed=True)
    message = SendMessage(
        message=question.text,
        allow_tools=question.allow_tools,
        model=None if question.model is None else ModelConfig(name=question.model),
        area=question.area,
        language=question.language,
    )
    return await service.reply(caller, session.id, message)
