"""`sash ask`: one question, for scripts. Only the answer goes to standard output."""

import asyncio
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sash.cli.options import LOCAL, Config, Data, Json, Owner, Place, SomeSession, Store

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.schemas import Acknowledged, ContinuationShown
    from sash.app.service import AgentService
    from sash.app.settings import Settings

FOR_EVER_S = 86_400.0
STOPPED = 128 + signal.SIGTERM


def ask(
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="What to ask; - reads it from standard input.")
    ],
    as_json: Json = False,
    session: SomeSession = None,
    timeout: Annotated[
        float, typer.Option(min=0, max=FOR_EVER_S, help="Seconds to wait for the answer.")
    ] = FOR_EVER_S,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Let no tools be used.")] = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Ask one question and print the answer."""
    place = Place(data, store, config, owner)
    loaded = place.load(model=model)

    from sash.app.access import Caller
    from sash.cli.answer import report
    from sash.cli.logs import quiet

    text = sys.stdin.read().strip() if question == ["-"] else " ".join(question)
    asked = _Question(text, session, model if session else None, not no_tools, round(timeout * 1000))
    try:
        turn = asyncio.run(_ask(quiet(loaded), Caller(owner), asked))
    except asyncio.CancelledError as stopped:
        raise typer.Exit(STOPPED) from stopped
    raise typer.Exit(report(turn, as_json=as_json))


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    session: str | None
    model: str | None
    allow_tools: bool
    wait_ms: int


async def _ask(settings: "Settings", caller: "Caller", asked: _Question) -> "ContinuationShown":
    """Ask; who interrupts it has it cancelled, and what takes too long can be resumed."""
    from sash.cli.house import wait_for_house
    from sash.cli.opening import talking
    from sash.values.continuations import UNDER_WAY

    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    async with talking(settings) as desk:
        await wait_for_house(desk)
        sent = (await _put(desk, caller, asked)).continuation_id
        try:
            turn = await desk.await_continuation(caller, sent, wait_ms=asked.wait_ms)
        except asyncio.CancelledError:
            await desk.cancel(caller, sent)
            raise
        if turn.status in UNDER_WAY:
            await desk.runtime.drain()
            turn = await desk.await_continuation(caller, sent)
        return turn


async def _put(desk: "AgentService", caller: "Caller", asked: _Question) -> "Acknowledged":
    """Put the question, in a session that goes on or in one of its own."""
    from sash.values.requests import Ask, SendMessage
    from sash.values.sessions import ModelConfig

    if asked.session is None:
        return await desk.put_question(caller, Ask(message=asked.text, allow_tools=asked.allow_tools))
    model = None if asked.model is None else ModelConfig(name=asked.model)
    message = SendMessage(message=asked.text, allow_tools=asked.allow_tools, model=model)
    return await desk.send_message(caller, asked.session, message)
