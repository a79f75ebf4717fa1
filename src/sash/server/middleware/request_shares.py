"""Limits the requests of one owner that start and run at a time, so that other owners are not delayed."""

from starlette.types import ASGIApp, Receive, Scope, Send

from sash.app.owner_shares import OwnerShares
from sash.engine.owner_pacing import OwnerPacing
from sash.errors import TooManyRequests
from sash.server.http_errors import make_error_response

# Requests to open pages have no owner. They share the places of this name, which no token can have.
OPEN_PAGES = ""


class RequestPacing:
    """Starts the requests of one owner one after the other, also those that are refused then."""

    def __init__(self, app: ASGIApp, pacing: OwnerPacing) -> None:
        self._app = app
        self._pacing = pacing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._pacing.wait(_find_owner(scope))
        await self._app(scope, receive, send)


class RequestShares:
    """Runs a request when its owner has a free place. It waits, and is refused if too many others wait."""

    def __init__(self, app: ASGIApp, shares: OwnerShares) -> None:
        self._app = app
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            place = await self._shares.take_place(_find_owner(scope))
        except TooManyRequests as error:
            await make_error_response(error)(scope, receive, send)
            return
        with place:
            await self._app(scope, receive, send)


def _find_owner(scope: Scope) -> str:
    return scope["caller"].owner if "caller" in scope else OPEN_PAGES
