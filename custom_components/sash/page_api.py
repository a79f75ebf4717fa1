"""The application behind `/api/sash/` for one config entry: the REST and event routes of Sash's server."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from homeassistant.auth.models import User
from homeassistant.components.http.const import KEY_HASS_REFRESH_TOKEN_ID, KEY_HASS_USER
from homeassistant.core import HomeAssistant

from sash.engine.owner_pacing import OwnerPacing
from sash.engine.runtime import Runtime
from sash.errors import Unauthorized
from sash.values.garbage import pause_collection

from .agent import Agent
from .asgi_bridge import AsgiBridge
from .late_turns import LateTurns

if TYPE_CHECKING:
    from .page_service import PageService

PREFIX = "/api/sash"
# Home Assistant often runs on a small computer, and reading an export takes several times its size.
MAX_IMPORT_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class _Application:
    service: PageService
    pacing: OwnerPacing
    bridge: AsgiBridge

    async def close(self) -> None:
        await self.bridge.close()
        self.pacing.close()


class PageApi:
    """Makes the application for the first request, because its packages take half a second to import."""

    def __init__(
        self, hass: HomeAssistant, runtime: Runtime, agents: dict[str, Agent], late_turns: LateTurns
    ) -> None:
        self._hass = hass
        self._runtime = runtime
        self._agents = agents
        self._late_turns = late_turns
        self._making = asyncio.Lock()
        self._application: _Application | None = None
        self._is_closed = False

    async def handle(self, request: web.Request, agent: Agent) -> web.StreamResponse | None:
        """Answer a request of a signed-in user who talks to this agent. Return None after `close`."""
        application = await self._find_application()
        user: User = request[KEY_HASS_USER]
        return await application.bridge.handle(
            request,
            PREFIX,
            caller=application.service.make_caller(user, agent),
            check_token=_make_token_check(self._hass, user, request.get(KEY_HASS_REFRESH_TOKEN_ID)),
        )

    async def close(self) -> None:
        """End the event streams and the requests. Later requests are refused."""
        self._is_closed = True
        if self._application is not None:
            await self._application.close()

    async def _find_application(self) -> _Application:
        async with self._making:
            if self._application is None:
                self._application = await self._hass.async_add_import_executor_job(self._make_application)
                if self._is_closed:
                    await self._application.close()
        return self._application

    def _make_application(self) -> _Application:
        with pause_collection():
            from sash.app.settings import Settings
            from sash.server.middleware.stopped_requests import StoppedRequests
            from sash.server.rest_api import make_rest_api
            from sash.server.timeouts import Timeouts

            from .page_service import PageService

            service = PageService(self._hass, self._runtime, self._agents, self._late_turns)
            app = make_rest_api(service, Settings(max_import_bytes=MAX_IMPORT_BYTES), Timeouts())
            # This prepares all routes. The first request would do it and stop the event loop meanwhile.
            app.openapi()
        return _Application(service, app.state.pacing, AsgiBridge(self._hass, StoppedRequests(app)))


def _make_token_check(hass: HomeAssistant, user: User, token_id: str | None) -> Callable[[], None]:
    """Return a function that raises `Unauthorized` when the user is signed out. Event streams call it."""

    def check() -> None:
        is_revoked = token_id is not None and hass.auth.async_get_refresh_token(token_id) is None
        if is_revoked or not user.is_active:
            raise Unauthorized("you are signed out of Home Assistant")

    return check
