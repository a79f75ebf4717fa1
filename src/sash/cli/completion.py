"""Shell completion of stores, sessions and unfinished turns."""

from typing import TYPE_CHECKING

import typer

from sash.stores.registry import BACKENDS, find_backend

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.service import AgentService

MAX_SESSIONS = 20
# Each candidate with its description.
Candidates = list[tuple[str, str]]


def complete_store(incomplete: str) -> list[str]:
    """Return the names of the stores that begin with the typed text."""
    return [name for name in BACKENDS if name.startswith(incomplete)]


def complete_session(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of the newest sessions that begin with the typed text, with descriptions."""
    sessions, _ = _read_candidates(ctx)
    return [candidate for candidate in sessions if candidate[0].startswith(incomplete)]


def complete_turn(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of unfinished turns of the newest sessions that begin with the typed text."""
    _, turns = _read_candidates(ctx)
    return [candidate for candidate in turns if candidate[0].startswith(incomplete)]


def _read_candidates(ctx: typer.Context) -> tuple[Candidates, Candidates]:
    """Return sessions and turns of a store that several processes may open. If that fails, return none."""
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
            return [], []
        return run_with_service(options, _find_candidates)
    except SashError:
        return [], []


async def _find_candidates(service: "AgentService", caller: "Caller") -> tuple[Candidates, Candidates]:
    found = (await service.list_sessions(caller, limit=MAX_SESSIONS)).items
    sessions = [(session.id, f"{session.status} {session.name or ''}".strip()) for session in found]
    turns = [
        (turn.id, f"of session {session.id}")
        for session in found
        if session.status == "active"
        for turn in await service.open_continuations(caller, session.id)
    ]
    return sessions, turns
