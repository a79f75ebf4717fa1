"""Authorises callers who look at the home and at the agent's actions in it."""

import asyncio

from sash.app.access import Caller
from sash.app.home_view import HomeShown
from sash.app.service import AgentService


class HomeService:
    """The home and the agent's actions, for callers with an owner and scopes. Methods raise `Forbidden`."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def show_home(self, caller: Caller, language: str | None = None) -> HomeShown:
        """Return the home as the agent sees it. `language` is the language of the states in words."""
        caller.need("read")
        async with self._service.shares.use(caller.owner, "report"):
            return await asyncio.to_thread(HomeShown.of, self._service.runtime.home, language)
