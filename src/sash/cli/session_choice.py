"""The session that a chat continues or starts."""

from dataclasses import dataclass, replace

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import InvalidInput
from sash.values.requests import StartSession
from sash.values.sessions import Session

DEFAULT_NAME = "chat"


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """The session that the user asked for, by id or by name, and what it must be able to do."""

    session_id: str | None = None
    name: str | None = None
    new: bool = False
    area: str | None = None
    language: str | None = None
    services: tuple[str, ...] = ()

    async def resolve(self, service: AgentService, caller: Caller) -> Session:
        """Return the chosen session, or start one if there is none or its area or policy differs."""
        session = await self._find(service, caller)
        if session is None:
            name = self.name if self.new else self.name or DEFAULT_NAME
            return await self._start(service, caller, name)
        if not self._matches(session):
            if self.session_id is not None:
                raise InvalidInput(
                    "a session keeps the area and the allowed services that it started with: omit --session "
                    "to start another one, or omit --area and --allow"
                )
            return await self._start(service, caller, None)
        if self.language not in (None, session.preferences.get("language")):
            shown = await service.set_preferences(caller, session.id, {"language": self.language})
            return shown.session
        return session

    async def _find(self, service: AgentService, caller: Caller) -> Session | None:
        """Return the existing session. An expired one is reopened if its id or its name was given."""
        runtime, owner = service.runtime, caller.owner
        if self.session_id is not None:
            return await runtime.reopen_session(self.session_id, owner=owner)
        found = None if self.new else await runtime.find_session(self.name or DEFAULT_NAME, owner=owner)
        if found is not None and found.status == "expired" and self.name is not None:
            return await runtime.reopen_session(found.id, owner=owner)
        return found if found is not None and found.status == "active" else None

    def _matches(self, session: Session) -> bool:
        allowed = session.policy.allowlisted_services if session.policy.allow_actuation else ()
        return set(self.services) <= set(allowed) and self.area in (None, session.area)

    async def _start(self, service: AgentService, caller: Caller, name: str | None) -> Session:
        policy = service.runtime.defaults.policy
        if self.services:
            policy = replace(policy, allow_actuation=True, allowlisted_services=self.services)
        preferences = None if self.language is None else {"language": self.language}
        started = await service.start_session(
            caller, StartSession(name=name, area=self.area, preferences=preferences, policy=policy)
        )
        return (await service.get_session(caller, started.session_id)).session
