"""What the shell offers when the tab key is pressed: stores, sessions, and turns that are not over."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sash.app.access import Caller
    from sash.app.service import AgentService

MOST = 20
STORES = ("sqlite", "files", "memory")
Offers = list[tuple[str, str]]


def complete_store(incomplete: str) -> list[str]:
    """Offer the kinds of stores."""
    return [kind for kind in STORES if kind.startswith(incomplete)]


def complete_session(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the newest sessions."""
    return [offer for offer in _look(ctx)[0] if offer[0].startswith(incomplete)]


def complete_turn(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the turns of the newest sessions that are not over."""
    return [offer for offer in _look(ctx)[1] if offer[0].startswith(incomplete)]


def _look(ctx: typer.Context) -> tuple[Offers, Offers]:
    """Look into the store, if that is there and cheap to open; a shell wants no error."""
    from sash.cli.opening import read
    from sash.cli.options import LOCAL, Place
    from sash.errors import SashError

    given = ctx.params
    place = Place(given.get("data"), given.get("store"), given.get("config"), given.get("owner") or LOCAL)
    try:
        settings = place.load().settings
        if settings.store != "sqlite" or not (settings.folder / "sash.db").is_file():
            return [], []
        return read(place, _offers)
    except SashError:
        return [], []


async def _offers(desk: "AgentService", caller: "Caller") -> tuple[Offers, Offers]:
    found = (await desk.list_sessions(caller, limit=MOST)).sessions
    sessions = [(session.id, f"{session.status} {session.name or ''}".strip()) for session in found]
    shown = [await desk.get_session(caller, session.id) for session in found if session.status == "active"]
    turns = [(turn, f"of session {one.session.id}") for one in shown for turn in one.open_continuations]
    return sessions, turns
