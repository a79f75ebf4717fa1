"""Which session a chat goes on with, or begins."""

from dataclasses import dataclass, replace

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import InvalidInput
from sash.values.requests import StartSession
from sash.values.sessions import Session

NAME = "chat"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The session that somebody wants to talk in."""

    session_id: str | None = None
    name: str | None = None
    new: bool = False
    area: str | None = None
    language: str | None = None
    services: tuple[str, ...] = ()

    async def find(self, desk: AgentService, caller: Caller) -> Session:
        """Return the session: the one that is named, if it is as it is wanted, or else a new one."""
        known = await self._known(desk, caller)
        if known is None:
            return await self._begin(desk, caller, self._free_name)
        if not self._fits(known):
            if self.session_id is not None:
                raise InvalidInput(
                    "where a session is and what it may do is said when it begins: leave out --session, or "
                    "leave out --area and --allow"
                )
            return await self._begin(desk, caller, None)
        if self.language not in (None, known.preferences.get("language")):
            shown = await desk.set_preferences(caller, known.id, {"language": self.language})
            return shown.session
        return known

    async def _known(self, desk: AgentService, caller: Caller) -> Session | None:
        """Return the session that is asked for; one that has expired goes on, if it is asked for by name."""
        runtime, owner = desk.runtime, caller.owner
        if self.session_id is not None:
            return await runtime.reopen_session(self.session_id, owner=owner)
        found = None if self.new else await runtime.find_session(self.name or NAME, owner=owner)
        if found is not None and found.status == "expired" and self.name is not None:
            return await runtime.reopen_session(found.id, owner=owner)
        return found if found is not None and found.status == "active" else None

    @property
    def _free_name(self) -> str | None:
        return self.name if self.new else self.name or NAME

    def _fits(self, session: Session) -> bool:
        may = session.policy.allowlisted_services if session.policy.allow_actuation else ()
        return set(self.services) <= set(may) and self.area in (None, session.area)

    async def _begin(self, desk: AgentService, caller: Caller, name: str | None) -> Session:
        policy = desk.runtime.defaults.policy
        if self.services:
            policy = replace(policy, allow_actuation=True, allowlisted_services=self.services)
        preferences = None if self.language is None else {"language": self.language}
        begun = await desk.start_session(
            caller, StartSession(name=name, area=self.area, preferences=preferences, policy=policy)
        )
        return (await desk.get_session(caller, begun.session_id)).session
