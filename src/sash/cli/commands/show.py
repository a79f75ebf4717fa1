"""`sash show`: a session with its last messages and its context, or a turn with its steps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sash.cli.completion import complete_session
from sash.cli.options import MAX_LIMIT, CommonOptions, Json, with_common_options

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.schemas import ContextShown, ContinuationShown, MessageShown
    from sash.app.service import AgentService
    from sash.engine.recall_report import RecallReport
    from sash.values.continuations import Continuation
    from sash.values.sessions import Session
    from sash.values.window_stats import WindowStats


@with_common_options
def show(
    options: CommonOptions,
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="A session or a continuation.", autocompletion=complete_session),
    ],
    messages: Annotated[
        int, typer.Option(min=0, max=MAX_LIMIT, help="How many of the last messages to show.")
    ] = 10,
    context: Annotated[
        bool,
        typer.Option(
            "--context",
            help="Show the parts of the next model call of a session, and what was recalled for its last "
            "turn. For a continuation, show what was recalled for it.",
        ),
    ] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Show what each model call of a continuation sent, as JSON.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a session or a continuation."""
    from sash.app.schemas import ContinuationShown, PromptList
    from sash.cli.local_service import run_with_service
    from sash.cli.terminal.console import print_json
    from sash.errors import ContinuationNotFound, SessionNotFound
    from sash.values.codec import adapter

    async def find(
        service: "AgentService", caller: "Caller"
    ) -> "_SessionDetails | _TurnDetails | PromptList":
        if prompts:
            return PromptList(tuple(await service.sent_prompts(caller, id_)))
        try:
            return await _read_session(service, caller, id_, messages, context)
        except SessionNotFound:
            pass
        try:
            turn = ContinuationShown.of(await service.await_continuation(caller, id_))
            return _TurnDetails(turn, await service.recall_report(caller, id_))
        except ContinuationNotFound as error:
            raise ContinuationNotFound(f"there is no session and no continuation {id_!r:.80}") from error

    found = run_with_service(options, find, with_home=context)
    if isinstance(found, _SessionDetails):
        _print_session(found, as_json)
    elif isinstance(found, _TurnDetails):
        _print_turn(found, context, as_json)
    else:
        print_json(adapter(PromptList).dump_python(found, mode="json"))


@dataclass(frozen=True, slots=True)
class _SessionDetails:
    session: "Session"
    window: "WindowStats"
    unfinished: "list[Continuation]"
    messages: "tuple[MessageShown, ...]"
    context: "ContextShown | None"


@dataclass(frozen=True, slots=True)
class _TurnDetails:
    turn: "ContinuationShown"
    recalled: "RecallReport | None"


async def _read_session(
    service: "AgentService", caller: "Caller", session_id: str, message_count: int, with_context: bool
) -> _SessionDetails:
    from sash.app.schemas import ContextShown, MessageShown
    from sash.cli.transcript import last_messages

    session = await service.get_session(caller, session_id)
    unfinished = await service.open_continuations(caller, session_id)
    messages = await last_messages(service, caller, session_id, message_count)
    context = ContextShown.of(await service.context_report(caller, session_id)) if with_context else None
    window = await service.window_stats(caller, session)
    return _SessionDetails(session, window, unfinished, tuple(map(MessageShown.of, messages)), context)


def _print_session(details: _SessionDetails, as_json: bool) -> None:
    from sash.app.schemas import ContextShown, MessageShown, SessionShown
    from sash.cli.terminal.console import make_console, print_json
    from sash.cli.terminal.session_view import print_context, print_message, print_session
    from sash.values.codec import adapter

    if as_json:
        shown = SessionShown.of(details.session, details.unfinished, details.window)
        values = adapter(SessionShown).dump_python(shown, mode="json")
        values["messages"] = adapter(tuple[MessageShown, ...]).dump_python(details.messages, mode="json")
        if details.context is not None:
            values["context"] = adapter(ContextShown).dump_python(details.context, mode="json")
        print_json(values)
        return
    console = make_console()
    print_session(console, details.session, details.window, details.unfinished)
    for message in details.messages:
        print_message(console, message)
    if details.context is not None:
        print_context(console, details.context)


def _print_turn(details: _TurnDetails, with_recall: bool, as_json: bool) -> None:
    from sash.app.schemas import ContinuationShown
    from sash.cli.terminal.console import make_console, print_json, print_text
    from sash.cli.terminal.session_view import print_recall, print_turn
    from sash.engine.recall_report import RecallReport
    from sash.values.codec import adapter

    recall = details.recalled
    if as_json:
        values = adapter(ContinuationShown).dump_python(details.turn, mode="json")
        if with_recall:
            values["recalled"] = recall and adapter(RecallReport).dump_python(recall, mode="json")
        print_json(values)
        return
    console = make_console()
    print_turn(console, details.turn, recall)
    if not with_recall:
        return
    if recall is None:
        print_text(console, "No old messages were recalled for this turn.")
    else:
        print_text(console, "Recalled for this turn:")
        print_recall(console, recall)
