"""Shell completion of stores, sessions, turns and languages."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

from sash.stores.registry import BACKENDS, find_backend

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.service import AgentService
    from sash.values.sessions import Session

MAX_SESSIONS = 20
MAX_DESCRIPTION = 60
# Each candidate with its description.
Candidates = list[tuple[str, str]]


def complete_store(incomplete: str) -> list[str]:
    """Return the names of the stores that begin with the typed text."""
    return [name for name in BACKENDS if name.startswith(incomplete)]


def complete_session(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of the newest sessions that begin with the typed text, with descriptions."""

    async def find(service: "AgentService", caller: "Caller") -> Candidates:
        found = await _list_newest(service, caller)
        return [(session.id, f"{session.status} {session.name or ''}".strip()) for session in found]

    return _complete(ctx, incomplete, find)


def complete_named_session(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids and the names of the newest sessions that begin with the typed text."""

    async def find(service: "AgentService", caller: "Caller") -> Candidates:
        found = await _list_newest(service, caller)
        named = {session.name: "the session of this name" for session in found if session.name}
        return [
            *named.items(),
            *((session.id, f"{session.status} {session.name or ''}".strip()) for session in found),
        ]

    return _complete(ctx, incomplete, find)


def complete_language(incomplete: str) -> list[str]:
    """Return the codes of the languages that Sash understands without a model."""
    try:
        from sash.intents.grammar import list_languages
    except ImportError:
        return []
    return [code for code in list_languages() if code.startswith(incomplete)]


def complete_unfinished_turn(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of unfinished turns of the newest sessions that begin with the typed text."""

    async def find(service: "AgentService", caller: "Caller") -> Candidates:
        return [
            (turn.id, f"of session {session.id}")
            for session in await _list_newest(service, caller)
            if session.status == "active"
            for turn in await service.open_continuations(caller, session.id)
        ]

    return _complete(ctx, incomplete, find)


def complete_turn_of_session(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of the turns in the window of the typed session, each with its message."""

    async def find(service: "AgentService", caller: "Caller") -> Candidates:
        # An option without its value ends the parsing, so the session may be still among the arguments.
        session_id = ctx.params.get("session") or next(iter(ctx.args), "")
        turns = await service.list_turns(caller, session_id)
        return [(turn.id, " ".join(turn.request.message[:MAX_DESCRIPTION].split())) for turn in turns]

    return _complete(ctx, incomplete, find)


async def _list_newest(service: "AgentService", caller: "Caller") -> "tuple[Session, ...]":
    return (await service.list_sessions(caller, limit=MAX_SESSIONS)).items


def _complete(
    ctx: typer.Context,
    incomplete: str,
    find: "Callable[[AgentService, Caller], Awaitable[Candidates]]",
) -> Candidates:
    """Return the candidates that begin with the typed text, from a store that several processes may open.

    If that fails, return none.
    """
    from sash.app.assembly import make_store_settings
    from sash.cli.local_service import run_with_service
    from sash.cli.options import LOCAL_OWNER, CommonOptions
    from sash.errors import SashError

    given = ctx.params
    owner = given.get("owner") or LOCAL_OWNER
    options = CommonOptions(given.get("data"), given.get("store"), given.get("config"), owner)
    try:
        settings = options.load_settings().settings
        backend = find_backend(settings.store)
        if not (backend.is_shared and backend.exists(make_store_settings(settings))):
            return []
        found = run_with_service(options, find)
    except SashError:
        return []
    return [candidate for candidate in found if candidate[0].startswith(incomplete)]
